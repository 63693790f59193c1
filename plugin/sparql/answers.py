"""Another endpoint's answers to SELECT queries: JSON → solutions.

Blank nodes mean something within one answer only: they get labels that no other query's answer has, nor another answer
to the same query, but the same answer to it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyoxigraph import BlankNode, QueryResultsFormat, QuerySolutions, parse_query_results

from oxiseq.engine.errors import KbError
from oxiseq.engine.kb import Solution


def read_answer(query_text: str, body: bytes) -> Iterable[Solution]:
    """The solutions in JSON results. Raises KbError."""
    try:
        found = parse_query_results(body, QueryResultsFormat.JSON)
    except (SyntaxError, ValueError, OSError) as error:
        raise KbError(f"the knowledge base's answer cannot be read: {error}") from error
    if not isinstance(found, QuerySolutions):
        raise KbError("the knowledge base answers SELECT queries only")
    return _labelled(found, query_text, body) if b'"bnode"' in body else found


def _labelled(found: QuerySolutions, query_text: str, body: bytes) -> Iterator[Solution]:
    scope = hashlib.blake2b(body, digest_size=8, key=hashlib.blake2b(query_text.encode()).digest()).hexdigest()
    fresh: dict[BlankNode, BlankNode] = {}
    names = [variable.value for variable in found.variables]
    for solution in found:
        terms: list[Any] = list(solution)
        for i, term in enumerate(terms):
            if isinstance(term, BlankNode):
                terms[i] = fresh.setdefault(term, BlankNode(f"u{scope}x{len(fresh)}"))
        yield _Labelled(terms, names)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A solution, by place or by name."""

    terms: list[Any]
    names: list[str]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.terms)

    def __getitem__(self, key: int | str) -> Any:
        return self.terms[key if isinstance(key, int) else self.names.index(key)]
