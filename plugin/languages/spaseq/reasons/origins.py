"""What the matches of a SPAseq query were made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Variable

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.grammar.algebra import Gpm, GraphPattern, Group, Query, TriplePattern, Values
from oxiseq.grammar.render import render_group
from oxiseq.languages.reasons.provenance import Provenance, Source
from oxiseq.languages.reasons.read import History, graph_of
from oxiseq.languages.spaseq.reasons.answering import Found
from oxiseq.languages.spaseq.reasons.relax import mapped


def provenances(query: Query, found: Sequence[Found], history: History, kb: KnowledgeBase) -> Iterator[Provenance]:
    """One per match."""
    streams = {g.name: next(s.iri.value for s in query.streams if s.name == g.stream) for g in query.gpms}
    gpms = {g.name: g for g in query.gpms}
    for each in found:
        sources = tuple(
            Source(gpm, streams[gpm], time, graph_of(history, streams[gpm], time))
            for gpm, times in each.events
            for time in times
        )
        facts = dict.fromkeys(quad for gpm, _ in each.events for quad in _facts(gpms[gpm], each, kb))
        yield Provenance(max(s.time for s in sources), each.bindings, sources, tuple(facts))


def _facts(gpm: Gpm, found: Found, kb: KnowledgeBase) -> Iterator[Quad]:
    bound = {Variable(v): t for v, t in found.bindings.items() if isinstance(t, NamedNode | Literal)}
    for number, each in enumerate(gpm.pattern.elements):
        if isinstance(each, GraphPattern):
            element: GraphPattern = mapped(each, as_variable(number))
            patterns = [e for e in element.pattern.elements if isinstance(e, TriplePattern)]
            given = Values(tuple(bound), (tuple(bound.values()),))
            text = f"SELECT * WHERE {render_group(Group((given, element) if bound else (element,)))}"
            for row in kb.solutions(text):
                for p in patterns:
                    parts = [row[t] if isinstance(t, Variable) else t for t in (p.subject, p.predicate, p.object)]
                    name = row[element.name] if isinstance(element.name, Variable) else element.name
                    subject, predicate, object_ = parts
                    yield Quad(subject, predicate, object_, name)  # type: ignore[arg-type]  # terms, each at its place


def as_variable(number: int) -> Callable[[Any], Any]:
    """A change of terms by which a pattern's blank node becomes a variable: the answer has what it stands for."""
    names: dict[BlankNode, Variable] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, BlankNode):
            return node
        return names.setdefault(node, Variable(f"blank_{number}_{len(names)}"))

    return change
