"""Matches on their way: the messages to receivers.

JSON templates: values of a match put into the texts of a JSON value.

    {"text": "{?machine} is at {?heat}°", "heat": "{?heat}", "id": "{key}"}

`{?x}` is a variable of the query. `{id}`, `{at}`, `{start}`, `{end}`, `{query}`, `{key}`, `{bindings}` and `{events}`
are of the match. A text that is one of these and nothing else becomes the value itself: a number, true or false, null
where a variable is unbound, or a match without events has no `{start}`; an object for `{bindings}` and `{events}`. `{{`
and `}}` are braces.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

from oxiseq.grammar.records import dataclass
from oxiseq.grammar.terms import INTEGER_TYPES
from oxiseq.journal import StoredMatches
from oxiseq.journal.lines import match_lines, term_of
from oxiseq.sinks.allowed import SinkError

# --- templates -------------------------------------------------------------------------------------------

Json: TypeAlias = Any
FACTS: Final = ("id", "at", "start", "end", "query", "key", "bindings", "events")
"""What a match has beside its variables."""
_PLACE: Final = re.compile(r"\{\{|\}\}|\{(\?[^\s{}?]+|[a-z]+)\}|[{}]")
_LARGEST: Final = 65_536
_DEEPEST: Final = 32
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS: Final = frozenset((f"{_XSD}decimal", f"{_XSD}double", f"{_XSD}float"))
_SAFE: Final = 1 << 53
"""Integers beyond it are texts: JSON's readers have doubles."""


def checked(template: Json, variables: Collection[str], name: str = "template") -> Json:
    """The template itself. Raises SinkError where it names what no match has, or is too large or too deep."""
    texts = list(_texts(template, 0, name))  # how deep it is comes first: the rest goes down without a bound
    try:
        size = len(json.dumps(template, ensure_ascii=False, allow_nan=False).encode())
    except ValueError as error:  # NaN, an infinity, half a character: no receiver could read it
        raise SinkError(f"{name} cannot be written as JSON: {error}") from None
    if size > _LARGEST:
        raise SinkError(f"{name} is larger than {_LARGEST} bytes")
    for text in texts:
        for place in _PLACE.finditer(text):
            _check_place(place, variables, name)
    return template


def filled(template: Json, facts: Mapping[str, Any], terms: Mapping[str, str | None]) -> Json:
    """The template with the values of a match; `terms`: N-Triples texts by variable. Raises SinkError for a variable
    that the query has no longer."""
    if isinstance(template, str):
        return _filled_text(template, facts, terms)
    if isinstance(template, dict):
        return {filled_text(key, facts, terms): filled(value, facts, terms) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, facts, terms) for value in template]
    return template


def filled_text(
    template: str, facts: Mapping[str, Any], terms: Mapping[str, str | None], clean: Callable[[str], str] = str
) -> str:
    """As text, whatever it is; what values bring goes through `clean`. Raises as `filled` does."""
    return _PLACE.sub(lambda place: clean(_text(_value(place, facts, terms))), template)


def plain(term: str | None) -> Json:
    """A term as a value of JSON: a number or truth where it is one, else its text; None where it is unbound."""
    if term is None:
        return None
    found = term_of(term)
    if isinstance(found, NamedNode):
        return found.value
    if isinstance(found, BlankNode):
        return str(found)
    return _of_literal(found) if isinstance(found, Literal) else str(found)


def _of_literal(literal: Literal) -> Json:
    text, kind = literal.value, literal.datatype.value
    if kind in INTEGER_TYPES and len(text) < 20 and text.lstrip("+-").isdecimal() and text.isascii():
        number = int(text)
        return number if abs(number) <= _SAFE else text
    if kind in _NUMBERS and len(text) < 40:
        try:
            real = float(text)
        except ValueError:
            return text
        return real if math.isfinite(real) else text
    if kind == f"{_XSD}boolean" and text in ("true", "false", "1", "0"):
        return text in ("true", "1")
    return text


