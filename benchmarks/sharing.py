"""Many queries over one window, registered together: how much a hundred of them cost over one.

    python -m benchmarks.sharing [--events 20000] [--window 10000] [--rounds 3] [--most 1000]

An observation a second of one of a thousand sensors: its sensor, its value. Kinds of queries: a hundred that are equal;
that differ in a constant, in their aggregates, in their groups, in a FILTER, in HAVING; in what they ask of the
knowledge base, which knows the kind and the place of a sensor; that tell all groups (`told`, whose cost is the rows of
each). And a thousand that differ in a constant. And of languages and clauses of which equal queries are one run (REPORT
EVERY, event patterns, orders in time) a hundred that are equal, a hundred and a thousand that differ in a constant: in
a window of 1,000 an event brings one row to one of the thousand, in a window of 10,000 an order in time brings ten. Of
event patterns new rows are told: RSEP-QL's usual RSTREAM tells all at each instant, whose cost is the rows. Each kind's
queries alone: ten of them, of which the mean is one. The window is full before the clock starts, so that as much leaves
it as comes. CPU time of pushing events to the queries, answers in columns.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations
from time import process_time
from typing import TypeAlias

import numpy as np
from pyoxigraph import Literal, NamedNode, Quad, Store

from benchmarks.machine import machine
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.languages import AnyQuery
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

E = "http://example.org/"
STREAM = E + "observations"
SENSORS = 1000
SECOND = 1_000_000
_SUMS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_AGGREGATES = tuple(islice(chain.from_iterable(permutations(_SUMS, n) for n in (1, 2, 3, 4)), 100))


def _aggregates(number: int) -> str:
    return " ".join(f"({name}(?v) AS ?{name.lower()})" for name in _AGGREGATES[number % len(_AGGREGATES)])


_KEYS = ("?s", "?v", "?s ?v")
KINDS: Mapping[str, Callable[[int], tuple[str, str, str]]] = {
    "equal": lambda n: ("?o ?v", "?o :sensor :s0 ; :value ?v", ""),
    "constants": lambda n: ("?o ?v", f"?o :sensor :s{n} ; :value ?v", ""),
    "aggregates": lambda n: (f"?s {_aggregates(n)}", "?o :sensor ?s ; :value ?v", "GROUP BY ?s HAVING(COUNT(*) > 18)"),
    "told": lambda n: (f"?s {_aggregates(n)}", "?o :sensor ?s ; :value ?v", "GROUP BY ?s"),
    "groups": lambda n: (
        f"{_KEYS[n % 3]} (COUNT(*) AS ?n)",
        "?o :sensor ?s ; :value ?v",
        f"GROUP BY {_KEYS[n % 3]} HAVING(COUNT(*) > {18 + n // 3})",
    ),
    "knowledge": lambda n: ("?o ?s ?v", f"?o :sensor ?s ; :value ?v }} GRAPH :kb {{ ?s :kind :k{n} ; :in ?place", ""),
    "filters": lambda n: ("?o ?s ?v", f"?o :sensor ?s ; :value ?v FILTER(?v > {990 - n % 100})", ""),
    "having": lambda n: (
        "?s (SUM(?v) AS ?sum)",
        "?o :sensor ?s ; :value ?v",
        f"GROUP BY ?s HAVING(SUM(?v) > {9000 - n})",
    ),
}
"""What is selected, the pattern, what follows it."""
_REPORT = (
    f"PREFIX : <{E}> SELECT ?o ?v FROM NAMED WINDOW :w ON <{STREAM}> [RANGE {{window}}s SLIDE 1s] "
    "WHERE {{ WINDOW :w {{ ?o :sensor :s{n} ; :value ?v }} }} REPORT EVERY 10s"
)
_EVENTS = (
    f"PREFIX : <{E}> REGISTER ISTREAM :new AS SELECT * FROM NAMED <{STREAM}> "
    "WIN [RANGE {window} SECONDS SLIDE 1 SECONDS] AS :w "
    "EVENT ON :w {{ ?o :sensor :s{n} ; :value ?v FILTER(?v > 500) }} AS A "
    "EVENT ON :w {{ ?p :sensor :s{n} ; :value ?u FILTER(?u <= 500) }} AS B WHERE {{ MATCH {{ A SEQ B }} }}"
)
_IN_TIME = (
    f"PREFIX : <{E}> SELECT * FROM STREAM <{STREAM}> WHERE {{{{ {{{{ ?o :sensor :s{{n}} ; :value ?v }}}} SEQ "
    "{{ ?p :sensor :s{n} ; :value ?u }} "
    'FILTER(getDURATION() < "PT{window}S"^^<http://www.w3.org/2001/XMLSchema#duration>) }}'
)
ONE_RUN: Mapping[str, tuple[str, str]] = {
    "report": ("rspql", _REPORT),
    "events": ("rsepql", _EVENTS),
    "in time": ("epsparql", _IN_TIME),
}
"""Language and text of queries of which equal ones are one run."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is pushed: events measured, those of the window, of a push."""

    events: int
    window: int
    push: int


