"""The clock: events in order of arrival → complete instants in order of time (semantics.md 2.7).

An instant is complete when the watermarks of all streams (watermarks.py) have passed it; until then more graphs for it
are merged. A late event is counted and handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL, Watermark, Watermarks
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_NONE: Final = EventBatch.empty()
_LARGE: Final = 1024
"""Events of a batch that is not copied only to have a few others before it."""
_SHORT: Final = ((np.zeros(0, np.int64),), (np.zeros(1, np.int64),))
"""`Instants.where` of one stream without events, and with one."""


class Piece(NamedTuple):
    """Events that wait, with the smallest and the largest of their times."""

    batch: EventBatch
    low: int
    high: int


@dataclass(slots=True)
class _StreamClock(Watermark):
    pending: list[Piece] = field(default_factory=list)
    rising: bool = True
    """Whether the times pending, piece by piece, rise strictly."""
    oldest: int = AFTER_ALL
    """The smallest time pending."""

    def copy(self) -> _StreamClock:
        return replace(self, pending=list(self.pending))

    def same(self, other: _StreamClock, lateness: int) -> bool:
        """Whether the same events will do the same to both."""
        if (self.largest, self.oldest) != (other.largest, other.oldest):
            return False
        if self.at(lateness) != other.at(lateness):
            return False
        if len(self.pending) == len(other.pending) and all(map(is_, self.pending, other.pending)):
            return True
        mine, theirs = (EventBatch.concat([piece.batch for piece in clock.pending]) for clock in (self, other))
        return mine.same(theirs)

    def save(self, terms: SavedTerms) -> State:
        events = EventBatch.concat([piece.batch for piece in self.pending])
        for ids in events.ids:
            terms.ids(ids)
        return {"events": events.save(), "rising": self.rising, "largest": self.largest,
                "punctuation": self.punctuation}  # fmt: skip

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> _StreamClock:
        clock = cls(largest=int(state["largest"]), punctuation=int(state["punctuation"]))
        events = EventBatch.restored(state["events"], terms)
        if len(events):
            piece = Piece(events, int(events.time.min()), int(events.time.max()))
            clock.wait(piece, bool(state["rising"]))
        return clock

    def wait(self, piece: Piece, rising: bool) -> None:
        """One more piece that waits."""
        self.rising = rising and self.rising and (not self.pending or piece.low > self.pending[-1].high)
        self.pending.append(piece)
        self.oldest = min(self.oldest, piece.low)


class Instants(NamedTuple):
    """Complete instants: `time` i64[k] ascending, and per stream its events there.

    `batches[s]` has at most one event per instant, `where[s]` i64 says at which instant each stands. `first`: the
    number of the first one among all that the clock has completed; `passed`: everything before it is complete.
    """

    time: NDArray[np.int64]
    batches: tuple[EventBatch, ...]
    where: tuple[NDArray[np.int64], ...]
    first: int = 0
    passed: int = BEFORE_ALL

    def slice(self, low: int, high: int) -> Instants:
        """The instants low, ..., high - 1."""
        if low == 0 and high >= len(self.time):
            return self
        batches, where = [], []
        for batch, at in zip(self.batches, self.where, strict=True):
            a, b = np.searchsorted(at, (low, high))
            batches.append(batch.slice(int(a), int(b)))
            where.append(at[a:b] - low)
        return Instants(self.time[low:high], tuple(batches), tuple(where), self.first + low, self.passed)


class Clock(Watermarks[_StreamClock]):
    """Orders the events of streams. One more counter: `instants` completed."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__((_StreamClock() for _ in range(streams)), lateness, start)
        self.instants = 0
        self.completed = BEFORE_ALL
        """The time of the last complete instant."""

    def copy(self) -> Clock:
        """A clock that goes on by itself from here."""
        other = Clock(len(self._streams), self.lateness, self._start)
        other._streams = [clock.copy() for clock in self._streams]
        other.events, other.late, other.instants, other.completed, other.accepted = (
            self.events, self.late, self.instants, self.completed, self.accepted
        )  # fmt: skip
        return other

    def save(self, terms: SavedTerms) -> State:
        """Its state, with the events that wait."""
        streams = [clock.save(terms) for clock in self._streams]
        return {**self._save(), "streams": streams, "instants": self.instants, "completed": self.completed}

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> Clock:
        """A clock that goes on from a saved state."""
        clock = cls(0)
        clock._restore(state)
        clock._streams = [_StreamClock.restored(each, terms) for each in state["streams"]]
        clock.instants, clock.completed = int(state["instants"]), int(state["completed"])
        return clock

    def same(self, other: Clock) -> bool:
        """Whether the same events, from now on, will do the same to both. Counters do not matter; both clocks are of
        equally many streams, with the same lateness and start."""
        streams = zip(self._streams, other._streams, strict=True)
        return self.accepted == other.accepted and all(a.same(b, self.lateness) for a, b in streams)

    def push(self, stream: int, batch: EventBatch) -> EventBatch:
        """Take events in order of arrival; returns those that are late."""
        count = len(batch)
        if not count:
            return batch
        self.events += count
        clock = self._streams[stream]
        low = high = int(batch.time[0])
        rising = True
        if count > 1:
            rising = bool((batch.time[1:] > batch.time[:-1]).all())
            high = int(batch.time[-1])
        mark = clock.at(self.lateness)
        if not rising or low < mark or (self._start is not None and low < self._start):
            return self._take_kept(clock, batch)
        clock.largest, self.accepted = max(clock.largest, high), max(self.accepted, high)
        clock.wait(Piece(batch, low, high), rising)
        return _NONE

    def _take_kept(self, clock: _StreamClock, batch: EventBatch) -> EventBatch:
        """Events of which some may be late, or lie before the start."""
        late, kept = self._sort_out(clock, batch.time)
        refused = batch.take(np.flatnonzero(late)) if late.any() else _NONE
        if not kept.all():
            batch = batch.take(np.flatnonzero(kept))
        if len(batch):
            rising = bool((batch.time[1:] > batch.time[:-1]).all())
            clock.wait(Piece(batch, int(batch.time.min()), int(batch.time.max())), rising)
        return refused

    @property
    def open(self) -> bool:
        """Whether events wait for their instant to be complete."""
        return any(clock.pending for clock in self._streams)

    @property
    def oldest(self) -> int:
        """The smallest time of an event that waits, AFTER_ALL if none does."""
        return min(clock.oldest for clock in self._streams)

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events that wait."""
        for clock in self._streams:
            for piece in clock.pending:
                yield from piece.batch.ids

    @property
    def ready(self) -> bool:
        """Whether instants are complete and have not been taken."""
        passed = self.passed
        return any(clock.oldest < passed for clock in self._streams)

    def take(self) -> Instants:
        """All complete instants since the last call; or the first of them, while `ready`.

        A few events before a large batch are handed out by themselves: to put them together would copy it.
        """
        passed = self.passed
        if len(self._streams) == 1 and self._streams[0].rising:
            passed = _up_to_large(self._streams[0].pending, passed)
        merged = tuple([self._split(clock, passed) for clock in self._streams])
        if len(merged) == 1:
            times = merged[0].time
            where: tuple[NDArray[np.int64], ...] = _SHORT[len(times)] if len(times) < 2 else (np.arange(len(times)),)
        else:
            times = np.unique(np.concatenate([batch.time for batch in merged]))
            where = tuple(np.searchsorted(times, batch.time) for batch in merged)
        instants = Instants(times, merged, where, self.instants, passed)
        if len(times):
            self.instants += len(times)
            self.completed = int(times[-1])
        return instants

    @staticmethod
    def _split(clock: _StreamClock, passed: int) -> EventBatch:
        """Take the complete events out, those of one time merged."""
        if clock.oldest >= passed:
            return _NONE
        if clock.rising:  # as nearly always
            return _split_rising(clock, passed)
        every = EventBatch.concat([piece.batch for piece in clock.pending])
        done = every.time < passed
        complete, rest = every.take(np.flatnonzero(done)), every.take(np.flatnonzero(~done))
        clock.pending, clock.rising, clock.oldest = [], True, AFTER_ALL
        if len(rest):
            rising = bool((rest.time[1:] > rest.time[:-1]).all())
            clock.wait(Piece(rest, int(rest.time.min()), int(rest.time.max())), rising)
        return merge_instants(complete)


def _up_to_large(pending: list[Piece], passed: int) -> int:
    """The time before which to take: that of the first large batch with something before it, if that is sooner."""
    for piece in pending[1:]:
        if len(piece.batch) >= _LARGE and piece.low < passed:
            return piece.low
    return passed


def _split_rising(clock: _StreamClock, passed: int) -> EventBatch:
    pending = clock.pending
    if pending[0].high < passed and (len(pending) == 1 or pending[1].low >= passed):  # single pushes
        batch = pending.pop(0).batch
        clock.oldest = pending[0].low if pending else AFTER_ALL
        return batch
    whole = 0
    while whole < len(pending) and pending[whole].high < passed:
        whole += 1
    complete = [piece.batch for piece in pending[:whole]]
    rest = pending[whole:]
    if rest and rest[0].low < passed:
        batch, _, high = rest[0]
        cut = int(np.searchsorted(batch.time, passed))
        complete.append(batch.slice(0, cut))
        rest[0] = Piece(batch.slice(cut, len(batch)), int(batch.time[cut]), high)
    clock.pending = rest
    clock.oldest = rest[0].low if rest else AFTER_ALL
    return EventBatch.concat(complete)


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
