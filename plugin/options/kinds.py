"""The kinds of values that options have: how each is read from Python and from data, and written as data.

Data is what JSON, TOML and the parameters of an address hold: text, numbers, lists, objects. What is written is read
again with the same meaning.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar

from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentValueError, EventError, OxiseqError
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.grammar.records import dataclass
from oxiseq.options.durations import LONGEST, data_duration, duration, duration_text
from oxiseq.options.query_text import QueryLike, query_text

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
