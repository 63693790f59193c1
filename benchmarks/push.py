"""Case `push`: how long one event takes, pushed alone as pyoxigraph triples, until its matches have been handed out.

What an alternative is given is the same: the triples and the time. Before anything is timed a window is filled.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Triple
from pyoxigraph import Store as RdfStore

import oxiseq
from benchmarks.charts import OXISEQ, SPARQL, TEXTBOOK, Histogram
from benchmarks.data import SECOND, START, STREAM, Events, iri, plain, quotes
from benchmarks.formats import sparql
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.shapes import v_shape, v_shape_nfa
from benchmarks.textbook import Chosen, Runs
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.terms.dictionary import TermDictionary

WINDOW: Final = 100
"""Events."""
COMPANIES: Final = 10
PERCENT: Final = (50, 95, 99)
SPARQL_FEWER: Final = 20
"""SPARQL is given one push in so many: the first ones."""
_COMPANY, _PRICE, _KIND = iri("company"), iri("price"), iri("kind")
_DECIMAL: Final = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
_TIME: Final = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
ABOUT = (
    "The V-shape with `;` on one of 10 companies, walking prices, a sliding window of 100 events: single pushes of "
    "pyoxigraph triples, by the clock, from the call to its return, when the matches of the instant that it completes "
    "have been handed to a callback. Nanoseconds are the median. SPARQL is asked of a pyoxigraph store that holds the "
    "window, at each event for the matches that end there. Equal numbers of matches are checked."
)
Graph = list[Triple]


class Pusher(Protocol):
    """One way to take an event."""

    found: int

    def fill(self, graph: Graph, number: int) -> None:
        """Take an event of the first window."""

    def push(self, graph: Graph, number: int) -> None:
        """Take an event and count the matches that it brings."""

    def settle(self) -> None:
        """Count what the last event brings, if a later one would have to come for that."""


class ByOxiseq:
    """A registered query with a callback."""

    def __init__(self) -> None:
        self.found = 0
        store = oxiseq.Store()
        self._query = store.register(v_shape(WINDOW))
        self._query.on_match(self._count)
        self._stream = store.stream(STREAM)
        self._newest = START

    def _count(self, match: object) -> None:
        self.found += 1

    def push(self, graph: Graph, number: int) -> None:
        """The instant before is complete with it."""
        self._newest = START + SECOND * number
        self._stream.push(graph, self._newest)

    fill = push

    def settle(self) -> None:
        """No event of this time will come any more."""
        self._stream.advance(self._newest + 1)


class ByTextbook:
    """The NFA; the triples are read into a tuple."""

    def __init__(self) -> None:
        self._nfa = v_shape_nfa(WINDOW)
        self._runs: Runs = []
        self._matches: list[Chosen] = []
        self.found = 0

    def push(self, graph: Graph, number: int) -> None:
        """Try the event on all runs."""
        values = {triple.predicate: triple.object.value for triple in graph}  # type: ignore[union-attr]
        event = (number, values[_COMPANY], float(values[_PRICE]))
        self._runs = self._nfa.take(event, self._runs, self._matches)
        self.found += len(self._matches)
        self._matches.clear()

    fill = push

    def settle(self) -> None:
        """Nothing is outstanding."""


class BySparql:
    """A store with the window's graphs; the matches that end at the new event are asked for."""

    def __init__(self) -> None:
        self._store = RdfStore()
        self._window: deque[list[Quad]] = deque()
        self._text = sparql(";")
        self.found = 0

    def fill(self, graph: Graph, number: int) -> None:
        """Add the event, remove what has gone by."""
        name = NamedNode(f"urn:event:{number}")
        time = to_literal(START + SECOND * number)
        event = [Quad(name, _TIME, time, DefaultGraph()), *(Quad(*triple, name) for triple in graph)]
        self._store.extend(event)
        self._window.append(event)
        if len(self._window) > WINDOW + 1:
            for quad in self._window.popleft():
                self._store.remove(quad)

    def push(self, graph: Graph, number: int) -> None:
        """And ask."""
        self.fill(graph, number)
        now = self._window[-1][0].object
        answer = self._store.query(self._text.replace("WHERE {", f"WHERE {{ VALUES ?t3 {{ {now} }}", 1))
        assert isinstance(answer, QuerySolutions)
        self.found += sum(1 for _ in answer)

    def settle(self) -> None:
        """Nothing is outstanding."""


