"""Times as tests write them: `5m`, `1h30m`, `10:05`, `2024-05-01T10:00:00Z`, integer microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from fractions import Fraction
from string import ascii_letters
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.errors import OxiseqError
from oxiseq.options.kinds import UNITS, data_duration, duration_text, is_in_units
from oxiseq.testing.errors import TestFileError

_NEAR: Final = 9_999 * UNITS["h"]
"""A time is written as a span up to here, if the span has four digits at most."""
_CLOCK: Final = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?")
_DAY: Final = 86_400_000_000
_DATETIME: Final = NamedNode(XSD + "dateTime")
TIME_TOKEN: Final = r"[-+]?\d[-+.:\w]*"
"""What a time looks like, in a regular expression."""


def span(given: Any, name: str = "") -> int:
    """A duration as everywhere (durations.py), in microseconds. Raises TestFileError."""
    try:
        return data_duration(given, name)
    except OxiseqError as error:
        raise TestFileError(str(error)) from None


def absolute(value: Any) -> int:
    """A date, a dateTime (TOML's own or as text) or microseconds. Raises TestFileError."""
    try:
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if isinstance(value, str):
            value = Literal(value, datatype=_DATETIME)
        return to_microseconds(value)
    except (OxiseqError, TypeError):
        raise TestFileError(f"{value!s} is not a time") from None


def reader(zero: int) -> Callable[[Any], int]:
    """Reads times: spans count from `zero` (µs), clock times from the midnight before it."""

    def read(value: Any) -> int:
        if isinstance(value, str):
            text = value.strip()
            if is_in_units(text):
                return zero + span(text)
            if clock := _CLOCK.fullmatch(text):
                seconds = Fraction(int(clock[1]) * 3600 + int(clock[2]) * 60) + Fraction(clock[3] or 0)
                return zero - zero % _DAY + int(seconds * 1_000_000)
            if re.fullmatch(r"[-+]?\d+", text):
                return int(text)
        return absolute(value)

    return read


def writer(zero: int) -> Callable[[int], str]:
    """Writes times as such a test would: `5m` after 1970's beginning or `zero`, if that is short."""

    def write(time: int) -> str:
        since = time - zero
        text = duration_text(since) if 0 <= since <= _NEAR else ""
        return text if 1 <= len(text.rstrip(ascii_letters)) <= 4 else to_text(time)

    return write
