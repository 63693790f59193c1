"""The time columns of rows → microseconds since 1970 UTC.

A cell is a number in the mapping's unit, an xsd:dateTime (or with a blank for the T, or a date alone), a datetime, or a
number as text. A clock without a zone is that of the mapping's zone; where clocks are set back it is the earlier one,
and one that they skip is taken as before the change.

The time of rows as a SPARQL expression over their columns → cells, which times.py reads.

    "time": {"expression": "STRDT(CONCAT(?day, 'T', ?clock, ':00Z'), xsd:dateTime)"}
    "time": {"expression": "?started + ?offset / 1000"}, "unit": "s"

Oxigraph evaluates it for some thousand rows at a time. The bounds of a CONSTRUCT mapping are its bounds: it reads
nothing but the columns, and makes no text that is much longer than they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from math import floor
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.errors import EventError, KbError
from oxiseq.engine.events.time import FIRST_TIME, FORMATS, LAST_TIME, outside, to_microseconds
from oxiseq.engine.events.units import TimeUnit, all_as_microseconds, as_microseconds
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.algebra import Bind
from oxiseq.grammar.errors import QueryError, span_at
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.rows import Rows
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.kb_loader.tables import variable_name
from oxiseq.mappings.construct import checked_query, text_growth, variables
from oxiseq.mappings.plan import MappingError, check_text, is_iri, lexical_of, longest
from oxiseq.mappings.rows import Table

# --- times -----------------------------------------------------------------------------------------------

_PLAIN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(Z?)", re.ASCII
)
_ZONED: Final = re.compile(r".*(?:Z|[+-][0-9]{2}:[0-9]{2})", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])([0-9]{2}):([0-9]{2})", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_PER_SECOND: Final[dict[TimeUnit, int]] = {"s": 1_000_000, "ms": 1_000, "us": 1}
_QUARTER: Final = 900_000_000
"""Zones change their offset at quarters of an hour."""
_EPOCH: Final = datetime(1970, 1, 1)
_SHOWN: Final = 60


def zone_of(name: object) -> tzinfo:
    """`Europe/Berlin`, `UTC`, `Z` or `+02:00`. Raises MappingError."""
    if isinstance(name, str):
        if name in ("Z", "UTC"):
            return UTC
        if (offset := _OFFSET.fullmatch(name)) is not None and int(offset[2]) < 14 and int(offset[3]) < 60:
            minutes = int(offset[2]) * 60 + int(offset[3])
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        try:
            if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+\-/]{0,60}", name):
                return ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError, ValueError):
            pass
    raise MappingError(f"zone: a name as Europe/Berlin or an offset as +02:00 is expected, not {name!r}"[:200])


@dataclass(frozen=True, slots=True)
class Clock:
    """How the cells of a time are read: the unit of numbers (None: microseconds), the zone of clocks without one."""

    unit: TimeUnit | None = None
    zone: tzinfo = UTC

    def read(self, columns: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], dict[int, str]]:
        """The times of n rows from one column, or several that are joined as a date and a time of day; by row, why it
        has none (its time is any then)."""
        values = columns[0] if len(columns) == 1 else [_joined(row) for row in zip(*columns, strict=True)]
        found = self._numbers(values)
        if found is None:
            found = self._texts(values)
        return found if found is not None else self._one_by_one(values)

    def _numbers(self, values: Sequence[Any]) -> tuple[NDArray[np.int64], dict[int, str]] | None:
        """Where all are integers of 64 bits."""
        if set(map(type, values)) != {int}:
            return None
        try:
            times = all_as_microseconds(np.array(values, np.int64), self.unit)
        except (OverflowError, EventError):
            return None
        return None if len(outside(times)) else (times, {})

    def _texts(self, values: Sequence[Any]) -> tuple[NDArray[np.int64], dict[int, str]] | None:
        """Where all are dateTimes of the usual shape, all with Z or all without a zone."""
        if set(map(type, values)) != {str}:
            return None
        matches = list(map(_PLAIN.fullmatch, values))
        if None in matches:
            return None
        ends = {match[1] for match in matches if match is not None}
        if len(ends) != 1:
            return None
        try:
            clocks = np.array([v[:-1] for v in values] if ends == {"Z"} else values, "datetime64[us]").view(np.int64)
        except ValueError:  # the 30th of February
            return None
        times = clocks if ends == {"Z"} or self.zone is UTC else self._in_zone(clocks)
        return None if len(outside(times)) else (times, {})

    def _in_zone(self, clocks: NDArray[np.int64]) -> NDArray[np.int64]:
        quarters, of = np.unique(clocks // _QUARTER, return_inverse=True)
        return clocks - np.array([self._offset(int(q) * _QUARTER) for q in quarters], np.int64)[of]

    def _offset(self, clock: int) -> int:
        """Of the zone at a clock without one (µs)."""
        try:
            offset = (_EPOCH + timedelta(microseconds=clock)).replace(tzinfo=self.zone).utcoffset()
        except OverflowError:
            return 0
        return (offset or timedelta()) // timedelta(microseconds=1)

    def _one_by_one(self, values: Sequence[Any]) -> tuple[NDArray[np.int64], dict[int, str]]:
        times, wrong = np.zeros(len(values), np.int64), dict[int, str]()
        for row, value in enumerate(values):
            try:
                times[row] = self.one(value)
            except EventError as error:
                wrong[row] = error.reason
        return times, wrong

    def one(self, value: Any) -> int:
        """The time of one cell. Raises EventError."""
        if value is None or value == "":
            raise EventError(None, None, "there is no time")
        if isinstance(value, datetime):
            return to_microseconds(value.replace(tzinfo=self.zone) if value.tzinfo is None else value)
        if hasattr(value, "item") and not isinstance(value, int | float):  # a scalar of NumPy's
            value = value.item()
        if isinstance(value, float | Decimal) and not isinstance(value, bool):
            return self._number(Decimal(repr(value)) if isinstance(value, float) else value, value)
        if isinstance(value, int) and not isinstance(value, bool):
            return to_microseconds(as_microseconds(value, self.unit))
        if isinstance(value, str):
            return self._text(value.strip())
        raise EventError(None, None, f"not a time: {str(value)[:_SHOWN]!r}")

    def _number(self, number: Decimal, given: object) -> int:
        if not number.is_finite() or abs(number) > 10**40:
            raise EventError(None, None, f"not a time: {str(given)[:_SHOWN]}")
        if self.unit is None and number != int(number):
            raise EventError(None, None, f"{str(given)[:_SHOWN]} has a fraction: the mapping is to say its unit")
        micros = number / 1_000 if self.unit == "ns" else number * _PER_SECOND[self.unit or "us"]
        return to_microseconds(floor(micros))

    def _text(self, text: str) -> int:
        if _NUMBER.fullmatch(text):
            if "." not in text:
                return to_microseconds(as_microseconds(int(text), self.unit))
            try:
                return self._number(Decimal(text), text)
            except InvalidOperation:
                raise EventError(None, None, f"not a time: {text[:_SHOWN]!r}") from None
        text = text + "T00:00:00" if _DATE.fullmatch(text) else text.replace(" ", "T", 1)
        try:
            found = to_microseconds(text)
        except EventError:
            raise EventError(None, None, f"not a valid time: {text[:_SHOWN]!r}; {FORMATS} expected") from None
        if self.zone is UTC or _ZONED.fullmatch(text[10:]):
            return found
        local = found - self._offset(found)
        if not FIRST_TIME <= local <= LAST_TIME:
            raise EventError(None, None, f"not a time: {text[:_SHOWN]!r}")
        return local


def _joined(parts: tuple[Any, ...]) -> str | None:
    if any(part is None or part == "" for part in parts):
        return None
    return "T".join(lexical_of(part).strip() for part in parts)


def whole_numbers(values: Sequence[Any]) -> list[int]:
    """Those that are integers, also as texts: for a guess at their unit."""
    found = [int(v) for v in values if isinstance(v, str) and len(v) < 41 and _NUMBER.fullmatch(v) and "." not in v]
    return found + [v for v in values if isinstance(v, int) and not isinstance(v, bool)]


# --- moment ----------------------------------------------------------------------------------------------

_TOGETHER: Final = 4096
_LONGEST: Final = 8192
"""Characters of an expression."""
_TIME: Final = "urn:oxiseq:time"
_ROW: Final = "urn:oxiseq:row:"
_PYTHON: Final[dict[str, type]] = {
    XSD + "integer": int,
    XSD + "decimal": Decimal,
    XSD + "double": float,
    XSD + "float": float,
}


class Moment:
    """An expression. `columns`: the variables that it reads. Raises MappingError, with the place in the text."""

    def __init__(self, given: object, prefixes: Mapping[str, str]) -> None:
        text = given.get("expression") if isinstance(given, Mapping) and len(given) == 1 else None
        if not isinstance(text, str):
            raise MappingError(f'time: a column, several, or {{"expression": "..."}} is expected, not {given!r}'[:200])
        if len(text) > _LONGEST:
            raise MappingError(f"time: an expression has at most {_LONGEST:,} characters, not {len(text):,}")
        number, row, time = (_free(name, text) for name in ("number", "row", "time"))
        declared = "".join(f"PREFIX {p}: <{iri}> " for p, iri in prefixes.items() if f"{p}:" in text and is_iri(iri))
        head = (
            f"{declared}CONSTRUCT {{ ?{row} <{_TIME}> ?{time} }} WHERE {{ "
            f'BIND(IRI(CONCAT("{_ROW}", STR(?{number}))) AS ?{row}) BIND('
        )
        try:
            query = checked_query(f"{head}{text}\n AS ?{time}) }}")
            self._query = Query(f"{head}{text}\n AS ?{time}) }}", "the time's expression")
        except (MappingError, KbError) as error:
            raise MappingError(_in_expression(error, text, len(head))) from error
        if [type(each) for each in query.body.where.elements] != [Bind, Bind] or len(query.template) != 1:
            raise MappingError("time: one expression is expected, as ?started + ?offset")
        self._number, self._growth = number, text_growth(query)
        self.columns = tuple(name for name in variables(query) if name != number)
        if not self.columns:
            raise MappingError("time: the expression reads no column")

    def cells(self, table: Table) -> list[Any]:
        """Its value for each row of a table; None where it has none. Raises EventError, LimitError."""
        columns = [_column(table, name) for name in self.columns]
        found: list[Any] = [None] * len(table)
        check_text(self._growth * sum(longest(row) for row in zip(*columns, strict=True)))
        for start in range(0, len(table), _TOGETHER):
            numbers = range(start, min(start + _TOGETHER, len(table)))
            parts = [column[start : start + _TOGETHER] for column in columns]
            rows = Rows((self._number, *self.columns), list(zip(numbers, *parts, strict=True)), [None] * len(numbers))
            try:
                for triple in self._query.triples(rows):
                    assert isinstance(triple.subject, NamedNode)
                    found[int(triple.subject.value.removeprefix(_ROW))] = _value(triple.object)
            except (KbError, ValueError) as error:
                raise EventError(None, None, str(error)) from error
        return found


def _free(name: str, text: str) -> str:
    """A variable's name that the text does not have."""
    while name in text:
        name += "_"
    return name


