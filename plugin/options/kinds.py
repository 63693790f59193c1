"""The kinds of values that options have: how each is read from Python and from data, and written as data.

Data is what JSON, TOML and the parameters of an address hold: text, numbers, lists, objects. What is written is read
again with the same meaning.

Durations as callers give them, and as we write them.

    timedelta · "5s" · "1h30m" · "PT5S" ─▶ `duration` ─▶ microseconds (int) ─▶ `duration_text` ─▶ "5s"

Every door reads durations here: Python, the command line, settings, HTTP and test files. A bare number is refused at
all of them, because some readers take it as seconds and others as microseconds. Behind the doors a duration is an int
of microseconds.

Not durations of this kind: those in the text of a query, whose syntax is its language's.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.grammar.errors import ArgumentTypeError, ArgumentValueError, OxiseqError
from oxiseq.grammar.parsing.clauses import MonthsError, duration_size
from oxiseq.grammar.records import dataclass
from oxiseq.options.query_text import QueryLike, query_text

# --- durations -------------------------------------------------------------------------------------------

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
_SENDABLE: Final = 200
"""Characters of a name in a header."""
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


# --- kinds -----------------------------------------------------------------------------------------------

T = TypeVar("T")
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)


class Kind(ABC, Generic[T]):
    """What values an option has. `unit`: for the reference; `schema`: of the value as JSON."""

    unit: ClassVar[str]

    @property
    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the value as data."""

    @abstractmethod
    def read(self, given: Any, name: str) -> T:
        """A value that Python code gives. Raises OxiseqError."""

    def data(self, given: Any, name: str) -> T:
        """A value in JSON, TOML or an address. Raises OxiseqError."""
        return self.read(given, name)

    def write(self, value: T) -> Any:
        """As JSON values."""
        return value


class DurationKind(Kind[int]):
    """Microseconds inside."""

    unit: ClassVar[str] = "a duration: `5s`, `10m`, `2h`, `PT5S`; in Python also a timedelta"

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "string",
            "examples": ["5s", "250ms", "PT5S"],
            "description": "A duration with its unit: d, h, m (or min), s, ms, us; or ISO 8601 without months and "
            "years.",
        }

    def read(self, given: Any, name: str) -> int:
        return duration(given, name, most=LONGEST)

    def data(self, given: Any, name: str) -> int:
        return data_duration(given, name, most=LONGEST)

    def write(self, value: int) -> str:
        return duration_text(value)


class TimeKind(Kind[int]):
    """Microseconds since 1970 inside."""

    unit: ClassVar[str] = "a time: ISO 8601 text, or integer microseconds since 1970; in Python also a datetime"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "integer"], "examples": ["2024-05-01T10:00:00Z"]}

    def read(self, given: Any, name: str) -> int:
        return time_of(given, name)

    def write(self, value: int) -> str:
        return to_text(value)


class TimesKind(Kind[tuple[int, ...]]):
    """Several."""

    unit: ClassVar[str] = "a list of times"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": TIME.schema}

    def read(self, given: Any, name: str) -> tuple[int, ...]:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise ArgumentValueError(f"{name} is a list of times, not {given!r}"[:200])
        return tuple(time_of(each, name) for each in given)

    def write(self, value: tuple[int, ...]) -> list[str]:
        return [to_text(each) for each in value]


@dataclass(frozen=True, slots=True)
class WordKind(Kind[Any]):
    """One of some words, in any case; `make` turns it into what is kept."""

    words: tuple[str, ...]
    make: Callable[[str], Any] = str

    @property
    def unit(self) -> str:  # type: ignore[override]  # the words are an instance's
        return "one of " + ", ".join(f"`{word}`" for word in self.words)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def read(self, given: Any, name: str) -> Any:
        found = next((w for w in self.words if isinstance(given, str) and w.lower() == given.lower()), None)
        if found is None:
            raise ArgumentValueError(f"{name}={repr(given)[:60]} is not known; known: {', '.join(self.words)}")
        return self.make(found)

    def write(self, value: Any) -> str:
        return str(getattr(value, "value", value))


