"""The time columns of rows → microseconds since 1970 UTC.

A cell is a number in the mapping's unit, an xsd:dateTime (or with a blank for the T, or a date alone), a datetime, or a
number as text. A clock without a zone is that of the mapping's zone; where clocks are set back it is the earlier one,
and one that they skip is taken as before the change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from math import floor
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import FIRST_TIME, FORMATS, LAST_TIME, outside, to_microseconds
from oxiseq.engine.events.units import TimeUnit, all_as_microseconds, as_microseconds
from oxiseq.grammar.records import dataclass
from oxiseq.mappings.cells import lexical_of
from oxiseq.mappings.errors import MappingError

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
