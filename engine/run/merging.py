"""Streams of tuple events merged in order of time: each event has a position of its own (semantics.md 3).

Where it stands: marks of each stream's events, in order of arrival → **marks of all, in order** → `CeaRun`.
Simultaneous events stand in the order of FROM, then of arrival. As with instants (clock.py) a stream has a watermark
and an event older than it is late; but a single stream's event need not wait for a later one, since what comes at the
same time comes after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.marks import Marks
from oxiseq.engine.run.watermarks import AFTER_ALL, BEFORE_ALL, Watermark, Watermarks
from oxiseq.engine.terms.dictionary import AnyIds
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


@dataclass(slots=True)
class _Waiting(Watermark):
    """One stream's events that are not in order yet. `rising`: their times do not fall, piece by piece."""

    pieces: deque[Marks] = field(default_factory=deque)
    rising: bool = True
    oldest: int = AFTER_ALL
    newest: int = BEFORE_ALL
    """The largest time that waits."""

    def save(self, terms: SavedTerms) -> State:
        waiting = Marks.concat(self.pieces).save(terms) if self.pieces else None
        return {"waiting": waiting, "rising": self.rising, "largest": self.largest, "punctuation": self.punctuation}

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> _Waiting:
        restored = cls(largest=int(state["largest"]), punctuation=int(state["punctuation"]))
        if state["waiting"] is not None:
            restored.wait(Marks.restored(state["waiting"], terms), bool(state["rising"]))
        return restored

    def wait(self, marks: Marks, rising: bool) -> None:
        """More events, some at least."""
        low, high = int(marks.time[0]), int(marks.time[-1])
        if not rising:
            low, high = int(marks.time.min()), int(marks.time.max())
        self.rising = rising and self.rising and low >= self.newest
        self.pieces.append(marks)
        self.oldest, self.newest = min(self.oldest, low), max(self.newest, high)

    def up_to(self, limit: int) -> list[Marks]:
        """Take out those whose time is at most `limit`, in order."""
        if self.oldest > limit:
            return []
        if not self.rising:
            every = Marks.concat(self.pieces)
            self.pieces = deque([every.take(np.argsort(every.time, kind="stable"))])
            self.rising = True
        done = []
        while self.pieces and int(self.pieces[0].time[-1]) <= limit:
            done.append(self.pieces.popleft())
        if self.pieces and (cut := int(np.searchsorted(self.pieces[0].time, limit, "right"))):
            done.append(self.pieces[0].take(slice(None, cut)))
            self.pieces[0] = self.pieces[0].take(slice(cut, None))
        self.oldest = int(self.pieces[0].time[0]) if self.pieces else AFTER_ALL
        if not self.pieces:
            self.newest = BEFORE_ALL
        return done


class Merging(Watermarks[_Waiting]):
    """Orders the events of streams."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__((_Waiting() for _ in range(streams)), lateness, start)

    def save(self, terms: SavedTerms) -> State:
        """Its state, with the events that wait."""
        return {**self._save(), "streams": [waiting.save(terms) for waiting in self._streams]}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._restore(state)
        self._streams = [_Waiting.restored(each, terms) for each in state["streams"]]

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of events that wait."""
        return (piece.values for waiting in self._streams for piece in waiting.pieces)

    @property
    def partitions(self) -> list[NDArray[np.int64]]:
        """Of all events that wait, piece by piece; -1: in none."""
        return [piece.partition for waiting in self._streams for piece in waiting.pieces]

    def renumber(self, numbers: NDArray[np.int64]) -> None:
        """Partitions have other numbers: see `Marks.renumbered`."""
        for waiting in self._streams:
            waiting.pieces = deque(piece.renumbered(numbers) for piece in waiting.pieces)

    def push(self, stream: int, marks: Marks) -> NDArray[np.int64] | None:
        """Take events of a stream in order of arrival; returns the numbers of those that are late, None if none is."""
        count = len(marks)
        self.events += count
        if not count:
            return None
        waiting = self._streams[stream]
        low = int(marks.time[0])
        rising = count == 1 or bool((marks.time[1:] >= marks.time[:-1]).all())
        if not rising or low < waiting.at(self.lateness) or (self._start is not None and low < self._start):
            return self._take_kept(waiting, marks)
        high = int(marks.time[-1])
        waiting.largest, self.accepted = max(waiting.largest, high), max(self.accepted, high)
        waiting.wait(marks, rising)
        return None

    def _take_kept(self, waiting: _Waiting, marks: Marks) -> NDArray[np.int64] | None:
        """Events of which some may be late, or lie before the start."""
        late, kept = self._sort_out(waiting, marks.time)
        if not kept.all():
            marks = marks.take(np.flatnonzero(kept))
        if len(marks):
            waiting.wait(marks, bool((marks.time[1:] >= marks.time[:-1]).all()))
        return np.flatnonzero(late) if late.any() else None

    @property
    def open(self) -> bool:
        """Whether events wait."""
        return any(waiting.pieces for waiting in self._streams)

    def take(self) -> tuple[Marks, NDArray[np.int64]] | None:
        """The events whose place is known by now, in order, and the number of the stream of each; None: there is none.

        An event of the stream s at the time t has its place when no event can come any more that stands before it: on
        every stream r with the watermark w, (t, s) is at most (w, r).
        """
        if len(self._streams) == 1:
            done = self._streams[0].up_to(self._streams[0].at(self.lateness))
            return (Marks.concat(done), np.zeros(sum(map(len, done)), np.int64)) if done else None
        mark, last = min((waiting.at(self.lateness), s) for s, waiting in enumerate(self._streams))
        parts: list[Marks] = []
        sizes = []
        for s, waiting in enumerate(self._streams):
            done = waiting.up_to(mark if s <= last else mark - 1)
            parts += done
            sizes.append(sum([len(part) for part in done]))
        if not parts:
            return None
        marks = Marks.concat(parts)
        of = np.repeat(np.arange(len(sizes)), sizes)
        if of[0] != of[-1]:  # of several streams, one after the other
            order = np.argsort(marks.time, kind="stable")
            marks, of = marks.take(order), of[order]
        return marks, of
