"""The clock: events in order of arrival → complete instants in order of time (semantics.md 2.7).

Each stream has a watermark: the largest timestamp seen minus the allowed lateness, advanced also by explicit
punctuation. An instant is complete when the watermarks of all streams have passed it; until then more graphs
for it are merged. An event older than its stream's watermark is late: counted and handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch

BEFORE_ALL = -(1 << 62)
AFTER_ALL = 1 << 62


@dataclass(slots=True)
class _StreamClock:
    pending: list[EventBatch] = field(default_factory=list)
    oldest: int = AFTER_ALL
    """The smallest time pending."""
    largest: int = BEFORE_ALL
    punctuation: int = BEFORE_ALL

    def watermark(self, lateness: int) -> int:
        seen = BEFORE_ALL if self.largest == BEFORE_ALL else self.largest - lateness
        return max(seen, self.punctuation)


@dataclass(frozen=True, slots=True)
class Instants:
    """Complete instants: `time` i64[k] ascending, and per stream its events there.

    `batches[s]` has at most one event per instant, `where[s]` i64 says at which instant each stands.
    """

    time: NDArray[np.int64]
    batches: tuple[EventBatch, ...]
    where: tuple[NDArray[np.int64], ...]


class Clock:
    """Orders the events of a query's streams. `passed`: everything before is complete."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        self._streams = [_StreamClock() for _ in range(streams)]
        self.lateness = lateness
        """How much a stream may be out of order, in microseconds."""
        self._start = BEFORE_ALL if start is None else start

    def push(self, stream: int, batch: EventBatch) -> EventBatch:
        """Take events in order of arrival; returns those that are late."""
        if not len(batch):
            return batch
        clock = self._streams[stream]
        peaks = np.maximum.accumulate(np.maximum(batch.time, clock.largest))
        before = np.concatenate([[clock.largest], peaks[:-1]])
        marks = np.where(before == BEFORE_ALL, BEFORE_ALL, before - self.lateness)
        late = batch.time < np.maximum(marks, clock.punctuation)
        clock.largest = int(peaks[-1])
        if late.any():
            on_time = batch.take(np.flatnonzero(~late))
            batch, refused = on_time, batch.take(np.flatnonzero(late))
        else:
            refused = EventBatch.empty()
        unseen = batch.time < self._start
        if unseen.any():  # the query is registered at `start`: what was before, it does not see
            batch = batch.take(np.flatnonzero(~unseen))
        if len(batch):
            clock.pending.append(batch)
            clock.oldest = min(clock.oldest, int(batch.time.min()))
        return refused

    def advance(self, stream: int, time: int) -> None:
        """Punctuation: no event of `stream` before `time` will come (if one does, it is late)."""
        clock = self._streams[stream]
        clock.punctuation = max(clock.punctuation, time)

    @property
    def passed(self) -> int:
        """Everything before this time is complete."""
        return min(clock.watermark(self.lateness) for clock in self._streams)

    @property
    def newest(self) -> int:
        """The largest timestamp seen on any stream."""
        return max(clock.largest for clock in self._streams)

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return any(clock.pending for clock in self._streams)

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events that wait."""
        for clock in self._streams:
            for batch in clock.pending:
                yield from batch.ids

    def take(self) -> Instants:
        """All complete instants since the last call."""
        passed = self.passed
        ready = [self._split(clock, passed) for clock in self._streams]
        merged = tuple(merge_instants(batch) for batch in ready)
        if len(merged) == 1:
            times = merged[0].time
            return Instants(times, merged, (np.arange(len(times)),))
        times = np.unique(np.concatenate([batch.time for batch in merged]))
        return Instants(times, merged, tuple(np.searchsorted(times, batch.time) for batch in merged))

    @staticmethod
    def _split(clock: _StreamClock, passed: int) -> EventBatch:
        if clock.oldest >= passed:
            return EventBatch.empty()
        every = EventBatch.concat(clock.pending)
        if (every.time[1:] >= every.time[:-1]).all():  # in order, as nearly always: the complete ones come first
            cut = int(np.searchsorted(every.time, passed))
            complete, rest = every.slice(0, cut), every.slice(cut, len(every))
        else:
            done = every.time < passed
            complete, rest = every.take(np.flatnonzero(done)), every.take(np.flatnonzero(~done))
        clock.pending = [rest] if len(rest) else []
        clock.oldest = int(rest.time.min()) if len(rest) else AFTER_ALL
        return complete


def merge_instants(batch: EventBatch) -> EventBatch:
    """Sort by time; graphs of one timestamp become one event, in order of arrival."""
    time = batch.time
    if len(time) > 1 and not (time[1:] > time[:-1]).all():
        batch = batch.take(np.argsort(time, kind="stable"))
        first = np.concatenate([[True], batch.time[1:] != batch.time[:-1]])
        starts = np.flatnonzero(first)
        offset = np.append(batch.offset[:-1][starts], batch.offset[-1])
        batch = EventBatch(batch.time[starts], offset, batch.subject, batch.predicate, batch.object)
    return batch

