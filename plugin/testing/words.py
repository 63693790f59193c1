"""RDF as tests write it: Turtle with the prefixes of the file and of the query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from fractions import Fraction
from string import ascii_letters
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.events.time import to_microseconds, to_text
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.normal import XSD, normalise
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.options.kinds import UNITS, data_duration, duration_text, is_in_units

# --- errors ----------------------------------------------------------------------------------------------


class TestFileError(OxiseqError):
    """A file of tests that cannot be read as one; the message says where."""

    __test__ = False  # pytest collects classes by their names


# --- tables ----------------------------------------------------------------------------------------------

_RULE = re.compile(r"[-:|+\s]+")
_BAR = re.compile(r'\|(?=(?:[^"\\]|\\.|"(?:[^"\\]|\\.)*")*$)')
"""A bar that is not inside a string."""


@dataclass(frozen=True, slots=True)
class Table:
    """Column names, and rows of as many cells."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_table(text: str) -> Table:
    """Lines that are empty or begin with `#` are left out. Raises TestFileError."""
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise TestFileError("a table needs a line of column names")
    header = _cells(lines[0])
    if len(set(header)) != len(header):
        raise TestFileError(f"a column is named twice: {lines[0]}")
    rows = [_cells(line) for line in lines[1:] if not (_RULE.fullmatch(line) and "-" in line)]
    for row in rows:
        if len(row) != len(header):
            raise TestFileError(f"{len(header)} cells expected ({' | '.join(header)}), but {len(row)}: {row}")
    return Table(header, tuple(rows))


def _cells(line: str) -> tuple[str, ...]:
    if line.startswith("|") and line.endswith("|") and len(line) > 1:
        line = line[1:-1]
    return tuple(cell.strip() for cell in _BAR.split(line))


# --- times -----------------------------------------------------------------------------------------------

_NEAR: Final = 9_999 * UNITS["h"]
"""A time is written as a span up to here, if the span has four digits at most."""
_CLOCK: Final = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?")
_DAY: Final = 86_400_000_000
_DATETIME: Final = NamedNode(XSD + "dateTime")
TIME_TOKEN: Final = r"[-+]?\d[-+.:\w]*"
"""What a time looks like, in a regular expression."""


def span(given: Any, name: str = "") -> int:
    """A duration as everywhere, in microseconds. Raises TestFileError."""
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


# --- words -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Words:
    """Prefixes, and the namespace of bare words (CEQL's VOCAB, else the prefix without a name)."""

    prefixes: Mapping[str, str]
    vocab: str | None

    def triples(self, text: str) -> tuple[Triple, ...]:
        """The triples of a Turtle text. Raises TestFileError."""
        body = text.strip()
        if body and not body.endswith("."):
            body += " ."
        head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in self.prefixes.items())
        try:
            return tuple(quad.triple for quad in parse(head + body, RdfFormat.TURTLE))
        except (SyntaxError, ValueError) as error:
            reason = syntax_reason(error) if isinstance(error, SyntaxError) else str(error)
            raise TestFileError(f"not Turtle: {reason}\n  {body}") from None

    def term(self, text: str) -> Term | None:
        """One term of Turtle in the store's normal form; None if the text is not a term."""
        try:
            (triple,) = self.triples(f"<urn:s> <urn:p> {text}")
        except (TestFileError, ValueError):
            return None
        found: Any = triple.object
        return normalise(found) if isinstance(found, Literal) else found

    def predicate(self, text: str) -> NamedNode:
        """`:price`, `<iri>`, `a`, or a bare word of the vocabulary. Raises TestFileError."""
        word = text.strip()
        if word in ("a", "type"):
            word = "a"
        elif self.vocab is not None and word.isidentifier():
            return NamedNode(self.vocab + word)
        try:
            (triple,) = self.triples(f"<urn:s> {word} <urn:o>")
        except (TestFileError, ValueError):
            raise TestFileError(f"{text!r} is not a predicate") from None
        return triple.predicate
