"""`EpQuery` → text; `parse(render(q), "epsparql") == q`."""

from __future__ import annotations

from oxiseq.grammar.algebra import Group, TimedPattern
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.render_forms import render_form
from oxiseq.grammar.render_sparql import SparqlWriter, base_of

__all__ = ["render_ep", "render_timed"]


def render_ep(query: EpQuery) -> str:
    """`query` as EP-SPARQL text, IRIs shortened by its prefixes."""
    writer = SparqlWriter(dict(query.prefixes))
    base = query.base or base_of(query)
    lines = [f"BASE <{base}>"] if base is not None else []
    lines += [f"PREFIX {prefix}: <{iri}>" for prefix, iri in query.prefixes]
    lines.append(render_form(query.form, writer))
    lines += [f"FROM STREAM {s.name + ' ' if s.name else ''}<{s.iri.value}>" for s in query.streams]
    lines.append(f"WHERE {writer.group(query.where, '')}")
    if query.consume is not None:
        lines.append(f"CONSUME {query.consume.value}")
    return "\n".join(lines) + "\n"


def render_timed(pattern: TimedPattern | Group, prefixes: dict[str, str]) -> str:
    """A pattern on one line, for explanations."""
    return " ".join(SparqlWriter(prefixes).element(pattern, "").split())
