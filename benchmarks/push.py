"""Case `push`: how long one event takes, pushed alone as pyoxigraph triples, until its matches have been handed out.

What an alternative is given is the same: the triples and the time. Before anything is timed a window is filled.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import process_time_ns
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

import oxiseq
from benchmarks.charts import OXISEQ, SPARQL, TEXTBOOK, Histogram
from benchmarks.data import SECOND, START, STREAM, quotes
from benchmarks.formats import ending, sparql
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.shapes import v_shape, v_shape_nfa
from benchmarks.textbook import Chosen, Runs
from benchmarks.windowed import COMPANY, PRICE, Graph, WindowStore, as_triples
from oxiseq.engine.terms.dictionary import TermDictionary

WINDOWS: Final = (100, 1_000)
"""Events."""
PERCENT: Final = (50, 95, 99)
SPARQL_FEWER: Final = 20
"""SPARQL is given one push in so many: the first ones."""
ABOUT = (
    "The V-shape of case `v-shape`, walking prices: single pushes of pyoxigraph triples, CPU time of each from the "
    "call to its return, when the matches of the instant that it completes have been handed to a callback. "
    "Nanoseconds are the median, percentages percentiles. SPARQL is asked of a pyoxigraph store that holds the "
    "window's graphs, at each event for the matches of its company that end there. Equal numbers of matches are "
    "checked."
)
Times = NDArray[np.float64]


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

    def __init__(self, window: int) -> None:
        self.found = 0
        store = oxiseq.Store()
        self._query = store.register(v_shape(window))
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

    def __init__(self, window: int) -> None:
        self._nfa = v_shape_nfa(window)
        self._runs: Runs = []
        self._matches: list[Chosen] = []
        self.found = 0

    def push(self, graph: Graph, number: int) -> None:
        """Try the event on all runs."""
        values = {triple.predicate: triple.object.value for triple in graph}  # type: ignore[union-attr]
        event = (number, values[COMPANY], float(values[PRICE]))
        self._runs = self._nfa.take(event, self._runs, self._matches)
        self.found += len(self._matches)
        self._matches.clear()

    fill = push

    def settle(self) -> None:
        """Nothing is outstanding."""


class BySparql:
    """A store with the window's graphs; the matches that end at the new event are asked for."""

    def __init__(self, window: int) -> None:
        self._store = WindowStore(window)
        self._text = sparql(";")
        self.found = 0

    def fill(self, graph: Graph, number: int) -> None:
        """Add the event, remove what has gone by."""
        self._store.add(graph, number)

    def push(self, graph: Graph, number: int) -> None:
        """And ask."""
        time = self._store.add(graph, number)
        self.found += sum(1 for _ in self._store.ask(ending(self._text, time, graph[0].object)))

    def settle(self) -> None:
        """Nothing is outstanding."""


WAYS: Final[dict[str, tuple[Callable[[int], Pusher], int]]] = {
    OXISEQ: (ByOxiseq, 1), TEXTBOOK: (ByTextbook, 1), SPARQL: (BySparql, SPARQL_FEWER),
}


def run(size: Size) -> Result:
    """Median and percentiles of single pushes, per window."""
    rows, figures, charts = [], [], []
    for window in WINDOWS:
        samples, found = _measure(window, size)
        mine = [_row(way, window, samples[way], found[way]) for way in WAYS]
        rows += mine
        figures += [
            Figure(f"median of a push, {way} over oxiseq, {window:,} events", row.ns / mine[0].ns)
            for way, row in zip(WAYS, mine, strict=True) if way != OXISEQ
        ]
        every = {way: np.concatenate(times) for way, times in samples.items()}
        charts.append(Histogram("push", f"V-shape, window of {window:,} events", every))
    return Result("push", "Latency of single pushes", ABOUT, tuple(rows), tuple(figures), tuple(charts))


def _measure(window: int, size: Size) -> tuple[dict[str, list[Times]], dict[str, int]]:
    """Per way the times of each round, and the matches found; a round has all ways in turn."""
    graphs = as_triples(quotes(TermDictionary(), window + size.pushes))
    samples: dict[str, list[Times]] = {way: [] for way in WAYS}
    found: dict[str, int] = {}
    few = graphs[: window + max(1, size.pushes // SPARQL_FEWER)]
    for _ in range(size.rounds):
        for way, (make, fewer) in WAYS.items():
            times, found[way] = latencies(make(window), graphs if fewer == 1 else few, window)
            samples[way].append(times)
    _, of_few = latencies(ByTextbook(window), few, window)
    if (found[OXISEQ], found[SPARQL]) != (found[TEXTBOOK], of_few):
        raise AssertionError(f"matches of single pushes: {found}; the textbook's of {len(few)} events: {of_few}")
    return samples, found


def _row(way: str, window: int, samples: list[Times], found: int) -> Row:
    medians = [float(np.median(times)) for times in samples]
    every = np.concatenate(samples)
    note = ", ".join(f"{p} %: {np.percentile(every, p):,.0f} µs" for p in PERCENT)
    return Row(f"one push, {way}", f"{window:,} events", 1e3 * float(np.median(every)), max(medians) / min(medians),
               found, f"{note}; {len(samples[0]):,} pushes")


def latencies(pusher: Pusher, graphs: Sequence[Graph], window: int) -> tuple[Times, int]:
    """Microseconds of each push after the first window, and the matches that these brought."""
    for number, graph in enumerate(graphs[:window]):
        pusher.fill(graph, number)
    pusher.settle()
    gc.collect()
    before = pusher.found
    times = np.zeros(len(graphs) - window)
    for number in range(window, len(graphs)):
        graph = graphs[number]
        begin = process_time_ns()
        pusher.push(graph, number)
        times[number - window] = process_time_ns() - begin
    pusher.settle()
    return times / 1e3, pusher.found - before
