"""Ways to be told what is new in the answer over a sliding window: the engine, and a store that is queried again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Any, Final

import numpy as np
from pyoxigraph import Quad, QuerySolutions, Store

from benchmarks.operators.queries import STREAM, InTime, Operator
from benchmarks.operators.stream import SECOND, Sensors
from oxiseq.engine.kb import StoreKb
from oxiseq.grammar import load
from oxiseq.languages.registry import language_for
from oxiseq.options import Options

PUSH: Final = 1_000
"""Events of a large push."""
ROUNDS: Final = 9
SINGLES: Final = 150
"""Pushes of one event in a round."""
Told = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Rate:
    """Events per second of CPU time in pushes of 1,000, microseconds of a push of one event; medians."""

    batch: float
    single: float


class Running:
    """A query at work, without a store around it."""

    def __init__(self, query: Operator | InTime, window: int, sensors: Sensors) -> None:
        parsed = load(query.text(window), query.language if isinstance(query, InTime) else "rspql")
        self.front, self.sensors = language_for(parsed), sensors
        self._run: Any
        self._run, self.shape = self.front.compile(parsed, sensors.terms, StoreKb(Store()), Options())
        self.at = 0

    def push(self, events: int, size: int) -> tuple[list[Any], float]:
        """So many more events in pushes of `size`: what is told, and the CPU time."""
        end = self.at + events
        batches = [self.sensors.batch(low, min(end, low + size)) for low in range(self.at, end, size)]
        self.at, found, run = end, [], self._run
        begun = process_time()
        for batch in batches:
            run.push(STREAM, batch)
            found += run.advance()
        return found, process_time() - begun

    def told(self, events: int) -> Told:
        """What so many more events tell, one by one. An instant is complete when another has come: one event more."""
        first, end = self.at * SECOND, (self.at + events) * SECOND
        found = [
            batch.take(np.flatnonzero((batch.time >= first) & (batch.time < end)))
            for batch in self.push(events + 1, 1)[0]
        ]
        names = sorted(self.shape.variables)
        rows = (self.shape.block([batch]).match(i) for batch in found for i in range(len(batch)))
        return Counter(tuple(str(row.get(name)) for name in names) for row in rows)


def engine(query: Operator | InTime, windows: Sequence[int]) -> list[Rate]:
    """Over full windows of so many events, in turns, so that growth is no affair of what else the machine does."""
    more = (ROUNDS + 1) * (PUSH + SINGLES) + PUSH
    runs = [Running(query, window, Sensors(window, window + more)) for window in windows]
    for run, window in zip(runs, windows, strict=True):
        run.push(window, PUSH)
    batch: list[list[float]] = [[] for _ in runs]
    single: list[list[float]] = [[] for _ in runs]
    for number in range(ROUNDS + 1):
        for run, large, small in zip(runs, batch, single, strict=True):
            spent = run.push(PUSH, PUSH)[1], run.push(SINGLES, 1)[1]
            if number:  # the first makes room
                large.append(spent[0])
                small.append(spent[1])
    return [
        Rate(PUSH / median(large), median(small) / SINGLES * 1e6) for large, small in zip(batch, single, strict=True)
    ]


def asked_again(query: Operator, window: int, budget: float) -> tuple[float, int, Told]:
    """pyoxigraph, a store that holds the window, for `budget` seconds: events per second, how many, and its answers.

    The loop that people write: add, remove, ask, compare with the answer before.
    """
    most = 20_000
    sensors = Sensors(window, window + most)
    store, held, times, told = Store(), deque[list[Quad]](), Counter[Quad](), Told()
    for quads in sensors.quads(0, window):
        held.append(quads)
        times.update(quads)
    store.bulk_extend(times)
    before, spent, count = _answer(store, query.asked), 0.0, 0
    for quads in sensors.quads(window, window + most):
        begun = process_time()
        held.append(quads)
        times.update(quads)
        store.extend(quads)
        for quad in held.popleft():
            times[quad] -= 1
            if not times[quad]:
                store.remove(quad)
        now = _answer(store, query.asked)
        told += now - before
        before = now
        spent, count = spent + process_time() - begun, count + 1
        if spent > budget:
            break
    return count / spent, count, told


def _answer(store: Store, text: str) -> Told:
    answer = store.query(text)
    assert isinstance(answer, QuerySolutions)
    names = sorted(variable.value for variable in answer.variables)
    return Counter(tuple(str(row[name]) for name in names) for row in answer)


def told_by_engine(query: Operator, window: int, events: int) -> Told:
    """What so many events tell after a full window."""
    run = Running(query, window, Sensors(window, window + 20_000))
    run.push(window, PUSH)
    return run.told(events)
