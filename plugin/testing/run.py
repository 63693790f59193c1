"""A case run on its virtual clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.texts import term_text
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.languages.driving import Driver
from oxiseq.languages.reasons.read import Span, reading_of
from oxiseq.languages.reasons.report import WhyRequest, lines
from oxiseq.languages.registry import check_kb, language_for
from oxiseq.matches.rows import EVENTS, Cell, Kind, Row, Times, columns_of, row_of, surplus
from oxiseq.testing.cases import Case, Expected, Stand, load_cases
from oxiseq.testing.words import TestFileError, reader

# --- compare ---------------------------------------------------------------------------------------------

_NOTHING = ("", "-", "UNDEF")
_DURATION = re.compile(r"-?P[\dTDHMS.]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """What was expected and not found, and the other way round; `columns` are those compared. For a mere number
    `count` is what was expected, and `extra` all that was found."""

    columns: tuple[str, ...]
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]
    count: int | None = None


def difference(case: Case, known: Mapping[str, Kind], expected: Expected, found: Sequence[Row]) -> Difference | None:
    """None if all is as expected; `known`: the columns that there are. Raises TestFileError for a cell that cannot
    be read, a column that is unknown."""
    if expected.table is None:
        if expected.count == len(found):
            return None
        columns = tuple(dict.fromkeys(name for row in found for name in row if not name.startswith(EVENTS)))
        return Difference(columns, (), tuple(found), expected.count)
    columns = expected.table.header
    if unknown := [c for c in columns if c not in known]:
        raise TestFileError(f"no column {', '.join(unknown)}; a match has {', '.join(known)}")
    wanted = [
        {name: _cell(case, known[name], text) for name, text in zip(columns, row, strict=True)}
        for row in expected.table.rows
    ]
    missing, extra = surplus(wanted, found, columns), surplus(found, wanted, columns)
    return Difference(columns, missing, extra) if missing or extra else None


def _cell(case: Case, kind: Kind, text: str) -> Cell:
    """What a cell of an expected row means, by its column's kind."""
    time = reader(case.zero)
    if kind == "times":
        return Times(tuple(time(each) for each in text.split()))
    if kind == "number":
        return int(text)
    if text in _NOTHING:
        return None
    if text.startswith("_:"):
        return BlankNode()
    found = case.words.term(text)
    if isinstance(found, BlankNode | Literal | NamedNode):
        return found
    if _DURATION.fullmatch(text):
        return Literal(text, datatype=NamedNode(XSD + "dayTimeDuration"))
    return _time_term(text, time)


def _time_term(text: str, time: Callable[[Any], int]) -> Cell:
    try:
        return to_literal(time(text))
    except TestFileError:
        raise TestFileError(f"{text!r} is neither a term of Turtle nor a time") from None


# --- run -------------------------------------------------------------------------------------------------


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


# --- reasons ---------------------------------------------------------------------------------------------


def reasons(result: Result) -> list[str]:
    """Lines for people, up to where the clock was at the first difference."""
    case = result.case
    until = next(f.until for f in result.failures if f.difference is not None)
    streams: dict[str, list[tuple[int, object]]] = {}
    for event in case.events:
        streams.setdefault(event.stream, []).append((event.time, list(event.graph)))
    span = Span(None, None if until is None else until + 1)
    try:
        asked = WhyRequest(reading_of(case.options, span), 0)
        why = language_for(case.query).why(case.query, streams, case.kb, case.options, asked)
    except OxiseqError as error:
        return [f"why not: unknown: {error}"]
    return ["why not: " + line if number == 0 else line for number, line in enumerate(lines(why, case.written))]


# --- report ----------------------------------------------------------------------------------------------

_PLAIN = ("integer", "decimal", "double", "boolean")
_MOST = 20


def failure_text(result: Result, *, why: bool = True) -> str:
    """All failures of a case; with `why`, also why matches are missing, if that can be determined."""
    lines = [line for failure in result.failures for line in _failure(result.case, failure)]
    if why and any(f.difference is not None and _lacks(f.difference) for f in result.failures):
        from oxiseq.testing.run import reasons  # noqa: PLC0415  only failures need it

        lines += reasons(result)
    return "\n".join(lines)


def _lacks(difference: Difference) -> bool:
    return bool(difference.missing) or (difference.count or 0) > len(difference.extra)


def _failure(case: Case, failure: Failure) -> Iterator[str]:
    if failure.difference is None:
        yield f"{failure.where}: {failure.message}"
        return
    differs = failure.difference
    if differs.count is not None:
        yield f"{failure.where}: {differs.count} matches expected, but {len(differs.extra)} found"
        yield from _rows(case, differs.columns, [(" ", row) for row in differs.extra])
        return
    parts = [
        f"{len(rows)} {what}" for rows, what in ((differs.missing, "missing"), (differs.extra, "not expected")) if rows
    ]
    yield f"{failure.where}: {', '.join(parts)}"
    marked = [("-", row) for row in differs.missing] + [("+", row) for row in differs.extra]
    yield from _rows(case, differs.columns, marked)


def _rows(case: Case, columns: Sequence[str], rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """`-` before what is missing, `+` before what was not expected."""
    if not rows:
        return
    cells = [[cell_text(case, row.get(name)) for name in columns] for _, row in rows[:_MOST]]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]

    def line(mark: str, texts: Sequence[str]) -> str:
        return f"  {mark} {' | '.join(text.ljust(w) for text, w in zip(texts, widths, strict=True))}".rstrip()

    yield line(" ", columns)
    yield from (line(mark, texts) for (mark, _), texts in zip(rows, cells, strict=False))
    if len(rows) > _MOST:
        yield f"    ... and {len(rows) - _MOST} more"


def cell_text(case: Case, cell: Cell) -> str:
    """A cell as a test would write it."""
    match cell:
        case None:
            return "-"
        case Times(of):
            return " ".join(case.written(t) for t in of)
        case int():
            return str(cell)
        case NamedNode():
            return short_iri(cell, case.words.prefixes)
        case Literal() if cell.datatype.value.rpartition("#")[2] in _PLAIN and "e" not in cell.value.lower():
            return cell.value
        case _:
            return term_text(cell)


def short_iri(iri: NamedNode, prefixes: object) -> str:
    """`:ann` where a prefix allows it, else `<...>`."""
    if isinstance(prefixes, dict):
        for name, namespace in prefixes.items():
            local = iri.value.removeprefix(namespace)
            if local != iri.value and local.replace("_", "a").replace("-", "a").isalnum():
                return f"{name}:{local}"
    return str(iri)