WAYS: Final[dict[str, tuple[Callable[[], Pusher], int]]] = {
    OXISEQ: (ByOxiseq, 1), TEXTBOOK: (ByTextbook, 1), SPARQL: (BySparql, SPARQL_FEWER),
}


def run(size: Size) -> Result:
    """Median and percentiles of single pushes."""
    graphs = as_triples(quotes(TermDictionary(), WINDOW + size.pushes, COMPANIES))
    samples: dict[str, list[NDArray[np.float64]]] = {way: [] for way in WAYS}
    found: dict[str, int] = {}
    for _ in range(size.rounds):
        for way, (make, fewer) in WAYS.items():
            times, found[way] = latencies(make(), graphs[: WINDOW + max(1, size.pushes // fewer)])
            samples[way].append(times)
    _check(graphs, found, size.pushes)
    every = {way: np.concatenate(times) for way, times in samples.items()}
    rows = [_row(way, samples[way], found[way]) for way in WAYS]
    figures = tuple(Figure(f"median of a push, {row.what} over oxiseq", row.ns / rows[0].ns) for row in rows[1:])
    return Result("push", "Latency of single pushes", ABOUT, tuple(rows), figures,
                  (Histogram("push", "Single pushes, V-shape with `;`", every),))


def as_triples(events: Events) -> list[Graph]:
    """Each event as pyoxigraph triples, with a blank node of its own."""
    graphs = []
    for number, (_, company, price, kind) in enumerate(plain(events, by_number=True)):
        subject = BlankNode(f"e{number}")
        graphs.append([
            Triple(subject, _COMPANY, NamedNode(company)),
            Triple(subject, _PRICE, Literal(f"{price:.2f}", datatype=_DECIMAL)),
            Triple(subject, _KIND, NamedNode(kind)),
        ])
    return graphs


def _check(graphs: Sequence[Graph], found: dict[str, int], pushes: int) -> None:
    few = graphs[: WINDOW + max(1, pushes // SPARQL_FEWER)]
    _, of_few = latencies(ByTextbook(), few)
    if (found[OXISEQ], found[SPARQL]) != (found[TEXTBOOK], of_few):
        raise AssertionError(f"matches of single pushes: {found}; the textbook's of {len(few)} events: {of_few}")


def _row(way: str, samples: list[NDArray[np.float64]], found: int) -> Row:
    medians = [float(np.median(times)) for times in samples]
    every = np.concatenate(samples)
    note = ", ".join(f"{p} %: {np.percentile(every, p):,.0f} µs" for p in PERCENT)
    return Row(way, f"{len(samples[0]):,} pushes", 1e3 * float(np.median(every)), max(medians) / min(medians),
               found, note)


def latencies(pusher: Pusher, graphs: Sequence[Graph]) -> tuple[NDArray[np.float64], int]:
    """Microseconds of each push after the first window, and the matches that these brought."""
    for number, graph in enumerate(graphs[:WINDOW]):
        pusher.fill(graph, number)
    pusher.settle()
    gc.collect()
    times = np.zeros(len(graphs) - WINDOW)
    before = pusher.found
    for number in range(WINDOW, len(graphs)):
        graph = graphs[number]
        begin = perf_counter_ns()
        pusher.push(graph, number)
        times[number - WINDOW] = perf_counter_ns() - begin
    pusher.settle()
    return times / 1e3, pusher.found - before
