"""Durations as callers give them, and as we write them.

    timedelta · "5s" · "1h30m" · "PT5S" ─▶ `duration` ─▶ microseconds (int) ─▶ `duration_text` ─▶ "5s"

Every door reads durations here: Python, the command line, settings, HTTP and test files. A bare number is refused at
all of them, because some readers take it as seconds and others as microseconds. Behind the doors a duration is an int
of microseconds.

Not durations of this kind: those in the text of a query, whose syntax is its language's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Final, TypeAlias

from oxiseq.grammar.errors import ArgumentTypeError, ArgumentValueError, OxiseqError
from oxiseq.grammar.parsing.durations import MonthsError, duration_size

Duration: TypeAlias = timedelta | str
"""A timedelta, or a text with a unit: `250ms`, `5s`, `2 min`, `1h30m`, `1d`, `PT5S`."""
LONGEST: Final = 3_652_425 * 86_400_000_000
"""10,000 years in microseconds: no duration is longer."""
UNITS: Final = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
    "µs": 1,
}
"""Unit → microseconds, longest first."""
PATTERN: Final = r"(?:[0-9]{1,20}(?:\.[0-9]{1,20})? ?(?:d|h|min|ms|m|s|us|µs) ?)+"
"""A duration in units, as a regular expression."""
_WRITTEN: Final = ("d", "h", "m", "s", "ms", "us")
_IN_UNITS: Final = re.compile(PATTERN)
_PART: Final = re.compile(r"([0-9.]+) ?([a-zµ]+)")
_NUMBER: Final = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?|nan|inf|infinity)", re.I)
_NEGATIVE: Final = re.compile(r"-\s?[P0-9].*", re.S)
_MOST_DIGITS: Final = 40
_SHOWN: Final = 60
"""Characters of what was given that a message shows."""
_LONGEST_TEXT: Final = 100
_FORMS: Final = '"250ms", "5s", "2 min", "1h30m", "1d" or "PT5S"'
_FINER: Final = "is finer than a microsecond"


def duration(given: object, name: str = "", *, least: int = 0, most: int = LONGEST) -> int:
    """A duration in microseconds, exactly. `name` is that of the parameter, for messages.

    Raises OxiseqError for a bare number, for one below `least` or above `most` microseconds, for months and years, for
    parts of a microsecond, and for anything else.
    """
    refusal = _Refusal(name, given)
    if isinstance(given, timedelta):
        size = _of_timedelta(given, refusal)
    elif isinstance(given, str):
        size = _of_text(given.strip(), refusal, least, most)
    elif isinstance(given, Real | Decimal) and _NUMBER.fullmatch(_plain(given)):
        raise refusal.of_number(_plain(given), least, most, python=True)
    else:
        raise refusal(f"is not a duration: {_FORMS}, or a timedelta is expected")
    if size.denominator != 1:
        raise refusal(_FINER)
    if not least <= size <= most:
        raise refusal.of_range(least, most)
    return int(size)


def data_duration(given: object, name: str = "", *, least: int = 0, most: int = LONGEST) -> int:
    """A duration in JSON or TOML, where a number is as bare as in a text. Raises OxiseqError as `duration` does."""
    bare = isinstance(given, int | float) and not isinstance(given, bool)
    return duration(_plain(given) if bare else given, name, least=least, most=most)


def duration_text(microseconds: int) -> str:
    """A duration as `duration` reads it, in its greatest whole unit: `90m`, `1500ms`, `0s`."""
    if not microseconds:
        return "0s"
    unit = next(unit for unit in _WRITTEN if microseconds % UNITS[unit] == 0)
    return f"{microseconds // UNITS[unit]}{unit}"


def is_in_units(text: str) -> bool:
    """Whether a text looks like `5m` or `1h30m`; `duration` may still refuse it."""
    return _IN_UNITS.fullmatch(text) is not None


class _Refusal:
    """Makes the errors about one given value."""

    def __init__(self, name: str, given: object) -> None:
        told = _shown(given)
        self._told = (f"{name}=" if name else "") + (told if len(told) <= _SHOWN else f"{told[:_SHOWN]}...")

        self._kind = ArgumentValueError if isinstance(given, str | timedelta) else ArgumentTypeError

    def __call__(self, reason: str) -> OxiseqError:
        return self._kind(f"{self._told} {reason}")

    def of_range(self, least: int, most: int) -> OxiseqError:
        """It is too short, or too long."""
        years = " (10,000 years)" if most == LONGEST else ""
        return self(f"is out of range: {duration_text(least)} to {duration_text(most)}{years} is allowed")

    def of_number(self, text: str, least: int, most: int, *, python: bool) -> OxiseqError:
        """It has no unit; the error lists the readings that would be allowed. `python`: a timedelta could be
        written."""
        number = Decimal(text)
        if said := list(_readings(number, least, most, python=python)):
            return self._kind(f"{self._told}: a duration has a unit: say {' or '.join(said)}")
        if number.is_finite() and 0 < number < 1:
            return self(_FINER)
        return self.of_range(least, most)


def _readings(number: Decimal, least: int, most: int, *, python: bool) -> Iterator[str]:
    """What a bare number may have meant: seconds, microseconds."""
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS or len(number.as_tuple().digits) > _MOST_DIGITS:
        return
    for unit in ("s", "us") if number else ("s",):
        size = Fraction(number) * UNITS[unit]
        if size.denominator == 1 and least <= size <= most:
            plain = f"{number or Decimal(0):f}"
            yield f'"{plain}{unit}"' + (f" (or timedelta(seconds={plain}))" if python and unit == "s" else "")


def _plain(number: object) -> str:
    """A number as text; Python refuses to write very long ones."""
    if isinstance(number, int) and not isinstance(number, bool) and abs(number) >= 10**_MOST_DIGITS:
        return "inf" if number > 0 else "-inf"
    return str(number)


def _shown(given: object) -> str:
    if isinstance(given, str):
        return repr(given)[1:-1] or "''"
    return _plain(given) if isinstance(given, int) else repr(given).removeprefix("datetime.")


def _of_timedelta(given: timedelta, refusal: _Refusal) -> Fraction:
    whole = timedelta(given.days, given.seconds, given.microseconds)
    if whole != given:  # pandas counts nanoseconds
        raise refusal(_FINER)
    return Fraction(whole // timedelta(microseconds=1))


def _of_text(text: str, refusal: _Refusal, least: int, most: int) -> Fraction:
    if _NUMBER.fullmatch(text):
        raise refusal.of_number(text, least, most, python=False)
    if len(text) > _LONGEST_TEXT:
        raise refusal(f"is not a duration: {_FORMS} is expected")
    if _NEGATIVE.fullmatch(text):
        raise refusal.of_range(least, most)
    if is_in_units(text):
        parts = [(Fraction(number), UNITS[unit]) for number, unit in _PART.findall(text)]
        sizes = [size for _, size in parts]
        if sizes == sorted(set(sizes), reverse=True):
            return sum((number * size for number, size in parts), Fraction(0))
    if text.startswith("P"):
        try:
            return duration_size(text)
        except MonthsError:
            raise refusal("has months or years, which differ in length: give days, as in P30D") from None
        except ValueError:
            pass  # told below
    raise refusal(f"is not a duration: {_FORMS} is expected")
