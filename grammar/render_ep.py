"""`EpQuery` → text; `parse(render(q), "epsparql") == q`."""

from __future__ import annotations

from oxiseq.grammar.algebra import Group, TimedPattern
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.render_clauses import render_clauses
from oxiseq.grammar.render_sparql import SparqlWriter

__all__ = ["render_ep", "render_timed"]


def render_ep(query: EpQuery) -> str:
    """`query` as EP-SPARQL text, IRIs shortened by its prefixes."""
    writer = SparqlWriter(dict(query.prefixes))
    lines = [*writer.prologue(query), writer.form(query.form)]
    lines += [f"FROM STREAM {s.name + ' ' if s.name else ''}<{s.iri.value}>" for s in query.streams]
    lines += [f"WHERE {writer.group(query.where, '')}", *render_clauses(query.consume)]
    return "\n".join(lines) + "\n"


def render_timed(pattern: TimedPattern | Group, prefixes: dict[str, str]) -> str:
    """A pattern on one line, for explanations."""
    return " ".join(SparqlWriter(prefixes).element(pattern, "").split())
