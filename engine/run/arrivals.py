"""Events in order of arrival → events in order of time, each by itself (semantics.md 2.7 and 4).

As with instants (clock.py) a stream has a watermark, an event older than it is late, and what is before all
watermarks is complete; but graphs of one time are not merged, since an item of RSEP-QL keeps its own position.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.run.clock import AFTER_ALL, BEFORE_ALL, late_ones
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


class _Waiting:
    """One stream."""

    def __init__(self) -> None:
        self.pending: list[EventBatch] = []
        self.oldest = AFTER_ALL
        self.largest = self.punctuation = BEFORE_ALL

    def mark(self, lateness: int) -> int:
        return max(self.largest - lateness, self.punctuation) if self.largest != BEFORE_ALL else self.punctuation

    def wait(self, batch: EventBatch) -> None:
        if len(batch):
            self.pending.append(batch)
            self.oldest = min(self.oldest, int(batch.time.min()))

    def up_to(self, passed: int) -> EventBatch:
        """Take out what is before `passed`, in order of time, then of arrival."""
        if self.oldest >= passed:
            return EventBatch.empty()
        every = EventBatch.concat(self.pending)
        if not (every.time[1:] >= every.time[:-1]).all():
            every = every.take(np.argsort(every.time, kind="stable"))
        cut = int(np.searchsorted(every.time, passed))
        self.pending, self.oldest = [], AFTER_ALL
        self.wait(every.slice(cut, len(every)))
        return every.slice(0, cut)


class Arrivals:
    """Orders the events of streams. Counters: `events` taken, `late` refused."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        self._streams = [_Waiting() for _ in range(streams)]
        self.lateness = lateness
        """How much a stream may be out of order, in microseconds."""
        self._start = start
        self.events = self.late = 0

    def push(self, stream: int, batch: EventBatch) -> EventBatch:
        """Take events in order of arrival; returns those that are late."""
        if not len(batch):
            return batch
        waiting = self._streams[stream]
        self.events += len(batch)
        late, waiting.largest = late_ones(batch.time, waiting.largest, waiting.punctuation, self.lateness)
        refused = EventBatch.empty()
        if late.any():
            batch, refused = batch.take(np.flatnonzero(~late)), batch.take(np.flatnonzero(late))
            self.late += len(refused)
        if self._start is not None and len(batch):  # the query is registered then: what was before, it does not see
            batch = batch.take(np.flatnonzero(batch.time >= self._start))
        waiting.wait(batch)
        return refused

    def advance(self, stream: int, time: int) -> None:
        """Punctuation: no event of `stream` before `time` will come (if one does, it is late)."""
        waiting = self._streams[stream]
        waiting.punctuation = max(waiting.punctuation, time)

    def settle(self) -> None:
        """Take everything seen so far as complete: what comes for it from now on is late."""
        newest = max(waiting.largest for waiting in self._streams)
        if newest > BEFORE_ALL:
            for stream in range(len(self._streams)):
                self.advance(stream, newest + 1)

    def close(self) -> None:
        """The streams have ended."""
        for stream in range(len(self._streams)):
            self.advance(stream, AFTER_ALL)

    @property
    def passed(self) -> int:
        """Everything before this time is complete."""
        return min(waiting.mark(self.lateness) for waiting in self._streams)

    @property
    def open(self) -> bool:
        """Whether events wait."""
        return any(waiting.pending for waiting in self._streams)

    def take(self) -> list[EventBatch]:
        """What is complete, by stream."""
        passed = self.passed
        return [waiting.up_to(passed) for waiting in self._streams]

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events that wait."""
        for waiting in self._streams:
            for batch in waiting.pending:
                yield from batch.ids

    def save(self, terms: SavedTerms) -> State:
        """Its state, with the events that wait."""
        streams = []
        for waiting in self._streams:
            events = EventBatch.concat(waiting.pending)
            for ids in events.ids:
                terms.ids(ids)
            streams.append({"events": events.save(), "largest": waiting.largest, "punctuation": waiting.punctuation})
        return {"streams": streams, "lateness": self.lateness, "start": self._start, "events": self.events,
                "late": self.late}  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._streams = []
        for saved in state["streams"]:
            waiting = _Waiting()
            waiting.largest, waiting.punctuation = int(saved["largest"]), int(saved["punctuation"])
            waiting.wait(EventBatch.restored(saved["events"], terms))
            self._streams.append(waiting)
        start = state["start"]
        self.lateness, self._start = int(state["lateness"]), None if start is None else int(start)
        self.events, self.late = int(state["events"]), int(state["late"])
