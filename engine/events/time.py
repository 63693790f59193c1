"""Times: signed 64-bit microseconds since 1970-01-01T00:00:00Z (semantics.md, section 1).

A dateTime without a zone is taken as UTC here: event times are totally ordered, unlike xsd:dateTime.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import TYPE_CHECKING, Final, TypeAlias

from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.errors import ArgumentTypeError, EventError
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.value import read_datetime
from oxiseq.grammar.terms import INTEGER_TYPES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MICROSECONDS: Final = 1_000_000
FIRST_TIME: Final = kinds.FIRST_TIME
LAST_TIME: Final = kinds.LAST_TIME
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Time: TypeAlias = datetime | int | str
"""Microseconds since 1970, a datetime (without a zone: UTC), or ISO 8601 text."""
FORMATS: Final = "2024-05-01T10:00:00Z, 2024-05-01 or integer microseconds"
"""How times are written, for messages."""
_DATE = re.compile(r"-?[0-9]{4,}-[0-9][0-9]-[0-9][0-9]", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_DATETIME = NamedNode(XSD + "dateTime")
_DURATION = NamedNode(XSD + "dayTimeDuration")
OUTSIDE: Final = "a time outside of the years 1 to 9999"
"""Why it is not taken."""


def to_microseconds(time: Time | Literal) -> int:
    """A time as microseconds since 1970 UTC.

    An int is taken as microseconds. A text is an xsd:dateTime, or a date, which means its first instant. A datetime or
    xsd:dateTime without a zone means UTC. Literals of xsd:dateTime, xsd:dateTimeStamp and of the integer types
    (microseconds) are accepted. Digits below a microsecond, which .NET, Java and Go write, are cut off. Raises
    EventError for another text or literal and times outside of the years 1 to 9999, TypeError for another type.
    """
    if type(time) is int:
        return _in_range(time, time)
    if isinstance(time, bool):
        raise ArgumentTypeError("not a time: a boolean")
    number: object = time
    if isinstance(number, Integral):  # NumPy's, too
        return _in_range(int(number), time)
    if isinstance(time, datetime):
        aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
        return _in_range((aware - _EPOCH) // timedelta(microseconds=1), time)
    if isinstance(time, str):
        if not time.isascii():
            raise EventError(None, None, f"not a valid time: {time[:200]!r}; {FORMATS} expected")
        text = f"{time}T00:00:00Z" if _DATE.fullmatch(time) else time
        return _in_range(_literal_microseconds(Literal(text, datatype=_DATETIME)), time)
    if isinstance(time, Literal):
        return _in_range(_literal_microseconds(time), time)
    raise ArgumentTypeError(
        f"not a time: {type(time).__name__}; a datetime, ISO 8601 text or int microseconds expected"
    )


def _literal_microseconds(literal: Literal) -> int:
    datatype = literal.datatype.value
    if datatype in INTEGER_TYPES and _INTEGER.fullmatch(literal.value) is not None:
        return int(literal.value)
    if datatype not in (XSD + "dateTime", XSD + "dateTimeStamp"):
        reason = f"not a time: {literal}; xsd:dateTime or xsd:integer (microseconds) expected"
        raise EventError(None, None, reason)
    read = read_datetime(literal.value)
    if read is None:
        raise EventError(None, None, f"not a valid time: {str(literal)[:200]}; {FORMATS} expected")
    return read.microseconds


def _in_range(microseconds: int, given: object) -> int:
    if FIRST_TIME <= microseconds <= LAST_TIME:
        return microseconds
    raise EventError(None, None, f"{OUTSIDE}: {str(given)[:80]}")


def outside(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of the times (µs) that are outside of the years 1 to 9999."""
    if not len(times) or (int(times.min()) >= FIRST_TIME and int(times.max()) <= LAST_TIME):
        return times[:0]
    found: NDArray[np.int64] = ((times < FIRST_TIME) | (times > LAST_TIME)).nonzero()[0]
    return found


def to_datetime(microseconds: int) -> datetime:
    """The time as a datetime in UTC. Raises OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=microseconds)


def to_text(microseconds: int) -> str:
    """The lexical form of xsd:dateTime in UTC, with the shortest fraction: `2024-05-01T10:00:00.5Z`."""
    seconds, micros = divmod(microseconds, MICROSECONDS)
    days, second = divmod(seconds, 86_400)
    year, month, day = civil_from_days(days)
    sign, fraction = "-" if year < 0 else "", _fraction(micros)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}{fraction}"
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{clock}Z"


def to_literal(microseconds: int) -> Literal:
    """The time as an xsd:dateTime in UTC, in the store's normal form."""
    return Literal(to_text(microseconds), datatype=_DATETIME)


def to_duration_literal(microseconds: int) -> Literal:
    """A span of time as the store writes an xsd:dayTimeDuration: `P1DT2H3M4.5S`, `PT0S`, `-PT1M`."""
    seconds, micros = divmod(abs(microseconds), MICROSECONDS)
    days, seconds = divmod(seconds, 86_400)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    clock = f"{hours}H" * (hours > 0) + f"{minutes}M" * (minutes > 0)
    if seconds or micros:
        clock += f"{seconds}{_fraction(micros)}S"
    if not days and not clock:
        clock = "0S"
    text = "-" * (microseconds < 0) + "P" + f"{days}D" * (days > 0) + ("T" + clock if clock else "")
    return Literal(text, datatype=_DURATION)


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Days since 1970-01-01 → year, month, day (proleptic Gregorian, year 0 exists; Hinnant's algorithm)."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _fraction(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""
