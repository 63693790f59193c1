"""The ordered buffer in front of every language: batches in order of arrival → in order of time (semantics.md 2.7).

In the flow: readers, `push` → **waiting events, stream by stream** → complete ones, by a language's own rule:
instants of which graphs are merged (clock.py), events each by itself (arrivals.py), positions (merging.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import field, replace
from operator import is_
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL, Watermark, Watermarks
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.records import dataclass

P = TypeVar("P", bound="Piece")
S = TypeVar("S", bound="SavedPiece")


class Piece(Protocol):
    """Some events as columns: `EventBatch`, `Marks`, `TupleRows`."""

    @property
    def time(self) -> NDArray[np.int64]:
        """i64[n], µs."""

    def __len__(self) -> int: ...

    def take(self, index: NDArray[np.int64], /) -> Self:
        """The events of these numbers."""

    def slice(self, start: int, stop: int, /) -> Self:
        """The events start, ..., stop - 1."""

    @classmethod
    def concat(cls, pieces: Collection[Self], /) -> Self:
        """The events of several, one at least, one after the other."""


class SavedPiece(Piece, Protocol):
    """Events that a running query may save while they wait."""

    def save(self, terms: SavedTerms, /) -> State:
        """As a saved state."""

    @classmethod
    def restored(cls, state: State, terms: KnownTerms, /) -> Self:
        """The same again."""


@dataclass(slots=True)
class Waiting(Watermark, Generic[P]):
    """One stream, with its events that are not complete."""

    pending: deque[P] = field(default_factory=deque)
    oldest: int = AFTER_ALL
    newest: int = BEFORE_ALL
    """The smallest and the largest time that waits."""
    ordered: bool = True
    """Whether the times that wait do not fall, piece by piece."""

    def wait(self, piece: P) -> None:
        """Some more events, whatever their order."""
        time = piece.time
        if (time[1:] >= time[:-1]).all():
            self.wait_in_order(piece, time.item(0), time.item(-1))
        else:
            self.wait_in_order(piece, int(time.min()), int(time.max()))
            self.ordered = False

    def wait_in_order(self, piece: P, first: int, last: int) -> None:
        """Those whose times do not fall, from `first` to `last`."""
        self.ordered = self.ordered and first >= self.newest
        self.oldest, self.newest = min(self.oldest, first), max(self.newest, last)
        self.pending.append(piece)

    def up_to(self, before: int) -> list[P]:
        """Take out those before a time: in order of time, then of arrival."""
        if self.oldest >= before:
            return []
        if not self.ordered:
            self._arrange()
        pending = self.pending
        taken: list[P] = []  # `list[P]()` takes six times as long
        while pending and pending[0].time.item(-1) < before:
            taken.append(pending.popleft())
        if pending and pending[0].time.item(0) < before:
            split = pending[0]
            cut = int(split.time.searchsorted(before))
            taken.append(split.slice(0, cut))
            pending[0] = split.slice(cut, len(split))
        if pending:
            self.oldest = pending[0].time.item(0)
        else:
            self.oldest, self.newest = AFTER_ALL, BEFORE_ALL
        return taken

    def _arrange(self) -> None:
        every = type(self.pending[0]).concat(self.pending)
        self.pending = deque([every.take(np.argsort(every.time, kind="stable"))])
        self.ordered = True

    def copy(self) -> Waiting[P]:
        """Goes on by itself."""
        return replace(self, pending=deque(self.pending))


class Order(Watermarks[Waiting[S]]):
    """Puts the events of streams in order. `start`: earlier events are not seen."""

    _kind: type[S]
    """Of pieces."""

    def __init__(self, streams: int, lateness: int = 0, start: int | None = None) -> None:
        super().__init__((Waiting() for _ in range(streams)), lateness, start)

    def copy(self) -> Self:
        """A copy that continues alone from here."""
        other = copy(self)
        other._streams = [waiting.copy() for waiting in self._streams]
        return other

    def take_in(self, stream: int, piece: S) -> NDArray[np.int64] | None:
        """Events of a stream in order of arrival; the numbers of those that are late, None if none is."""
        if not (count := len(piece)):
            return None
        waiting, time = self._streams[stream], piece.time
        first, last = time.item(0), time.item(-1)
        if not self.takes(stream, first) or (count > 1 and not (time[1:] >= time[:-1]).all()):
            return self._take_kept(waiting, piece)
        self.pass_by(stream, count, last)
        waiting.wait_in_order(piece, first, last)
        return None

    def pass_at_once(self, count: int, first: int, last: int) -> bool:
        """Events of the only stream that come in order, from the time `first` to `last`. True: they are complete, none
        is late or before the start, and they count as taken; False: `take_in` is to get them."""
        if self.lateness or self._streams[0].pending or not self.takes(0, first):
            return False
        self.pass_by(0, count, last)
        return True

    def _take_kept(self, waiting: Waiting[S], piece: S) -> NDArray[np.int64] | None:
        """Events of which some may be late, or lie before the start, or in an instant that had begun before."""
        self.events += len(piece)
        late, kept = self._sort_out(waiting, piece.time)
        if not kept.all():
            piece = piece.take(np.flatnonzero(kept))
        if len(piece):
            waiting.wait(piece)
        return np.flatnonzero(late) if late.any() else None

    @property
    def open(self) -> bool:
        return any(waiting.pending for waiting in self._streams)

    @property
    def newest_waiting(self) -> int:
        """The largest time of an event that waits, BEFORE_ALL if none does."""
        return max([waiting.newest for waiting in self._streams])

    @property
    def oldest(self) -> int:
        """The smallest time of an event that waits, AFTER_ALL if none does."""
        return min([waiting.oldest for waiting in self._streams])

    @property
    def times(self) -> tuple[tuple[int, ...], ...]:
        """The fingerprint of equal ones, but for the waiting events."""
        streams = ((each.largest, each.oldest, each.at(self.lateness)) for each in self._streams)
        return (self.accepted,), self.begun, *streams

    def complete(self, before: int = AFTER_ALL) -> bool:
        """Whether something is complete and lies before a time."""
        passed = min(self.passed, before)
        for waiting in self._streams:  # noqa: SIM110  it runs for every event
            if waiting.oldest < passed:
                return True
        return False

    def save(self, terms: SavedTerms) -> State:
        """Its state, with the events that wait."""
        streams = [
            {
                "largest": waiting.largest,
                "punctuation": waiting.punctuation,
                "events": self._kind.concat(waiting.pending).save(terms) if waiting.pending else None,
            }
            for waiting in self._streams
        ]
        return {**super().save(terms), "begun": list(self.begun), "streams": streams}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        super().restore(state, terms)
        self._begun = tuple(map(int, state.get("begun", ())))  # those of before had seen such instants
        self._told = []  # it is not fresh: what it is is saved
        self._streams = [Waiting(int(saved["largest"]), int(saved["punctuation"])) for saved in state["streams"]]
        for waiting, saved in zip(self._streams, state["streams"], strict=True):
            if saved["events"] is not None:
                waiting.wait(self._kind.restored(saved["events"], terms))


class EventOrder(Order[EventBatch]):
    """Of RDF events."""

    _kind = EventBatch

    def push(self, stream: int, batch: EventBatch) -> EventBatch:
        """Take events in order of arrival; returns those that are late."""
        late = self.take_in(stream, batch)
        if late is None:
            return EventBatch.empty()
        return batch if len(late) == len(batch) else batch.take(late)

    def same(self, other: EventOrder) -> bool:
        """Whether the same events, from now on, will do the same to both. Counters do not matter; both are of equally
        many streams, with the same lateness and start."""
        return self.times == other.times and all(map(self._alike, self._streams, other._streams))

    @staticmethod
    def _alike(one: Waiting[EventBatch], other: Waiting[EventBatch]) -> bool:
        if len(one.pending) == len(other.pending) and all(map(is_, one.pending, other.pending)):
            return True
        return EventBatch.concat(one.pending).same(EventBatch.concat(other.pending))

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events that wait."""
        for waiting in self._streams:
            for batch in waiting.pending:
                yield from batch.ids
