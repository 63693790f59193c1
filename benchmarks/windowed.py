"""A pyoxigraph store that holds the graphs of a sliding window: what a user without a stream engine has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolution, QuerySolutions, Store, Triple

from benchmarks.data import DECIMAL, SECOND, START, Events, iri, plain
from oxiseq.engine.events.time import to_literal

Graph = list[Triple]
COMPANY, PRICE, KIND = iri("company"), iri("price"), iri("kind")
TIME = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")


class WindowStore:
    """The newest `window` + 1 events, one a second, in named graphs beside what `store` holds already."""

    def __init__(self, window: int, store: Store | None = None) -> None:
        self._store = Store() if store is None else store
        self._most = window + 1
        self._events: deque[list[Quad]] = deque()

    def add(self, graph: Graph, number: int) -> Literal:
        """Add event `number`, remove what has gone by; its time."""
        name, time = NamedNode(f"urn:event:{number}"), to_literal(START + SECOND * number)
        event = [Quad(name, TIME, time, DefaultGraph()), *(Quad(t.subject, t.predicate, t.object, name) for t in graph)]
        self._store.extend(event)
        self._events.append(event)
        if len(self._events) > self._most:
            self._remove(self._events.popleft())
        return time

    def ask(self, text: str) -> Iterator[QuerySolution]:
        """The solutions of a SELECT."""
        answer = self._store.query(text)
        assert isinstance(answer, QuerySolutions)
        return answer

    def clear(self) -> None:
        """Remove all events."""
        while self._events:
            self._remove(self._events.popleft())

    def _remove(self, event: Sequence[Quad]) -> None:
        for quad in event:
            self._store.remove(quad)


def as_triples(quotes: Events) -> list[Graph]:
    """Each quote as pyoxigraph triples (company, price, kind), with a blank node of its own."""
    graphs = []
    for number, (_, company, price, kind) in enumerate(plain(quotes, by_number=True)):
        subject = BlankNode(f"e{number}")
        graphs.append(
            [
                Triple(subject, COMPANY, NamedNode(company)),
                Triple(subject, PRICE, Literal(f"{price:.2f}", datatype=DECIMAL)),
                Triple(subject, KIND, NamedNode(kind)),
            ]
        )
    return graphs