def _in_expression(error: MappingError | KbError, text: str, before: int) -> str:
    """An error of the whole query as one of the expression, which begins `before` characters into it."""
    found = error.__cause__
    if not isinstance(found, QueryError):
        return f"time: {error}"
    start, end = (min(max(0, at - before), len(text)) for at in (found.span.start, found.span.end))
    ended = start == len(text)  # what is met there is ours
    own = QueryError(
        "the expression ends too early" if ended else found.message,
        span_at(text, start, end),
        text,
        hint="" if ended else found.hint,
        expected=found.expected,
    )
    return f"the time's expression: {own}"


def _column(table: Table, variable: str) -> Sequence[Any]:
    """The values of the column that is this variable. Raises EventError where two are."""
    named = [name for name in table.columns if variable_name(name) == variable]
    if len(named) > 1:
        raise EventError(None, None, f"the columns {named[0]!r} and {named[1]!r} are the same variable ?{variable}")
    return table.column(named[0] if named else variable)


def _value(term: object) -> Any:
    """As times.py takes it: a number, or the text of anything else, also of what STRDT calls a number."""
    if not isinstance(term, Literal):
        return str(term)
    kind = _PYTHON.get(term.datatype.value, str)
    try:
        return kind(term.value)
    except (ValueError, InvalidOperation):
        return term.value
