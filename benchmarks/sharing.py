"""Many queries over one window, registered together: how much a hundred of them cost over one.

    python -m benchmarks.sharing [--events 20000] [--window 10000] [--rounds 3] [--most 1000]

An observation a second of one of a thousand sensors: its sensor, its value. Kinds of queries: a hundred that are
equal; that differ in a constant, in their aggregates, in a FILTER, in HAVING; and each kind's first query alone. And a
thousand that differ in a constant. The window is full before the clock starts, so that as much leaves it as comes. CPU
time of pushing events to the queries, answers in columns.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations
from time import process_time

import numpy as np
from pyoxigraph import Literal, NamedNode, Store

from benchmarks.machine import machine
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

E = "http://example.org/"
STREAM = E + "observations"
SENSORS = 1000
SECOND = 1_000_000
_SUMS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_AGGREGATES = tuple(islice(chain.from_iterable(permutations(_SUMS, n) for n in (1, 2, 3, 4)), 100))


def _aggregates(number: int) -> str:
    return " ".join(f"({name}(?v) AS ?{name.lower()})" for name in _AGGREGATES[number % len(_AGGREGATES)])


KINDS: Mapping[str, Callable[[int], tuple[str, str, str]]] = {
    "equal": lambda n: ("?o ?v", "?o :sensor :s0 ; :value ?v", ""),
    "constants": lambda n: ("?o ?v", f"?o :sensor :s{n} ; :value ?v", ""),
    "aggregates": lambda n: (f"?s {_aggregates(n)}", "?o :sensor ?s ; :value ?v", "GROUP BY ?s HAVING(COUNT(*) > 18)"),
    "filters": lambda n: ("?o ?s ?v", f"?o :sensor ?s ; :value ?v FILTER(?v > {990 - n % 100})", ""),
    "having": lambda n: ("?s (SUM(?v) AS ?sum)", "?o :sensor ?s ; :value ?v",
                         f"GROUP BY ?s HAVING(SUM(?v) > {9000 - n})"),
}  # fmt: skip
"""What is selected, the pattern, what follows it."""


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


def text_of(kind: str, number: int, window: int) -> str:
    """A query."""
    head, where, tail = KINDS[kind](number)
    return (
        f"PREFIX : <{E}> SELECT {head} FROM NAMED WINDOW :w ON <{STREAM}> [RANGE {window}s SLIDE 1s] "
        f"WHERE {{ WINDOW :w {{ {where} }} }} {tail}"
    )


def run(kind: str, queries: int, size: Size) -> tuple[float, int]:
    """CPU seconds, and how many rows the queries tell."""
    terms, kb = TermDictionary(), StoreKb(Store())
    stream, runs = Stream(terms, size.window + size.events), Runs(terms)
    for number in range(queries):
        plan = compile_rsp(load(text_of(kind, number, size.window), "rspql"), terms)
        runs.add(RspRun(plan, terms, kb))
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


def medians(ways: Sequence[tuple[str, int, Size]], rounds: int) -> list[tuple[float, int]]:
    """By way the median over rounds, in which all take turns, after one that is not counted; and the rows told."""
    seconds: list[list[float]] = [[] for _ in ways]
    rows = [0 for _ in ways]
    for number in range(rounds + 1):
        for place, (kind, queries, size) in enumerate(ways):
            took, rows[place] = run(kind, queries, size)
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
    given = options.parse_args()
    print(machine())
    for push in (1, 1000, 10_000):
        events = given.events if push > 1 else given.events // 10
        size = Size(events, given.window, push)
        ways = [(kind, queries, size) for kind in KINDS for queries in (1, 100)]
        ways.append(("constants", given.most, size))
        found = dict(zip([way[:2] for way in ways], medians(ways, given.rounds), strict=True))
        print(f"\npushes of {push}: {events} events, a window of {given.window}")
        for (kind, queries), (took, rows) in found.items():
            one = found[kind, 1][0]
            print(
                f"{kind:11} {queries:5} queries  {took / events * 1e6:8.2f} µs/event  {events / took:11,.0f} events/s  "
                f"{took / one:6.2f} times one  {rows:9,} rows"
            )


if __name__ == "__main__":
    main()