@dataclass(frozen=True, slots=True)
class CountKind(Kind[int]):
    """A whole number, from `least` to `most`."""

    unit: ClassVar[str] = "a whole number"
    least: int = 0
    most: int = 1 << 62

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least}

    def read(self, given: Any, name: str) -> int:
        if isinstance(given, int) and not isinstance(given, bool) and self.least <= given <= self.most:
            return given
        raise ArgumentValueError(f"{name} is a whole number, {self.least} or more, not {str(given)[:60]!r}")

    def data(self, given: Any, name: str) -> int:
        digits = isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) <= 19
        return self.read(int(given) if digits else given, name)


def whole_number(given: Any, name: str, least: int = 0) -> int:
    """An argument that counts something. Raises ArgumentValueError."""
    return CountKind(least).read(given, name)


def in_header(text: str) -> bool:
    """Whether a text can be sent in a header of HTTP as it is."""
    return text.isascii() and text.isprintable() and text == text.strip()


def check_sendable(text: object, argument: str) -> None:
    """Raise ArgumentValueError for what cannot name an event or a session: it goes into a header or an address."""
    if not (isinstance(text, str) and 0 < len(text) <= _SENDABLE and in_header(text)):
        raise ArgumentValueError(f"{argument}={text!r}: it has 1 to {_SENDABLE} visible ASCII characters"[:200])


class TextKind(Kind[str]):
    """A text that is not empty."""

    unit: ClassVar[str] = "text"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}

    def read(self, given: Any, name: str) -> str:
        if isinstance(given, str) and given:
            return given
        raise ArgumentValueError(f"{name} is a text that is not empty, not {given!r}"[:200])


class IriKind(Kind[str]):
    """An IRI, without brackets inside."""

    unit: ClassVar[str] = "an IRI"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "iri"}

    def read(self, given: Any, name: str) -> str:
        text = given.value if isinstance(given, NamedNode) else given
        if isinstance(text, str):
            try:
                return NamedNode(text.removeprefix("<").removesuffix(">")).value
            except ValueError:
                pass  # told below
        raise ArgumentValueError(f"{name} is an IRI, not {given!r}"[:200])


class NamesKind(Kind[Mapping[str, str]]):
    """Names → IRIs."""

    unit: ClassVar[str] = "names and their IRIs"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": "string"}}

    def read(self, given: Any, name: str) -> Mapping[str, str]:
        if not isinstance(given, Mapping) or not all(isinstance(t, str) for pair in given.items() for t in pair):
            raise ArgumentValueError(f"{name} are an object from names to IRIs, not {given!r}"[:200])
        return dict(given)


class QueriesKind(Kind[tuple[str, ...]]):
    """Texts of queries of one language, unchecked."""

    unit: ClassVar[str] = "a list of queries"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}

    def read(self, given: Any, name: str) -> tuple[str, ...]:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise ArgumentValueError(f"{name} are a list of texts, not {given!r}"[:200])
        return tuple(_rule(each, name, number) for number, each in enumerate(given, 1))

    def data(self, given: Any, name: str) -> tuple[str, ...]:
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
            raise ArgumentValueError(f"{name} are a list of texts, not {given!r}"[:200])
        return tuple(given)

    def write(self, value: tuple[str, ...]) -> list[str]:
        return list(value)


def _rule(given: QueryLike, name: str, number: int) -> str:
    try:
        return query_text(given).text
    except OxiseqError as error:
        raise ArgumentValueError(f"{name}: number {number}: {error}") from None


def time_of(given: Any, name: str) -> int:
    """A time as microseconds since 1970: an int, a datetime, xsd:dateTime as text, a date (its first instant), or
    digits. Raises OxiseqError."""
    try:
        digits = isinstance(given, str) and _INTEGER.fullmatch(given.strip())
        return to_microseconds(int(given) if digits else given)
    except (EventError, TypeError, ValueError, OverflowError) as error:
        reason = error.reason if isinstance(error, EventError) else str(error)
        raise ArgumentValueError(
            f"{name} is no time: 2024-05-01T10:00:00Z, 2024-05-01 or integer microseconds are expected: {reason}"
        ) from None


DURATION: Final = DurationKind()
TIME: Final = TimeKind()
TIMES: Final = TimesKind()
COUNT: Final = CountKind()
TEXT: Final = TextKind()
IRI: Final = IriKind()
NAMES: Final = NamesKind()
QUERIES: Final = QueriesKind()
