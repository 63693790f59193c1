"""The engine's answers in the form of `asked_again`."""

from __future__ import annotations

from asked_again import Row, Streams
from pyoxigraph import BlankNode, Store

import oxiseq


def replayed(text: str, streams: Streams, kb: Store | None = None, **options: str) -> list[tuple[int, Row]]:
    """By `oxiseq.run`, whose rows come in order of time."""
    found = oxiseq.run(text, streams, kb, language="rspql", **options)  # type: ignore[call-overload]
    assert [a.at_us for a in found] == sorted(a.at_us for a in found)
    return sorted((a.at_us, _row(a)) for a in found)


def lived(text: str, streams: Streams, kb: Store | None, until: int) -> list[tuple[int, Row]]:
    """By a store into which the events are pushed one by one, and whose clock then goes on to `until`."""
    store = oxiseq.Store()
    store.inner.extend(kb or ())
    query = store.register(text, language="rspql")
    for time, iri, graph in sorted((time, iri, graph) for iri, each in streams.items() for time, graph in each):
        store.stream(iri).push(graph, time)
    store.advance(until)
    return sorted((a.at_us, _row(a)) for a in query.poll("0s"))


def _row(answer: oxiseq.Match) -> Row:
    bound = sorted((v, term) for v, term in answer.items() if term is not None)
    return tuple((v, "_:" if isinstance(term, BlankNode) else str(term)) for v, term in bound)
