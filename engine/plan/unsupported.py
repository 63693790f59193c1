"""Clauses that the grammar reads and this engine does not answer yet."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Query, Span
from oxiseq.grammar.errors import QueryError


def refuse_unsupported(query: Query) -> None:
    """Raises `QueryError` at the first clause that would be ignored."""
    for span, name in sorted(_clauses(query), key=lambda found: found[0].start):
        raise QueryError(f"{name} is not supported yet by the engine", span, query.text, code="unsupported")


def _clauses(query: Query) -> Iterator[tuple[Span, str]]:
    if query.partition is not None:
        yield query.partition.span, "PARTITION BY"
