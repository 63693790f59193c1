"""Case `queries`: one stream, 1 to 100 registered queries, each with something of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from pyoxigraph import NamedNode

import oxiseq
from benchmarks.charts import OXISEQ, TEXTBOOK, Chart, Line
from benchmarks.data import NS, SECOND, START, STREAM, Events, decimal, iri
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.rivals import Rival
from benchmarks.textbook import Chosen, Event, Fits, Nfa, Step
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

COUNTS: Final = (1, 10, 100)
SENSORS: Final = 100
WINDOW: Final = 10
"""Seconds."""
BATCH: Final = 1_024
"""Events of a push."""
EVERY: Final = SECOND // 100
"""Microseconds from event to event."""
_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_ALL: Final = 1 << 62
"""More tries than there will be."""
ABOUT = (
    "`SEQ(A; B)`, a reading of a sensor and the next higher one of the same, in sliding windows of 10 s with a "
    "thousand readings; registered with one store, events pushed to its stream by thousands, matches taken from every "
    "query. The queries differ in the least reading, or in the type of event that they ask for, or in its predicate."
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What the queries differ in: body of A and of B for query `i` of `n`, and the same for the textbook."""

    body: Callable[[int, int, str, str], str]
    fits: Callable[[int, int], Fits]


def _least(number: int, count: int) -> float:
    return 99 + number / count


KINDS: Final[Mapping[str, Kind]] = {
    "own thresholds": Kind(
        lambda i, n, e, v: f"?{e} :sensor ?s ; :reading ?{v} . FILTER(?{v} > {_least(i, n)})",
        lambda i, n: lambda event, _: event[3] > _least(i, n),
    ),
    "own types": Kind(
        lambda i, n, e, v: f"?{e} a :T{i} ; :sensor ?s ; :reading ?{v} . FILTER(?{v} > 50)",
        lambda i, n: lambda event, _: event[1] == i and event[3] > 50,
    ),
    "own predicates": Kind(
        lambda i, n, e, v: f"?{e} :sensor ?s ; :reading{i} ?{v} . FILTER(?{v} > 50)",
        lambda i, n: lambda event, _: event[1] == i and event[3] > 50,
    ),
}


def query(kind: str, number: int, count: int) -> str:
    """Query `number` of `count`."""
    body = KINDS[kind].body
    return f"""PREFIX : <{NS}>
SELECT ?s ?v1 ?v2
WITHIN {WINDOW} SECONDS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ {body(number, count, "a", "v1")} }}
  DEFINE GPM B ON S {{ {body(number, count, "b", "v2")} FILTER(?v2 > ?v1) }}
}}"""


def nfa(kind: str, number: int, count: int) -> Nfa:
    """The same for the textbook."""
    fits = KINDS[kind].fits(number, count)

    def following(event: Event, chosen: Chosen) -> bool:
        more: bool = event[2] == chosen[0][2] and event[3] > chosen[0][3]
        return more and fits(event, chosen)

    return Nfa([Step(fits), Step(following, ";")], WINDOW * SECOND)


def readings(terms: TermDictionary, kind: str, count: int, seed: int = 4) -> tuple[Events, list[Event]]:
    """Readings of sensors, each of one of 100 types, which is its type or the name of its predicate; and the same as
    plain tuples: time, type, sensor, reading."""
    random = np.random.default_rng(seed)
    own, sensor = random.integers(0, COUNTS[-1], count), random.integers(0, SENSORS, count)
    cents = random.integers(0, 10_000, count)
    time = START + EVERY * np.arange(count)
    named = "reading{}" if kind == "own predicates" else "reading"
    predicates = terms.intern_all(iri(named.format(number)) for number in range(COUNTS[-1]))[own]
    types = terms.intern_all(iri(f"T{number}") for number in range(COUNTS[-1]))[own]
    sensors = terms.intern_all(iri(f"sensor/{number}") for number in range(SENSORS))[sensor]
    values = terms.intern_all(decimal(number) for number in range(10_000))[cents]
    columns = {
        "type": (np.full(count, terms.intern(_TYPE), np.uint32), types),
        "sensor": (np.full(count, terms.intern(iri("sensor")), np.uint32), sensors),
        "reading": (predicates, values),
    }
    if kind == "own predicates":
        del columns["type"]
    predicate, objects = (np.stack(part, axis=1).ravel() for part in zip(*columns.values(), strict=True))
    subject = np.repeat(terms.blanks(count), len(columns))
    whole = EventBatch(time, len(columns) * np.arange(count + 1), subject, predicate, objects)
    terms.hold(*whole.ids)
    batches = tuple(whole.slice(start, start + BATCH) for start in range(0, count, BATCH))
    rows = list(zip(time.tolist(), own.tolist(), sensor.tolist(), (cents / 100).tolist(), strict=True))
    return Events(terms, batches), rows