def _filled_text(template: str, facts: Mapping[str, Any], terms: Mapping[str, str | None]) -> Json:
    whole = _PLACE.fullmatch(template)
    if whole is not None and whole[1]:
        return _value(whole, facts, terms, typed=True)
    return filled_text(template, facts, terms)


def _value(
    place: re.Match[str], facts: Mapping[str, Any], terms: Mapping[str, str | None], *, typed: bool = False
) -> Json:
    name = place[1]
    if not name:
        return place[0][0]
    if not name.startswith("?"):
        return facts[name]
    if name[1:] not in terms:
        raise SinkError(f"the template has {name}, which is no variable of the query; it has {_listed(terms)}")
    term = terms[name[1:]]
    if typed or term is None:
        return plain(term)
    found = term_of(term)
    return found.value if isinstance(found, Literal | NamedNode) else str(found)


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(template: Json, depth: int, name: str) -> Iterator[str]:
    if depth > _DEEPEST:
        raise SinkError(f"{name} is deeper than {_DEEPEST} levels")
    if isinstance(template, str):
        yield template
    elif isinstance(template, dict):
        for key, value in template.items():
            yield key
            yield from _texts(value, depth + 1, name)
    elif isinstance(template, list):
        for value in template:
            yield from _texts(value, depth + 1, name)


def _check_place(place: re.Match[str], variables: Collection[str], name: str) -> None:
    inside = place[1]
    if inside is None:
        if place[0] in ("{", "}"):
            raise SinkError(f"{name} has a single {place[0]}: write {{?variable}}, or {place[0] * 2} for a brace")
    elif inside.startswith("?"):
        if inside[1:] not in variables:
            raise SinkError(f"{name} has {inside}, which is no variable of the query; it has {_listed(variables)}")
    elif inside not in FACTS:
        raise SinkError(f"{name} has {{{inside}}}; known beside variables: {', '.join(FACTS)}")


def _listed(variables: Collection[str]) -> str:
    return ", ".join(f"?{each}" for each in variables) or "none"


# --- delivery --------------------------------------------------------------------------------------------

_TOLD: Final = ("query", "id", "at", "start", "end", "bindings", "events")


@dataclass(frozen=True, slots=True)
class Item:
    """A match: its id, its idempotency key, which no other match of this server has, and what templates take."""

    id: int
    key: str
    facts: Mapping[str, Any]
    terms: Mapping[str, str | None]

    def value(self, template: Json) -> Json:
        """The template with its values; without one all that live readers get, and the query's name. Raises
        SinkError for a variable that the query has no longer."""
        if template is None:
            return {name: self.facts[name] for name in _TOLD if self.facts.get(name) is not None}
        return filled(template, self.facts, self.terms)

    def json(self, template: Json) -> bytes:
        """As `value`, as JSON's text."""
        return json.dumps(self.value(template), ensure_ascii=False).encode()

    def text(self, template: str, clean: Callable[[str], str] = str) -> str:
        """As `value`, as text; what values bring goes through `clean`."""
        return filled_text(template, self.facts, self.terms, clean)


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Matches of a query that are delivered together."""

    query: str
    matches: StoredMatches

    def __len__(self) -> int:
        return len(self.matches)

    @property
    def key(self) -> str:
        """Names all of them."""
        first, last = self.matches.first, self.matches.last
        return f"{self.query}/{first}" if first == last else f"{self.query}/{first}-{last}"

    def items(self) -> Iterator[Item]:
        """Each of them."""
        matches, names = self.matches, self.matches.heading.variables
        for i, (line, row) in enumerate(zip(match_lines(matches), matches.rows(), strict=True)):
            number = matches.first + i
            key = f"{self.query}/{number}"
            facts = {"start": None, **json.loads(line), "query": self.query, "key": key}
            yield Item(number, key, facts, dict(zip(names, row, strict=True)))
