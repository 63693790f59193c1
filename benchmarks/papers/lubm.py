"""Two streams of triples like SPECTRA's: LUBM's universities by its published profile, and SEAS's power readings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from benchmarks.spectra.streams import TYPE, Stream, Written, ub

SEAS_MEASURES: Final = "http://purl.org/NET/seas/measures#"
QB: Final = "http://purl.org/linked-data/cube#"
UNIVERSITIES: Final = 1_000
"""Degrees are from one of these."""
RANKS: Final = (
    ("FullProfessor", (7, 10), (15, 20)),
    ("AssociateProfessor", (10, 14), (10, 18)),
    ("AssistantProfessor", (8, 11), (5, 10)),
    ("Lecturer", (5, 7), (0, 5)),
)
"""Rank, how many of a department, publications of each."""
INSTRUMENTS: Final = 200
_DECIMAL: Final = "^^<http://www.w3.org/2001/XMLSchema#decimal>"


@lru_cache(maxsize=2)
def made(name: str, triples: int) -> Stream:
    """The first triples of `lubm` or `seas`, drawn with a seed."""
    dice = random.Random(20160718)
    return Stream.of(_universities(dice) if name == "lubm" else _readings(dice), triples)


def _universities(dice: random.Random) -> Iterator[Written]:
    """University by university, department by department, without end."""
    number = 0
    while True:
        university = f"<http://www.University{number}.edu>"
        yield university, TYPE, ub("University")
        for department in range(dice.randint(15, 25)):
            yield from _department(dice, number, department)
        number += 1


def _department(dice: random.Random, university: int, number: int) -> Iterator[Written]:
    base = f"http://www.Department{number}.University{university}.edu"
    home = f"<{base}>"
    yield home, TYPE, ub("Department")
    yield home, ub("subOrganizationOf"), f"<http://www.University{university}.edu>"
    for group in range(dice.randint(10, 20)):
        yield f"<{base}/ResearchGroup{group}>", TYPE, ub("ResearchGroup")
        yield f"<{base}/ResearchGroup{group}>", ub("subOrganizationOf"), home
    professors: list[str] = []
    courses: dict[str, list[str]] = {"Course": [], "GraduateCourse": []}
    for rank, (least, most), publications in RANKS:
        for i in range(dice.randint(least, most)):
            person = f"<{base}/{rank}{i}>"
            if rank != "Lecturer":
                professors.append(person)
            yield from _person(dice, base, person, f"{rank}{i}")
            yield person, TYPE, ub(rank)
            yield person, ub("worksFor"), home
            for degree in ("undergraduate", "masters", "doctoral"):
                yield person, ub(f"{degree}DegreeFrom"), f"<http://www.University{dice.randrange(UNIVERSITIES)}.edu>"
            for kind, taught in courses.items():
                for _ in range(dice.randint(1, 2)):
                    course = f"<{base}/{kind}{len(taught)}>"
                    taught.append(course)
                    yield course, TYPE, ub(kind)
                    yield course, ub("name"), f'"{kind}{len(taught) - 1}"'
                    yield person, ub("teacherOf"), course
            for publication in range(dice.randint(*publications)):
                paper = f"<{base}/{rank}{i}/Publication{publication}>"
                yield paper, TYPE, ub("Publication")
                yield paper, ub("publicationAuthor"), person
    faculty = len(courses["Course"]) * 2 // 3
    for i in range(dice.randint(8, 14) * faculty):
        student = f"<{base}/UndergraduateStudent{i}>"
        yield student, TYPE, ub("UndergraduateStudent")
        yield from _studies(dice, student, home, courses["Course"], dice.randint(2, 4))
        if dice.random() < 0.2:
            yield student, ub("advisor"), dice.choice(professors)
    for i in range(dice.randint(3, 4) * faculty):
        student = f"<{base}/GraduateStudent{i}>"
        yield student, TYPE, ub("GraduateStudent")
        yield student, ub("undergraduateDegreeFrom"), f"<http://www.University{dice.randrange(UNIVERSITIES)}.edu>"
        yield from _studies(dice, student, home, courses["GraduateCourse"], dice.randint(1, 3))
        yield student, ub("advisor"), dice.choice(professors)


def _person(dice: random.Random, base: str, person: str, name: str) -> Iterator[Written]:
    yield person, ub("name"), f'"{name}"'
    yield person, ub("emailAddress"), f'"{name}@{base[7:]}"'
    yield person, ub("telephone"), f'"{dice.randrange(10**9)}"'


def _studies(dice: random.Random, student: str, home: str, courses: list[str], count: int) -> Iterator[Written]:
    yield student, ub("memberOf"), home
    for course in dice.sample(courses, min(count, len(courses))):
        yield student, ub("takesCourse"), course


def _readings(dice: random.Random) -> Iterator[Written]:
    """Observations of 200 instruments in turn: six measures, and what a data cube says of each."""
    number = 0
    while True:
        observation = f"<http://power.example/observation/{number}>"
        yield observation, TYPE, f"<{QB}Observation>"
        yield observation, f"<{QB}dataSet>", "<http://power.example/cube>"
        yield observation, "<http://power.example/instrument>", f"<http://power.example/meter/{number % INSTRUMENTS}>"
        watt = max(0, round(dice.gauss(60, 40)))
        measures = {
            "V_RMS": f"{dice.gauss(230, 3):.1f}",
            "V_THD": f"{dice.uniform(1, 4):.2f}",
            "V_CF": f"{1 + dice.lognormvariate(-1, 0.5):.2f}",
            "W": f"{watt}.0",
            "Wh": f"{watt / 12:.1f}",
            "DPF": f"{dice.uniform(0.8, 1):.2f}",
        }
        for name, value in measures.items():
            yield observation, f"<{SEAS_MEASURES}{name}>", f'"{value}"{_DECIMAL}'
        number += 1
