"""Case `push`: how long one event takes, pushed alone as pyoxigraph triples, until its matches have been returned.

A star of five triples first, which figures are asked of; then the V-shape beside its alternatives, which are given
the same: the triples and the time. Before anything is timed a window is filled.
"""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, process_time_ns, thread_time
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Triple

import oxiseq
from benchmarks.charts import OXISEQ, SPARQL, TEXTBOOK, Histogram
from benchmarks.data import SECOND, START, STREAM, iri, quotes
from benchmarks.formats import ending, sparql
from benchmarks.patterns import INTEGER, PATTERNS, READINGS, query
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.shapes import v_shape, v_shape_nfa
from benchmarks.textbook import Chosen, Runs
from benchmarks.windowed import COMPANY, PRICE, Graph, WindowStore, as_triples
from oxiseq.engine.terms.dictionary import TermDictionary

WINDOWS: Final = (100, 1_000)
"""Events."""
PERCENT: Final = (50, 95, 99)
LIMITS: Final = (60_000, 300_000)
"""Nanoseconds asked of the star where every tenth event matches: median and 99th percentile of CPU time."""
SPARQL_FEWER: Final = 20
"""SPARQL is given one push in so many: the first ones."""
ABOUT = (
    "`Stream.push` of one event after another. A star of five triples with two numeric filters; on a busy machine "
    "other processes' slices are in its elapsed 99th percentile. Then the V-shape of case `v-shape`, walking prices: "
    "pushes of pyoxigraph triples, CPU time of each from the call to its return, when the matches of the instant that "
    "it completes have been handed to a callback. Nanoseconds are the median, percentages percentiles. SPARQL is "
    "asked of a pyoxigraph store that holds the window's graphs, at each event for the matches of its company that "
    "end there. Equal numbers of matches are checked."
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
        self._query.subscribe(self._count)
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
        values = {triple.predicate: triple.object.value for triple in graph}  # type: ignore[union-attr]  # no triple is an object here
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
    OXISEQ: (ByOxiseq, 1),
    TEXTBOOK: (ByTextbook, 1),
    SPARQL: (BySparql, SPARQL_FEWER),
}


def run(size: Size) -> Result:
    """Median and percentiles of single pushes, per window."""
    rows = star_rows(size)
    figures = [
        Figure(f"{row.where} of a push of five triples over {limit / 1000:g} µs", row.ns / limit, 1.0)
        for row, limit in zip(rows, LIMITS, strict=False)
    ]
    charts = []
    for window in WINDOWS:
        samples, found = _measure(window, size)
        mine = [_row(way, window, samples[way], found[way]) for way in WAYS]
        rows += mine
        figures += [
            Figure(f"median of a push, {way} over oxiseq, {window:,} events", row.ns / mine[0].ns)
            for way, row in zip(WAYS, mine, strict=True)
            if way != OXISEQ
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
    return Row(
        f"one push, {way}",
        f"{window:,} events",
        1e3 * float(np.median(every)),
        max(medians) / min(medians),
        found,
        f"{note}; {len(samples[0]):,} pushes",
    )


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


# --- a star of five triples ---------------------------------------------------------------------------


def star_rows(size: Size) -> list[Row]:
    """Median and 99th percentile of pushing stars of five triples, in CPU time and elapsed time."""
    rows = []
    graphs = _stars(min(size.pushes, 5_000))
    star = next(iter(PATTERNS.values()))
    for what, body in (("star, every tenth event matches", star), ("star, every event", star.split("FILTER")[0])):
        for clock, name in ((thread_time, "CPU time"), (perf_counter, "elapsed")):
            rounds = [_one_by_one(body, graphs, clock) for _ in range(size.rounds)]
            for part, share in enumerate(("median", "99th percentile")):
                seconds = [times[part] for times, _ in rounds]
                ns, spread = 1e9 * statistics.median(seconds), max(seconds) / min(seconds)
                rows.append(Row(what, f"{share}, {name}", ns, spread, rounds[0][1]))
    return rows


def _one_by_one(body: str, graphs: Iterable[Graph], clock: Callable[[], float]) -> tuple[tuple[float, float], int]:
    """Median and 99th percentile of a push in seconds, after the first tenth; the number of matches."""
    found = 0

    def count(match: object) -> None:
        nonlocal found
        found += 1

    store = oxiseq.Store()
    live = store.register(query(body))
    live.subscribe(count)
    push = store.stream(READINGS).push
    taken = []
    for i, graph in enumerate(graphs):
        begin = clock()
        push(graph, START + SECOND * i)
        taken.append(clock() - begin)
    list(live.poll("0s"))  # its newest instant is complete with it
    warm = sorted(taken[len(taken) // 10 :])
    return (statistics.median(warm), warm[int(0.99 * len(warm))]), found


def _stars(number: int) -> list[Graph]:
    dice = random.Random(6)

    def value() -> Literal:
        return Literal(str(dice.randrange(1_000)), datatype=INTEGER)

    made: list[Graph] = []
    for i in range(number):
        e, zone = iri(f"e{i}"), iri(f"zone{dice.randrange(20)}")
        made.append(
            [
                Triple(e, iri("type"), iri("Reading")),
                Triple(e, iri("power"), value()),
                Triple(e, iri("flow"), value()),
                Triple(e, iri("zone"), zone),
                Triple(e, iri("more"), value()),
            ]
        )
    return made
