"""A case run on its virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.grammar.records import dataclass
from oxiseq.languages.driving import Driver
from oxiseq.languages.registry import check_kb, language_for
from oxiseq.matches.rows import columns_of, row_of
from oxiseq.testing.cases import Case, Expected, Stand, load_cases
from oxiseq.testing.compare import Difference, difference
from oxiseq.testing.errors import TestFileError


@dataclass(frozen=True, slots=True)
class Failure:
    """What was not as expected: `where` is `at 5m` or `at the end`; a difference of rows, or a plain `message`."""

    where: str
    difference: Difference | None = None
    message: str = ""
    until: int | None = None
    """The clock of then (µs), None at the end."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case; it passed if there are no failures. `matches`: how many were found."""

    case: Case
    failures: tuple[Failure, ...]
    matches: int

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.failures


def run_file(path: str | Path) -> list[Result]:
    """Run all cases of a file. Raises TestFileError, QueryError, KbError, OSError."""
    return [run_case(case) for case in load_cases(Path(path))]


def run_case(case: Case) -> Result:
    """Run one case. Raises TestFileError, KbError."""
    language = language_for(case.query)
    check_kb(language, case.kb)
    language.prepare()
    run = _Running(case, language.driver(case.query, case.kb, case.options))
    try:
        run.work()
    except TestFileError as error:
        raise TestFileError(f"{case.place}: {error}") from None
    return Result(case, tuple(run.failures), len(run.found))


@dataclass(slots=True)
class _Running:
    case: Case
    driver: Driver
    found: list[dict[str, Any]] = field(default_factory=list)
    told: int = 0
    """How many had been found at the are before."""
    failures: list[Failure] = field(default_factory=list)

    def work(self) -> None:
        """Events in order of arrival; the clock is before the first that is later."""
        stands = sorted(self.case.stands, key=lambda stand: stand.time)
        for event in self.case.events:
            while stands and stands[0].time < event.time:
                self.stand(stands.pop(0))
            self.driver.run.push(event.stream, encode_events([(event.time, event.graph)], self.driver.terms))
            self.advance()
        for stand in stands:
            self.stand(stand)
        if self.case.ends:
            self.punctuate(AFTER_ALL)
        self.judge("at the end", None, self.case.expect, None, self.case.late)

    def punctuate(self, time: int) -> None:
        for iri in dict.fromkeys(self.driver.streams.values()):
            self.driver.run.punctuate(iri, time)
        self.advance()

    def advance(self) -> None:
        if batches := self.driver.run.advance():
            block = self.driver.shape.block(batches)
            self.found += [row_of(block.match(i)) for i in range(len(block))]

    def stand(self, stand: Stand) -> None:
        self.punctuate(stand.time + 1)
        where = f"at {self.case.written(stand.time)}"
        self.judge(where, stand.time, stand.expect, stand.new, stand.late)
        self.told = len(self.found)

    def judge(
        self, where: str, until: int | None, expect: Expected | None, new: Expected | None, late: int | None
    ) -> None:
        for wanted, rows, what in ((expect, self.found, ""), (new, self.found[self.told :], ", new since then before")):
            differs = None if wanted is None else difference(self.case, columns_of(self.driver.shape), wanted, rows)
            if differs is not None:
                self.failures.append(Failure(where + what, differs, until=until))
        if late is not None and late != self.driver.run.late:
            message = f"{late} late events expected, but {self.driver.run.late} were"
            self.failures.append(Failure(where, message=message))


def each_result(files: list[Path], chosen: Callable[[Case], bool] = lambda case: True) -> Iterator[tuple[Path, Result]]:
    """Results as they come. Raises as `run_file`."""
    for path in files:
        for case in load_cases(path):
            if chosen(case):
                yield path, run_case(case)
