"""Tuple events, as CEQL sees the items of its streams (semantics.md 3).

A graph is one tuple: one node with one type and at most one value per attribute; an empty graph is an event of
no type. What other graphs mean is not specified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyoxigraph import NamedNode, Triple, Variable

from oxiseq.grammar.algebra import Term
from oxiseq.grammar.terms import RDF_TYPE
from reference.values import normal_triple


@dataclass(frozen=True)
class TupleEvent:
    """An item of the query's streams: its number among them, its time in microseconds, its type's IRI and its
    attributes by IRI, in normal form."""

    position: int
    time: int
    type: str | None
    values: Mapping[str, Term] = field(default_factory=dict, compare=False)

    def attributes(self, vocab: str) -> dict[Variable, Term]:
        """The attributes of the namespace by their names."""
        return {
            Variable(iri[len(vocab) :]): value
            for iri, value in self.values.items()
            if iri.startswith(vocab) and iri[len(vocab) :].isidentifier()
        }


def tuple_events(streams: Sequence[Sequence[tuple[int, Iterable[Triple]]]]) -> list[TupleEvent]:
    """All items in order of time; simultaneous ones in the order of the streams, then of arrival."""
    items = [(time, triples) for stream in streams for time, triples in stream]
    items.sort(key=lambda item: item[0])
    return [tuple_event(n, time, triples) for n, (time, triples) in enumerate(items)]


def tuple_event(position: int, time: int, triples: Iterable[Triple]) -> TupleEvent:
    """The tuple that a graph stands for."""
    graph = {normal_triple(t) for t in triples}
    types = [t.object for t in graph if t.predicate == RDF_TYPE]
    values = {t.predicate.value: t.object for t in graph if t.predicate != RDF_TYPE}
    if len({t.subject for t in graph}) > 1 or len(types) > 1 or len(values) + len(types) != len(graph):
        raise ValueError("not the graph of a tuple event")
    assert all(isinstance(t, NamedNode) for t in types)
    return TupleEvent(position, time, types[0].value if types else None, values)
