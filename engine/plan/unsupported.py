"""Clauses that the grammar reads and this engine does not answer yet."""

from __future__ import annotations

from oxiseq.grammar.algebra import Query
from oxiseq.grammar.errors import QueryError


def refuse_unsupported(query: Query) -> None:
    """Raises `QueryError` at the first clause that would be ignored."""
    clauses = [
        ("PARTITION BY", query.partition),
        ("CONSUME BY", query.consumption),
        ("LIMIT", query.limit),
    ]
    if query.selection is not None:
        clauses.append((f"SELECT {query.selection.strategy.value}", query.selection))
    found = [(name, clause) for name, clause in clauses if clause is not None]
    for name, clause in sorted(found, key=lambda pair: pair[1].span.start):
        raise QueryError(f"{name} is not supported yet by the engine", clause.span, query.text, code="unsupported")
