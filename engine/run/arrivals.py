"""Events in order of arrival → events in order of time, each by itself (semantics.md 2.7 and 4).

As with instants (clock.py) a stream has a watermark, an event older than it is late, and what is before all
watermarks is complete; but graphs of one time are not merged, since an item of RSEP-QL keeps its own position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL, Watermark, Watermarks
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


@dataclass(slots=True)
class _Waiting(Watermark):
    """One stream."""

    pending: deque[EventBatch] = field(default_factory=deque)
    oldest: int = AFTER_ALL
    newest: int = BEFORE_ALL
    ordered: bool = True
    """Whether what waits stands in order of time."""

    def wait(self, batch: EventBatch) -> None:
        time = batch.time
        if not len(time):
            return
        first = last = time.item(0)
        if len(time) > 1:
            self.ordered = self.ordered and bool((time[1:] >= time[:-1]).all())
            first, last = (time.item(0), time.item(-1)) if self.ordered else (int(time.min()), int(time.max()))
        if first < self.newest:
            self.ordered = False
        self.oldest, self.newest = min(self.oldest, first), max(self.newest, last)
        self.pending.append(batch)

    def up_to(self, passed: int) -> EventBatch:
        """Take out what is before `passed`, in order of time, then of arrival."""
        if self.oldest >= passed:
            return EventBatch.empty()
        if not self.ordered:
            every = EventBatch.concat(self.pending)
            every = every.take(np.argsort(every.time, kind="stable"))
            self.pending, self.newest, self.ordered = deque(), BEFORE_ALL, True
            self.wait(every)
        pending, taken = self.pending, list[EventBatch]()
        while pending and pending[0].time.item(-1) < passed:
            taken.append(pending.popleft())
        if pending and pending[0].time.item(0) < passed:
            split = pending.popleft()
            cut = int(np.searchsorted(split.time, passed))
            taken.append(split.slice(0, cut))
            pending.appendleft(split.slice(cut, len(split)))
        if pending:
            self.oldest = pending[0].time.item(0)
        else:
            self.oldest, self.newest = AFTER_ALL, BEFORE_ALL
        return EventBatch.concat(taken)


class Arrivals(Watermarks[_Waiting]):
    """Orders the events of streams."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__((_Waiting() for _ in range(streams)), lateness, start)

    def push(self, stream: int, batch: EventBatch) -> EventBatch:
        """Take events in order of arrival; returns those that are late."""
        if not len(batch):
            return batch
        self.events += len(batch)
        waiting = self._streams[stream]
        if len(batch) == 1:
            return self._push_one(waiting, batch)
        late, kept = self._sort_out(waiting, batch.time)
        waiting.wait(batch if kept.all() else batch.take(np.flatnonzero(kept)))
        return batch.take(np.flatnonzero(late)) if late.any() else EventBatch.empty()

    def _push_one(self, waiting: _Waiting, batch: EventBatch) -> EventBatch:
        """The same for one event, in a tenth of the time."""
        late, kept = self._sort_out_one(waiting, batch.time.item(0))
        if kept:
            waiting.wait(batch)
        return batch if late else EventBatch.empty()

    @property
    def open(self) -> bool:
        """Whether events wait."""
        return any(waiting.pending for waiting in self._streams)

    def complete(self, before: int) -> bool:
        """Whether something is complete and lies before a time."""
        passed = min(self.passed, before)
        for waiting in self._streams:  # noqa: SIM110  it is asked for every event
            if waiting.oldest < passed:
                return True
        return False

    def take(self, before: int = AFTER_ALL) -> list[EventBatch]:
        """What is complete and lies before a time, by stream."""
        passed = min(self.passed, before)
        return [waiting.up_to(passed) for waiting in self._streams]

    def copy(self) -> Arrivals:
        """Goes on by itself from where this one is."""
        other = copy(self)
        other._streams = [replace(waiting, pending=deque(waiting.pending)) for waiting in self._streams]
        return other

    def same(self, other: Arrivals) -> bool:
        """Whether both take the same further events alike, and hand out the same then."""
        lateness = self.lateness
        return all(
            one.largest == another.largest and one.at(lateness) == another.at(lateness)
            and (one.oldest, one.newest) == (another.oldest, another.newest)
            for one, another in zip(self._streams, other._streams, strict=True)
        ) and all(
            EventBatch.concat(one.pending).same(EventBatch.concat(another.pending))
            for one, another in zip(self._streams, other._streams, strict=True)
        )  # fmt: skip

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
        return {**self._save(), "streams": streams}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._restore(state)
        self._streams = []
        for saved in state["streams"]:
            waiting = _Waiting(int(saved["largest"]), int(saved["punctuation"]))
            waiting.wait(EventBatch.restored(saved["events"], terms))
            self._streams.append(waiting)
