"""Times as tests write them: `5m`, `1h30m`, `10:05`, `2024-05-01T10:00:00Z`, integer microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from fractions import Fraction
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.errors import OxiseqError
from oxiseq.testing.errors import TestFileError

_UNITS: Final = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000,
}  # fmt: skip
_PART: Final = r"(\d+(?:\.\d+)?)(us|ms|min|s|m|h|d)"
_SPAN: Final = re.compile(rf"(?:{_PART})+")
_CLOCK: Final = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?")
_DAY: Final = 86_400_000_000
_DATETIME: Final = NamedNode(XSD + "dateTime")
TIME_TOKEN: Final = r"[-+]?\d[-+.:\w]*"
"""What a time looks like, in a regular expression."""


def span(text: Any) -> int:
    """A duration: `5m`, `1h30m`, `200ms`, or integer microseconds. Raises TestFileError."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    if isinstance(text, str) and _SPAN.fullmatch(text.strip()):
        total = sum(Fraction(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
        if total.denominator == 1:
            return int(total)
    raise TestFileError(f"{text!r} is not a duration: 5m, 1h30m, 10s, 200ms or integer microseconds expected")


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


def reader(origin: int) -> Callable[[Any], int]:
    """Reads times: spans count from `origin` (µs), clock times from the midnight before it."""

    def read(value: Any) -> int:
        if isinstance(value, str):
            text = value.strip()
            if _SPAN.fullmatch(text):
                return origin + span(text)
            if clock := _CLOCK.fullmatch(text):
                seconds = Fraction(int(clock[1]) * 3600 + int(clock[2]) * 60) + Fraction(clock[3] or 0)
                return origin - origin % _DAY + int(seconds * 1_000_000)
            if re.fullmatch(r"[-+]?\d+", text):
                return int(text)
        return absolute(value)

    return read


def writer(origin: int) -> Callable[[int], str]:
    """Writes times as such a test would: `5m` after 1970's beginning or `origin`, if that is short."""

    def write(time: int) -> str:
        since = time - origin
        if since == 0:
            return "0s"
        unit = next(u for u in ("h", "min", "s", "ms", "us") if since % _UNITS[u] == 0)
        if since < 0 or since // _UNITS[unit] > 9_999:
            return to_text(time)
        return f"{since // _UNITS[unit]}{'m' if unit == 'min' else unit}"

    return write
