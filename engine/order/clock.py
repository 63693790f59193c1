"""The clock: events in order of arrival → complete instants in order of time (semantics.md 2.7).

An instant is complete when the watermarks of all streams (watermarks.py) have passed it; until then more graphs for it
are merged. A late event is counted and returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.waiting import EventOrder, Waiting
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.terms.saved import KnownTerms, MadeOf, State, value

_LARGE: Final = 1024
"""Events of a batch that is not copied only to have a few others before it."""
_SHORT: Final = ((np.zeros(0, np.int64),), (np.zeros(1, np.int64),))
"""`Instants.where` of one stream without events, and with one."""


class Instants(NamedTuple):
    """Complete instants: `time` i64[k] ascending, and per stream its events there.

    `batches[s]` has at most one event per instant, `where[s]` i64 says at which instant each is. `first`: the
    number of the first one among all that the clock has completed; `passed`: everything before it is complete;
    `reached`: of streams that have ended, the greatest time that one had come to.

    Where every event is an instant of its own (positions.py), `time` is its position and `clock` i64[k] its time (µs),
    not falling; else `clock` is None.
    """

    time: NDArray[np.int64]
    batches: tuple[EventBatch, ...]
    where: tuple[NDArray[np.int64], ...]
    first: int = 0
    passed: int = BEFORE_ALL
    clock: NDArray[np.int64] | None = None
    reached: int = BEFORE_ALL

    @property
    def clocks(self) -> NDArray[np.int64]:
        """i64[k] µs: when they happen."""
        return self.time if self.clock is None else self.clock

    def slice(self, low: int, high: int) -> Instants:
        """The instants low, ..., high - 1."""
        if low == 0 and high >= len(self.time):
            return self
        batches, where = [], []
        for batch, at in zip(self.batches, self.where, strict=True):
            a, b = np.searchsorted(at, (low, high))
            batches.append(batch.slice(int(a), int(b)))
            where.append(at[a:b] - low)
        clock = None if self.clock is None else self.clock[low:high]
        time, first = self.time[low:high], self.first + low
        return Instants(time, tuple(batches), tuple(where), first, self.passed, clock, self.reached)

    @classmethod
    def concat(cls, parts: Sequence[Instants]) -> Instants:
        """Instants that follow each other."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.time) for part in parts)]).tolist()
        batches, where = [], []
        for stream in range(len(parts[0].batches)):
            batches.append(EventBatch.concat([part.batches[stream] for part in parts]))
            moved = [part.where[stream] + low for part, low in zip(parts, before, strict=False)]
            where.append(np.concatenate(moved))
        time = np.concatenate([part.time for part in parts])
        last = parts[-1]
        return cls(time, tuple(batches), tuple(where), parts[0].first, last.passed, None, last.reached)


class Clock(EventOrder):
    """Orders the events of streams. One more counter: `instants` completed."""

    made_of: ClassVar[MadeOf] = *EventOrder.made_of, value("instants"), value("completed")

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__(streams, lateness, start)
        self.instants = 0
        self.has_more = False
        """Whether instants are complete that the last `take` has left."""
        self.completed = BEFORE_ALL
        """The time of the last complete instant."""

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> Self:
        """A clock that continues from a saved state."""
        clock = cls(0)
        clock.restore(state, terms)
        return clock

    def take(self) -> Instants:
        """All complete instants since the last call; or the first of them, if it then `has_more`.

        A few events before a large batch are returned by themselves: to put them together would copy it.
        """
        passed = self.passed
        if len(self._streams) == 1:
            (waiting,) = self._streams
            whole, passed = passed, _up_to_large(waiting, passed)
            self.has_more = passed < whole
            merged: tuple[EventBatch, ...] = (merge_instants(EventBatch.concat(waiting.up_to(passed))),)
            times = merged[0].time
            where: tuple[NDArray[np.int64], ...] = _SHORT[len(times)] if len(times) < 2 else (np.arange(len(times)),)
        else:
            merged = tuple([merge_instants(EventBatch.concat(waiting.up_to(passed))) for waiting in self._streams])
            times = np.unique(np.concatenate([batch.time for batch in merged]))
            where = tuple(np.searchsorted(times, batch.time) for batch in merged)
        instants = Instants(times, merged, where, self.instants, passed, None, self.reached)
        if len(times):
            self.instants += len(times)
            self.completed = times.item(-1)
        return instants


def _up_to_large(waiting: Waiting[EventBatch], passed: int) -> int:
    """The time before which to take: that of a large batch that has just come to others, if that is sooner."""
    pending = waiting.pending
    if len(pending) < 2 or len(pending[-1]) < _LARGE or not waiting.ordered:
        return passed
    return min(passed, pending[-1].time.item(0))


def merge_instants(batch: EventBatch) -> EventBatch:
    """Graphs of one timestamp, of events in order of time, become one event, in order of arrival."""
    time = batch.time
    if len(time) > 1 and not (time[1:] > time[:-1]).all():
        starts = np.flatnonzero(np.concatenate([[True], time[1:] != time[:-1]]))
        offset = np.append(batch.offset[:-1][starts], batch.offset[-1])
        batch = EventBatch(time[starts], offset, *batch.ids)
    return batch
