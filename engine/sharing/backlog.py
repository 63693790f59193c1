"""The events of a stream that some runs have not got yet, as columns that grow at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kernels.cea.facts import last_untupled
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.run.concern import Key, keys_in, predicate_of

_FIRST: Final = 256


class Backlog:
    """Events have positions that count up for ever; those from some position on are held. So do punctuations, each
    with the position of the event that follows it."""

    def __init__(self) -> None:
        self.end = 0
        """The position of the next event."""
        self._base = self._count = self._triples = 0
        self._time = np.zeros(_FIRST, np.int64)
        self._offset = np.zeros(_FIRST, np.int64)
        self._ids = [np.zeros(_FIRST, np.uint32) for _ in range(3)]
        self.marks: list[tuple[int, int]] = []
        """(position, time in µs) of punctuations, ascending by position."""
        self._newest = BEFORE_ALL
        self._ordered = 0
        """The position from which on times do not fall."""
        self._last: dict[Key, int] = {}
        """Of keys that are watched, the position behind the last triple that has it."""
        self._watchers: dict[Key, int] = {}
        """How many watch each."""
        self._paired: dict[int, int] = {}
        """The predicates of those that have an object, and of how many keys."""
        self._looked_at = self._no_tuples = 0
        """The position up to which it is known which events are tuple events, and that behind the last that is none."""

    def watch(self, keys: Iterable[Key]) -> None:
        """Note where these come."""
        for key in keys:
            self._watchers[key] = self._watchers.get(key, 0) + 1
            if key not in self._last:
                self._last[key] = self.end
                if key != predicate_of(key):
                    self._paired[predicate_of(key)] = self._paired.get(predicate_of(key), 0) + 1

    def unwatch(self, keys: Iterable[Key]) -> None:
        """One of those that watch these does so no longer."""
        for key in keys:
            self._watchers[key] -= 1
            if self._watchers[key]:
                continue
            del self._watchers[key], self._last[key]
            if key != predicate_of(key):
                self._paired[predicate_of(key)] -= 1
                if not self._paired[predicate_of(key)]:
                    del self._paired[predicate_of(key)]

    @property
    def watched(self) -> int:
        """How many keys are watched, for tests of leaks."""
        return len(self._last)

    def pass_by(self, events: int) -> None:
        """Events that no run needs later; all that is held is freed."""
        self.end += events
        self._base, self._count, self._triples = self.end, 0, 0
        self.marks.clear()

    def add(self, batch: EventBatch) -> None:
        """Events that come next."""
        count, triples = self._count + len(batch), self._triples + batch.triples
        if count >= len(self._time):
            self._time, self._offset = longer(self._time, 2 * count), longer(self._offset, 2 * count)
        if triples > len(self._ids[0]):
            self._ids = [longer(column, 2 * triples) for column in self._ids]
        self._time[self._count : count] = batch.time
        self._offset[self._count : count + 1] = batch.offset + self._triples
        for column, new in zip(self._ids, batch.ids, strict=True):
            column[self._triples : triples] = new
        self._count, self._triples = count, triples
        self.end += len(batch)
        if len(batch):
            self._note(batch)

    def _note(self, batch: EventBatch) -> None:
        time = batch.time
        if time[0] < self._newest or (len(time) > 1 and (time[1:] < time[:-1]).any()):
            self._ordered = self.end
        self._newest = max(self._newest, int(time.max()))
        for key in keys_in(batch, self._last, self._paired) if self._last else ():
            self._last[key] = self.end

    def mark(self, time: int) -> None:
        """A punctuation; it absorbs the one before if no event is between."""
        if self.marks and self.marks[-1][0] == self.end:
            time = max(time, self.marks.pop()[1])
        self.marks.append((self.end, time))

    def forget(self, before: int) -> None:
        """Nothing before this position is needed; it is freed once it is most of the content."""
        gone = before - self._base
        if 2 * gone <= self._count or gone <= 0:
            return
        kept = self.events(before, self.end)
        self._time[: len(kept)] = kept.time
        for column, rest in zip(self._ids, kept.ids, strict=True):
            column[: len(rest)] = rest
        self._offset[: len(kept) + 1] = kept.offset
        self._base, self._count, self._triples = before, len(kept), kept.triples
        self.marks = [mark for mark in self.marks if mark[0] >= before]

    def events(self, first: int, last: int) -> EventBatch:
        """Those at the positions first, ..., last - 1, copied."""
        low, high = first - self._base, last - self._base
        if low == high:
            return EventBatch.empty()
        offset = self._offset[low : high + 1]
        a, b = int(offset[0]), int(offset[-1])
        subject, predicate, object_ = (column[a:b].copy() for column in self._ids)
        return EventBatch(self._time[low:high].copy(), offset - a, subject, predicate, object_)

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """When they happened."""
        return self._time[first - self._base : last - self._base]

    def bare(self, first: int, last: int, predicates: frozenset[int], whole: NDArray[np.bool_]) -> EventBatch:
        """The same, but of each event only its first triple and those with these predicates; bool[n]: all of it."""
        low, high = first - self._base, last - self._base
        offset = self._offset[low : high + 1]
        a, b = int(offset[0]), int(offset[-1])
        kept = np.repeat(whole, np.diff(offset))
        for predicate in predicates:
            kept |= self._ids[1][a:b] == predicate
        kept[offset[:-1][offset[1:] > offset[:-1]] - a] = True
        before = np.concatenate([[0], np.cumsum(kept)])
        subject, predicate_, object_ = (column[a:b][kept] for column in self._ids)
        return EventBatch(self._time[low:high].copy(), before[offset - a], subject, predicate_, object_)

    def stretches(self, first: int) -> Iterator[tuple[int, int, int | None]]:
        """From a position on: (first, last, time of the punctuation behind it; None at the end). The first punctuation
        may be at that position and have been returned before; again it changes nothing."""
        for at, time in self.marks:
            if at >= first:
                yield first, at, time
                first = at
        yield first, self.end, None

    def dispensable(self, first: int, keys: frozenset[Key], span: int | None) -> tuple[int, int, int]:
        """So many of the events from a position on are older than the last by more than `span` µs (None: all), if they
        are in order and have no triple of these keys, which are watched, nor are there punctuations; 0 if not. And the
        times of the first and of the last of those."""
        if self._ordered > first or (self.marks and self.marks[-1][0] >= first):
            return 0, 0, 0
        if any(self._last[key] > first for key in keys):
            return 0, 0, 0
        time = self._time[first - self._base : self._count]
        count = len(time) if span is None or not len(time) else int(time.searchsorted(time[-1] - span)) - 1
        return (count, int(time[0]), int(time[count - 1])) if count > 0 else (0, 0, 0)

    def are_tuples(self, first: int) -> bool:
        """Whether each event from a position on is a tuple event, whatever attributes are asked for."""
        low = max(self._looked_at - self._base, 0)
        if low < self._count:
            found = last_untupled(self._offset[: self._count + 1], low, *self._ids)
            if found >= 0:
                self._no_tuples = self._base + found + 1
            self._looked_at = self.end
        return self._no_tuples <= first

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events held."""
        for column in self._ids:
            yield column[: self._triples]