class Live:
    """A store with registered queries, to which the events are pushed again and again, each time later."""

    def __init__(self, kind: str, queries: int, events: int) -> None:
        store = oxiseq.Store()
        # a store's dictionary is its own business; whoever codes events for `push_batch` needs it
        self._events, _ = readings(store.stream(STREAM)._backend.terms, kind, events)
        self._queries = [store.register(query(kind, number, queries)) for number in range(queries)]
        self._stream = store.stream(STREAM)
        self._later = 0

    def push_all(self) -> int:
        """Push everything; the matches of all queries."""
        batches, later = self._events.batches, self._later
        for batch in batches:
            self._stream.push_batch(replace(batch, time=batch.time + later))
        last = int(batches[-1].time[-1])
        self._stream.advance(last + later + 1)
        self._later += last - START + 2 * WINDOW * SECOND
        return sum(1 for found in self._queries for _ in found.poll("0s"))


def textbook(kind: str, queries: int, count: int, tries: int) -> Rival:
    """A NFA for each query. Raises AssertionError when one of them finds other matches than oxiseq."""
    events, rows = readings(TermDictionary(), kind, count)
    machines = [nfa(kind, number, queries) for number in range(queries)]
    seen = min(machine.run(rows, tries // queries).seen for machine in machines)
    first, few = events.first(seen), rows[:seen]
    for number, machine in enumerate(machines):
        expected = Prepared.of(query(kind, number, queries), events.terms).counting(first)()
        found = len(machine.run(few, _ALL).matches)
        if found != expected:
            raise AssertionError(f"{kind}, query {number} of {queries}: textbook {found}, oxiseq {expected}")
    return Rival(lambda: sum(len(machine.run(few, _ALL).matches) for machine in machines), seen, seen == count, tries)


def run(size: Size) -> Result:
    """Nanoseconds per event for all queries together."""
    cases = {(kind, n): max(1, size.events // max(1, n // 10)) for kind in KINDS for n in COUNTS}
    live = {case: Live(*case, events) for case, events in cases.items()}
    rivals = {case: textbook(*case, events, size.tries) for case, events in cases.items()}
    ways = {f"{OXISEQ} {case}": live[case].push_all for case in cases}
    ways |= {f"{TEXTBOOK} {case}": rivals[case].task for case in cases}
    measured = measure(ways, size.rounds, {f"{case}": live[case].push_all for case in cases})
    mine = {case: Row.of(case[0], _queries(case[1]), measured[f"{OXISEQ} {case}"], cases[case]) for case in cases}
    theirs = {case: rivals[case].row(case[0], _queries(case[1]), measured[f"{TEXTBOOK} {case}"]) for case in cases}
    _check(rivals, mine, theirs)
    figures = tuple(
        Figure(f"time per event, {kind}, {COUNTS[-1]} queries over 1", mine[kind, COUNTS[-1]].ns / mine[kind, 1].ns)
        for kind in KINDS
    )
    lines = tuple(
        Line.of(by, kind, (rows[kind, n].at(n) for n in COUNTS))
        for by, rows in ((OXISEQ, mine), (TEXTBOOK, theirs))
        for kind in KINDS
    )
    return Result(
        "queries",
        "Many registered queries",
        ABOUT,
        (*mine.values(), *theirs.values()),
        figures,
        (Chart("queries", "Many registered queries", "registered queries", lines),),
    )


def _check(
    rivals: Mapping[tuple[str, int], Rival],
    mine: Mapping[tuple[str, int], Row],
    theirs: Mapping[tuple[str, int], Row],
) -> None:
    """A live store must have found what the textbook found, where that came to the end."""
    for case, rival in rivals.items():
        if rival.whole and mine[case].matches != theirs[case].matches:
            raise AssertionError(f"{case}: {mine[case].matches} live, {theirs[case].matches} by the textbook")


def _queries(count: int) -> str:
    return f"{count} {'query' if count == 1 else 'queries'}"
