"""Matches on their way: the messages to receivers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal import StoredMatches
from oxiseq.journal.lines import match_lines
from oxiseq.sinks.templates import Json, filled, filled_text

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