class Stream:
    """The observations."""

    def __init__(self, terms: TermDictionary, count: int) -> None:
        dice = np.random.default_rng(7)
        sensors = np.array([terms.constant(NamedNode(f"{E}s{n}")) for n in range(SENSORS)], np.uint32)
        values = np.array([terms.constant(Literal(n)) for n in range(1000)], np.uint32)
        subjects = np.array([terms.constant(NamedNode(f"{E}o{n}")) for n in range(count)], np.uint32)
        has, value = (terms.constant(NamedNode(E + name)) for name in ("sensor", "value"))
        objects = np.empty(2 * count, np.uint32)
        objects[0::2], objects[1::2] = dice.choice(sensors, count), dice.choice(values, count)
        predicates = np.tile(np.array([has, value], np.uint32), count)
        self._whole = EventBatch(
            SECOND * np.arange(count), 2 * np.arange(count + 1), np.repeat(subjects, 2), predicates, objects
        )

    def pushes(self, low: int, high: int, size: int) -> list[EventBatch]:
        """Some of them, so many at once."""
        return [self._whole.slice(at, min(at + size, high)) for at in range(low, high, size)]


def query_of(kind: str, number: int, window: int) -> AnyQuery:
    """A query."""
    if kind in ONE_RUN:
        language, text = ONE_RUN[kind]
        return load(text.format(n=number, window=window), language)
    return load(text_of(kind, number, window), "rspql")


def text_of(kind: str, number: int, window: int) -> str:
    """A query over a window, answered at each instant."""
    head, where, tail = KINDS[kind](number)
    return (
        f"PREFIX : <{E}> SELECT {head} FROM NAMED WINDOW :w ON <{STREAM}> [RANGE {window}s SLIDE 1s] "
        f"WHERE {{ WINDOW :w {{ {where} }} }} {tail}"
    )


def knowledge() -> StoreKb:
    """The kinds and places of sensors."""
    store, graph = Store(), NamedNode(E + "kb")
    store.extend(
        Quad(NamedNode(f"{E}s{n}"), NamedNode(E + name), NamedNode(f"{E}{what}{n % 100}"), graph)
        for n in range(SENSORS)
        for name, what in (("kind", "k"), ("in", "p"))
    )
    return StoreKb(store)


def run(kind: str, numbers: Sequence[int], size: Size) -> tuple[float, int]:
    """CPU seconds, and how many rows the queries of these numbers tell."""
    terms, kb = TermDictionary(), knowledge()
    stream, runs = Stream(terms, size.window + size.events), Runs(terms)
    for number in numbers:
        query = query_of(kind, number, size.window)
        runs.add(language_for(query).compile(query, terms, kb, Options())[0])
    for batch in stream.pushes(0, size.window, 1000):
        runs.push(STREAM, batch)
    pushes = stream.pushes(size.window, size.window + size.events, size.push)
    gc.collect()
    rows, begin = 0, process_time()
    for batch in pushes:
        for outcome in runs.push(STREAM, batch):
            assert outcome.error is None
            rows += sum(len(found) for found in outcome.matches)
    return process_time() - begin, rows


Way: TypeAlias = tuple[str, Sequence[int]]
"""A kind and the numbers of its queries."""


def medians(ways: Sequence[Way], size: Size, rounds: int) -> list[tuple[float, int]]:
    """By way the median over rounds, in which all take turns, after one that is not counted; and the rows told."""
    seconds: list[list[float]] = [[] for _ in ways]
    rows = [0 for _ in ways]
    for number in range(rounds + 1):
        for place, (kind, numbers) in enumerate(ways):
            took, rows[place] = run(kind, numbers, size)
            if number:
                seconds[place].append(took)
    return [(statistics.median(took), told) for took, told in zip(seconds, rows, strict=True)]


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.sharing")
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--window", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--most", type=int, default=1000, help="queries that differ in a constant")
    options.add_argument("--only", action="append", choices=[*KINDS, *ONE_RUN])
    given = options.parse_args()
    print(machine())
    for push in (1, 1000, 10_000):
        size = Size(given.events if push > 1 else given.events // 10, given.window, push)
        print(f"\npushes of {push}: {size.events} events, a window of {given.window}")
        for kind in (*KINDS, *ONE_RUN):
            if given.only and kind not in given.only:
                continue
            many: list[Sequence[int]] = [[0] * 100] if kind in ONE_RUN else []
            many += [range(100), *([range(given.most)] if kind in {"constants", *ONE_RUN} else [])]
            ways = [(kind, [number]) for number in range(0, 100, 10)] + [(kind, numbers) for numbers in many]
            found = medians(ways, size, given.rounds)
            alone, together = found[: -len(many)], found[-len(many) :]
            one = statistics.mean(took for took, _ in alone)
            _print(kind, 1, one, size.events, one, round(statistics.mean(rows for _, rows in alone)))
            for numbers, (took, rows) in zip(many, together, strict=True):
                _print(kind if len({*numbers}) > 1 else f"{kind} (=)", len(numbers), took, size.events, one, rows)


def _print(kind: str, queries: int, took: float, events: int, one: float, rows: int) -> None:
    print(
        f"{kind:12} {queries:5} queries  {took / events * 1e6:8.2f} µs/event  {events / took:11,.0f} events/s  "
        f"{took / one:6.2f} times one  {rows:9,} rows"
    )


if __name__ == "__main__":
    main()
