"""Two seeded streams of triples: a university like LUBM's, and power meters like SEAS's.

A stream is coded: texts of the distinct terms in N-Triples form, and three columns of their numbers. Like the domain,
part of it repeats: a department's staff and courses are told again and again, students and publications are new;
meters, appliances and houses stay, observations are new.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

UB: Final = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
LUBM: Final = "http://lubm.example/"
SEAS: Final = "https://w3id.org/seas/"
METERS: Final = "http://power.example/"
TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
DEPARTMENTS: Final = 50
UNIVERSITIES: Final = 5
PROFESSORS: Final = 8
"""Of a department."""
HOUSES: Final = 2000
DISTRICTS: Final = 20
APPLIANCES: Final = 4
"""Of a house."""
_INTEGER: Final = "<http://www.w3.org/2001/XMLSchema#integer>"

Written = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Stream:
    """m triples: `columns` i64[3, m] are numbers of `texts`, subject, predicate and object."""

    texts: tuple[str, ...]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, triples: Iterator[Written], count: int) -> Stream:
        """The first `count` of them."""
        numbers: dict[str, int] = {}
        columns = np.zeros((3, count), np.int64)
        for i, triple in zip(range(count), triples, strict=False):
            for j, text in enumerate(triple):
                columns[j, i] = numbers.setdefault(text, len(numbers))
        return cls(tuple(numbers), columns)

    def coded(self, terms: TermDictionary) -> NDArray[np.uint32]:
        """u32[3, m]: the ids in a dictionary."""
        ids = np.array([terms.intern_written(text.encode()) for text in self.texts], np.uint32)
        coded: NDArray[np.uint32] = ids[self.columns]
        return coded


def batch(ids: NDArray[np.uint32], first: int, last: int, size: int) -> EventBatch:
    """The triples first ... last − 1 as events of `size` triples; their time is the number of the event."""
    s, p, o = (np.ascontiguousarray(column[first:last]) for column in ids)
    ends = np.append(np.arange(0, last - first, size), last - first).astype(np.int64)
    time = np.arange(first // size, first // size + len(ends) - 1, dtype=np.int64)
    return EventBatch(time, ends, s, p, o)


@lru_cache(maxsize=2)
def stream(name: str, triples: int) -> Stream:
    """The first `triples` triples of `lubm` or `seas`."""
    dice = random.Random(20161219)
    return Stream.of(_university(dice) if name == "lubm" else _power(dice), triples)


def ub(name: str) -> str:
    """A term of the university's vocabulary."""
    return f"<{UB}{name}>"


def lubm(name: str) -> str:
    """A thing of the university."""
    return f"<{LUBM}{name}>"


def seas(name: str) -> str:
    """A term of the meters' vocabulary."""
    return f"<{SEAS}{name}>"


def _university(dice: random.Random) -> Iterator[Written]:
    round_ = 0
    while True:
        for number in range(DEPARTMENTS):
            yield from _block(dice, round_, number)
        round_ += 1


def _block(dice: random.Random, round_: int, number: int) -> Iterator[Written]:
    """What a department says in one round: itself, one of its professors, six new students, two publications."""
    department, university = lubm(f"Department{number}"), lubm(f"University{number % UNIVERSITIES}")
    yield department, TYPE, ub("Department")
    yield department, ub("subOrganizationOf"), university
    yield university, TYPE, ub("University")
    teacher = round_ % PROFESSORS
    yield from _professor(department, number, teacher)
    for i in range(6):
        yield from _student(dice, round_, number, i, teacher)
    for i in range(2):
        publication = lubm(f"Department{number}/Publication{round_}_{i}")
        yield publication, TYPE, ub("Publication")
        yield publication, ub("publicationAuthor"), _person(number, dice.randrange(PROFESSORS))


def _person(department: int, number: int) -> str:
    return lubm(f"Department{department}/Professor{number}")


def _course(department: int, number: int) -> str:
    return lubm(f"Department{department}/Course{number}")


def _professor(department: str, number: int, teacher: int) -> Iterator[Written]:
    person = _person(number, teacher)
    yield person, TYPE, ub(("FullProfessor", "AssociateProfessor", "AssistantProfessor")[teacher % 3])
    yield person, ub("worksFor"), department
    yield person, ub("name"), f'"Professor{teacher}"'
    yield person, ub("emailAddress"), f'"Professor{teacher}@Department{number}"'
    yield person, ub("telephone"), f'"{number:03}-{teacher:04}"'
    for course in (2 * teacher, 2 * teacher + 1):
        yield person, ub("teacherOf"), _course(number, course)
        yield _course(number, course), TYPE, ub("GraduateCourse" if course % 2 else "Course")


def _student(dice: random.Random, round_: int, number: int, i: int, teacher: int) -> Iterator[Written]:
    graduate = i >= 3
    student = lubm(f"Department{number}/Student{round_}_{i}")
    advisor = teacher if dice.random() < 0.5 else dice.randrange(PROFESSORS)
    yield student, TYPE, ub("GraduateStudent" if graduate else "UndergraduateStudent")
    yield student, ub("memberOf"), lubm(f"Department{number}")
    for _ in range(2):
        course = 2 * (advisor if dice.random() < 0.3 else dice.randrange(PROFESSORS)) + graduate
        yield student, ub("takesCourse"), _course(number, course)
    yield student, ub("emailAddress"), f'"{round_}_{i}@Department{number}"'
    if graduate or dice.random() < 0.2:
        yield student, ub("advisor"), _person(number, advisor)
    if graduate:
        yield student, ub("undergraduateDegreeFrom"), lubm(f"University{dice.randrange(UNIVERSITIES)}")


def _power(dice: random.Random) -> Iterator[Written]:
    number = 0
    while True:
        house, which = dice.randrange(HOUSES), dice.randrange(APPLIANCES)
        place, appliance = f"<{METERS}house{house}>", f"<{METERS}house{house}/appliance{which}>"
        meter, observation = f"<{METERS}house{house}/meter{which}>", f"<{METERS}observation{number}>"
        yield observation, TYPE, seas("PowerObservation")
        yield observation, seas("observedBy"), meter
        yield observation, seas("hasValue"), f'"{dice.randrange(1000)}"^^{_INTEGER}'
        yield observation, seas("hasUnit"), seas("watt")
        yield meter, seas("monitors"), appliance
        yield appliance, TYPE, seas(("Heater", "Oven", "Light", "Charger")[which])
        yield appliance, seas("locatedIn"), place
        yield place, seas("inDistrict"), f"<{METERS}district{house % DISTRICTS}>"
        number += 1
