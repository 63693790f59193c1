"""What a continuous query answers, by plain code: at each instant pyoxigraph is asked over the windows' merged graphs.

Nothing of the engine is used, not its parser either. Queries are in the one form that these tests write: FROM NAMED
WINDOW w ON stream [RANGE PTn STEP PTn], WINDOW w { ... } in WHERE, REPORT at the end. Without the first and the last,
and with GRAPH for WINDOW, that is SPARQL. A window at τ holds the events of (⌈τ/step⌉·step − range, τ]; ticks are the
multiples of a period since 1970 (semantics.md 4 and 6).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from pyoxigraph import BlankNode, NamedNode, Quad, QuerySolutions, RdfFormat, Store, Triple, parse

Row: TypeAlias = tuple[tuple[str, str], ...]
"""(variable, term) pairs in order, unbound ones left out; a blank node is `_:`."""
Streams: TypeAlias = Mapping[str, Sequence[tuple[int, str]]]
"""IRI → (microseconds, N-Triples) in order of time."""

_WINDOW = re.compile(r"FROM NAMED WINDOW (\S+) ON (\S+) \[RANGE PT(\d+)([SMH]) STEP PT(\d+)([SMH])\]\n")
_REPORT = re.compile(r"REPORT (ON WINDOW CLOSE|EVERY (\d+) (SECOND|MINUTE)S?)\s*$")
_UNITS = {"S": 1_000_000, "M": 60_000_000, "H": 3_600_000_000}


@dataclass(frozen=True, order=True)
class Window:
    """A named window; times in microseconds."""

    name: str
    stream: str
    range: int
    step: int

    def graphs(self, streams: Streams, at: int) -> list[str]:
        """What it holds at a time."""
        begin = -(-at // self.step) * self.step - self.range
        return [graph for time, graph in streams.get(self.stream, ()) if begin < time <= at]


@dataclass(frozen=True)
class Continuous:
    """A continuous query, taken apart. `period`: None where every event is an instant."""

    windows: tuple[Window, ...]
    report: str
    period: int | None
    sparql: str

    @property
    def by_rows(self) -> bool:
        """Whether what is new is told by rows: else by all variables of WHERE, and columns are chosen afterwards."""
        head, tail = self.sparql.split("WHERE", 1)[0], self.sparql.rsplit("}", 1)[1]
        return "(" in head or "DISTINCT" in head or bool(re.search("LIMIT|GROUP BY", tail))


def taken_apart(text: str) -> Continuous:
    """Of a query's text."""
    prefixes = dict(re.findall(r"PREFIX (\S*:) <(\S+)>", text))

    def iri(name: str) -> str:
        prefix, local = name.split(":", 1)
        return name[1:-1] if name.startswith("<") else prefixes[f"{prefix}:"] + local

    windows = tuple(
        Window(iri(name), iri(stream), int(size) * _UNITS[unit], int(step) * _UNITS[other])
        for name, stream, size, unit, step, other in _WINDOW.findall(text)
    )
    report = re.search(r"REGISTER (\w)STREAM", text)
    when = _REPORT.search(text)
    period = None
    if when is not None:
        period = int(when[2]) * _UNITS[when[3][0]] if when[2] else min(w.step for w in windows)
    sparql = re.sub(r"WINDOW (\S+) \{", r"GRAPH \1 {", _REPORT.sub("", _WINDOW.sub("", text)))
    return Continuous(windows, report[1] if report else "I", period, re.sub(r"REGISTER \wSTREAM \S+ AS\n", "", sparql))


def answers(text: str, streams: Streams, kb: Store | None = None) -> list[tuple[int, Row]]:
    """(instant, row) of all that is told, sorted."""
    query = taken_apart(text)
    before: Counter[Row] = Counter()
    found = []
    for at in instants(query, streams):
        now = Counter(_asked(query, streams, kb, at))
        told = {"R": now, "I": now - before, "D": before - now}[query.report]
        found += [(at, row) for row in told.elements()]
        before = now
    if not query.by_rows:
        columns = set(re.findall(r"\?(\w+)", query.sparql.split("WHERE", 1)[0]))
        found = [(at, tuple((v, term) for v, term in row if v in columns)) for at, row in found]
    return sorted(found)


def instants(query: Continuous, streams: Streams) -> list[int]:
    """When it is answered: at each event; or at each tick from the first event until the last has been seen and all
    windows are empty, but of ticks at which they are only the first after one at which they were not."""
    events = sorted((time, w) for w in query.windows for time, _ in streams.get(w.stream, ()))
    if query.period is None or not events:
        return sorted({time for time, _ in events})
    first, seen = (-(-time // query.period) * query.period for time in (events[0][0], events[-1][0]))
    closed = max((time + w.range - 1) // w.step * w.step for time, w in events)
    ticks = range(first, max(seen, closed + query.period) + 1, query.period)
    held = [any(w.graphs(streams, at) for w in query.windows) for at in ticks]
    return [at for i, at in enumerate(ticks) if held[i] or (i > 0 and held[i - 1])]


@cache
def _triples(graph: str) -> list[Triple]:
    return [each.triple for each in parse(graph.encode(), format=RdfFormat.N_TRIPLES)]


def _asked(query: Continuous, streams: Streams, kb: Store | None, at: int) -> Iterator[Row]:
    store = Store()
    store.extend(kb or ())
    for window in query.windows:
        for graph in window.graphs(streams, at):
            store.extend(Quad(*triple, NamedNode(window.name)) for triple in _triples(graph))
    text = query.sparql if query.by_rows else re.sub(r"SELECT [^{]*WHERE", "SELECT * WHERE", query.sparql, count=1)
    found = store.query(text)
    assert isinstance(found, QuerySolutions)
    names = sorted(v.value for v in found.variables)
    for solution in found:
        bound = ((name, solution[name]) for name in names)
        yield tuple(
            (name, "_:" if isinstance(term, BlankNode) else str(term)) for name, term in bound if term is not None
        )
