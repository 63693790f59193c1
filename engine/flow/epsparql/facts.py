"""Events of complete instants → facts, a piece at a time (kernels/flow/facts.py).

In the flow: events in order of time → **facts**, each at the tick of its instant → rules, the query. A fact is a
row of a plan's source: its interval, subject, predicate, object. It may come several times at an instant: plans take
it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64, Buffer, Delta
from oxiseq.engine.flow.epsparql.rows import INTERVAL
from oxiseq.engine.flow.epsparql.stamps import EVENT, STARTED_AT
from oxiseq.engine.flow.operators.distinct import DistinctNode
from oxiseq.engine.flow.plan import Lifetime
from oxiseq.engine.flow.times import LATEST
from oxiseq.engine.kernels.flow import facts as k
from oxiseq.engine.kernels.flow.buffers import DONE, OVER
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, address_of, call
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

FACT: Final = INTERVAL + 3
"""Columns of a fact."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some instants. facts: how many they bring; tick: of the first; since, until: when the first and the last were."""

    facts: int
    tick: int
    since: int
    until: int


class Arriving:
    """What comes. most: facts from which on a piece has no further instant."""

    def __init__(self, terms: TermDictionary, most: int) -> None:
        self.facts = Buffer(FACT)
        """Of the piece in work."""
        self.facts.raw = tuple(range(INTERVAL))
        self.tick = 1
        """Of the next instant, or of the next round of one."""
        self._scalars, self._columns = np.zeros(k.SCALARS, np.int64), np.zeros(6, np.int64)
        self._scalars[[k.MOST, k.STARTED, k.EVENT]] = most, terms.constant(STARTED_AT), terms.constant(EVENT)
        self._memory = Pointers(k.Arriving(self._scalars, self._columns))

    def pieces(self, events: EventBatch, start: I64) -> Iterator[Piece]:
        """Whole instants of events in order of time, one at least; start: when each event started."""
        arrays: list[Array] = [
            *(np.ascontiguousarray(times, np.int64) for times in (events.time, start, events.offset)),
            *(np.ascontiguousarray(ids, np.uint32) for ids in events.ids),
        ]
        self._columns[:] = [address_of(array) for array in arrays]
        scalars = self._scalars
        scalars[k.FIRST], scalars[k.EVENTS] = 0, len(events)
        while scalars.item(k.FIRST) < len(events):
            tick = scalars[k.TICK] = self.tick
            while call(k.write_facts, self._memory, self.facts) != DONE:
                self.facts.grow()
            self.tick = scalars.item(k.TICK)
            if self.facts:
                yield Piece(len(self.facts), tick, scalars.item(k.SINCE), scalars.item(k.UNTIL))


class Known:
    """The facts of the instant in work, each once: where rules feed each other."""

    def __init__(self) -> None:
        self._come = Buffer(FACT)
        self._come.raw = tuple(range(INTERVAL))
        self._clock = np.full(2, LATEST)
        self._known = DistinctNode(self._come, lifetime=Lifetime(0), clock=self._clock)

    def begin(self) -> None:
        """Another instant."""
        self._clock[OVER] = LATEST
        self._known.forget(now=True)
        self._clock[OVER] = -LATEST

    def new(self, facts: Delta) -> Delta:
        """Those that are not known yet, in memory of their own."""
        self._come.put(facts)
        self._known.out.clear()
        self._known.step()
        return owned(self._known.out.delta)


def merged(batches: Sequence[EventBatch]) -> EventBatch:
    """Events of several streams, each in order of time, as one."""
    some = [batch for batch in batches if len(batch)]
    if len(some) < 2:
        return some[0] if some else EventBatch.empty()
    every = EventBatch.concat(some)
    return every.take(np.argsort(every.time, kind="stable"))


def owned(delta: Delta) -> Delta:
    """The same, in memory of its own."""
    return Delta(delta.at.copy(), delta.weight.copy(), delta.rows.copy())


def at_tick(delta: Delta, tick: int) -> Delta:
    """The same at another tick."""
    return Delta(np.full(len(delta), tick), delta.weight, delta.rows)
