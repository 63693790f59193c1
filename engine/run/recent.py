"""The events that the windows of a query may still hold: its running state can be rebuilt from them.

In the flow: complete events in order → **those that are in a window**. A window is a stretch of time, or holds the
events of a number of instants of its stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.steady import window_of
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.window import Window
from oxiseq.grammar.records import dataclass

_FEW: Final = 256
"""Batches that are put together to one."""
_CHUNK: Final = 1 << 12
"""Events that are returned at once, and those of the same instant; of more triples events are not kept as they have
come."""
_NONE: Final = np.iinfo(np.int64).min

_Batches = list[EventBatch]


class Recent:
    """By stream, in order of time. since: events before this time may be missing, None: none is; `instants`: by stream
    how many it had had by then; `read`: by stream the predicates of the triples that are kept of events that have been
    held for a while (None: all)."""

    def __init__(
        self,
        plan: RspPlan,
        since: int | None = None,
        instants: Sequence[int] | None = None,
        read: Sequence[NDArray[np.uint32] | None] | None = None,
    ) -> None:
        self._plan = plan
        self._read = [None] * len(plan.streams) if read is None else read
        self._windows = [(window_of(content.window.operators[0]), content.stream) for content in plan.contents]
        self._counted = any(window.counted for window, _ in self._windows)
        self._since = since
        self._instants = list(instants or [0] * len(plan.streams))
        self._unknown = tuple(self._instants)
        """By stream the instants whose events may be missing."""
        self._old: list[tuple[Sequence[_Packed], Sequence[int]]] = []
        """Whole instants by stream, and how many each stream has had by then."""
        self._new: list[Sequence[EventBatch]] = []
        """Whole instants behind those, as they have come; nothing below tells of them until they are taken in."""
        self._many = 0
        """Triples in `_new`."""
        self._last = _NONE
        """The last instant."""

    def copy(self, read: Sequence[NDArray[np.uint32] | None] | None = None) -> Recent:
        """Goes on by itself, with `read` as at the beginning."""
        self._take_in()
        other = copy(self)
        other._read = self._read if read is None else read
        other._old, other._new, other._instants = list(self._old), [], list(self._instants)
        return other

    @property
    def complete(self) -> bool:
        """Whether it has all that is in a window."""
        since = self._since
        if since is not None:
            self._take_in()
        if since is not None and self._last != _NONE:
            known = (self._low(w, s) >= (self._unknown[s] if w.counted else since - 1) for w, s in self._windows)
            self._since = None if all(known) else since
        return self._since is None

    def _clock(self, window: Window, stream: int) -> int:
        return self._instants[stream] if window.counted else self._last

    def _low(self, window: Window, stream: int) -> int:
        """The clock up to which events are out of a window."""
        return window.low_of(self._clock(window, stream))

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Further instants, whole ones."""
        self._new.append(batches)
        for batch in batches:
            self._many += len(batch.subject)
        if self._many >= _CHUNK or len(self._new) >= _FEW:
            self._take_in()

    def _take_in(self) -> None:
        """What has come last, many pushes at once."""
        if not self._new:
            return
        added = self._together(self._new)
        self._new, self._many = [], 0
        self._last = max([self._last, *(batch.time.item(-1) for batch in added if len(batch))])
        if self._counted:
            self._instants = [n + _count(batch) for n, batch in zip(self._instants, added, strict=True)]
        if self._last != _NONE:
            self._keep(self._cut(added))
        while len(self._old) > 1 and self._is_out(*self._old[0]):
            del self._old[0]

    def _keep(self, batches: _Batches) -> None:
        packed = [_Packed.of(batch, read) for batch, read in zip(batches, self._read, strict=True)]
        self._old.append((packed, self._instants))

    @property
    def bytes(self) -> int:
        """About how large it is."""
        return sum([batch.bytes for batches in self._every for batch in batches])

    @property
    def _every(self) -> list[Sequence[EventBatch | _Packed]]:
        """Whole instants, by stream."""
        return [*(batches for batches, _ in self._old), *self._new]

    def _is_out(self, batches: Sequence[_Packed], ends: Sequence[int]) -> bool:
        """Whether no window holds anything of instants."""
        for window, stream in self._windows:
            if len(batch := batches[stream]):
                last = ends[stream] if window.counted else batch.last
                if last > self._low(window, stream):
                    return False
        return True

    def _together(self, parts: Sequence[Sequence[EventBatch]]) -> _Batches:
        streams = range(len(self._plan.streams))
        return [EventBatch.concat([batches[s] for batches in parts if len(batches[s].time)]) for s in streams]

    @property
    def whole(self) -> _Batches:
        """The contents of windows, and the last instant, by stream."""
        self._take_in()
        every = self._together([[packed.events for packed in batches] for batches, _ in self._old])
        return every if self._last == _NONE else self._cut(every)

    def _cut(self, batches: _Batches) -> _Batches:
        """Of events up to the last instant those that are in a window, or of that instant."""
        first = [len(batch) for batch in batches]
        for window, stream in self._windows:
            first[stream] = min(first[stream], self._first(window, stream, batches[stream]))
        return [batch.slice(low, len(batch)) if low else batch for low, batch in zip(first, batches, strict=True)]

    def _first(self, window: Window, stream: int, batch: EventBatch) -> int:
        """The number of the first event that is in a window, or of the last instant."""
        low = min(self._low(window, stream), self._clock(window, stream) - 1)
        if not window.counted:
            return int(batch.time.searchsorted(low, "right"))
        count = _count(batch)
        out = max(low - (self._instants[stream] - count), 0)
        return out if count == len(batch) else int(_starts(batch)[out])

    @property
    def before(self) -> list[int]:
        """By stream how many instants it had had before `whole`, if windows count them."""
        whole = self.whole
        return [n - _count(batch) for n, batch in zip(self._instants, whole, strict=True)]

    def parts(self, most: int = _CHUNK) -> Iterator[_Batches]:
        """The same, so many instants at a time."""
        whole = self.whole
        times = times_of(whole)
        for low in range(0, len(times), most):
            yield between(whole, times[low], times[min(low + most, len(times)) - 1])

    def same(self, other: Recent) -> bool:
        """Whether both hold the same events."""
        mine, others = self.whole, other.whole
        if self._last != other._last or self._phases != other._phases:
            return False
        return all(map(EventBatch.same, mine, others))

    @property
    def _phases(self) -> list[int]:
        """Where windows that count are between their slides."""
        return [self._instants[s] - self._low(w, s) for w, s in self._windows if w.counted]

    def __len__(self) -> int:
        return sum(len(batch) for batches in self._every for batch in batches)

    @property
    def last(self) -> int | None:
        """The last instant; None: there was none."""
        self._take_in()
        return None if self._last == _NONE else self._last

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events."""
        for batches in self._every:
            for batch in batches:
                yield from batch.ids

    def save(self, terms: SavedTerms) -> State:
        """Its state, if it is complete."""
        whole = self.whole
        return {
            "last": self._last,
            "instants": list(self._instants),
            "events": [batch.save(terms) for batch in whole],
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for one that has not seen any event."""
        self._last = int(state["last"])
        if self._counted:
            self._instants = [int(n) for n in state["instants"]]
        self._keep([EventBatch.restored(each, terms) for each in state["events"]])


@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """Events, of which times and sizes take as few bytes as they need. steps: from each time to the next, from `first`
    on; last: the last time."""

    first: int
    last: int
    steps: NDArray[np.unsignedinteger]
    sizes: NDArray[np.unsignedinteger]
    ids: tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, batch: EventBatch, read: NDArray[np.uint32] | None) -> _Packed:
        """Those of a batch with the triples that are read; its arrays, many times as long, may go."""
        short = batch if read is None else batch.only(read)
        first, last = (batch.time.item(0), batch.time.item(-1)) if len(batch) else (0, 0)
        subject, predicate, object_ = (ids.copy() for ids in batch.ids) if short is batch else short.ids
        steps, sizes = _narrow(batch.time), _narrow(short.offset)
        return cls(first, last, steps, sizes, (subject, predicate, object_))

    @property
    def events(self) -> EventBatch:
        """As they were."""
        time = self.first + offsets(self.steps.astype(np.int64))[: len(self)]
        return EventBatch(time, offsets(self.sizes), *self.ids)

    @property
    def bytes(self) -> int:
        """How large it is."""
        return sum([array.nbytes for array in (self.steps, self.sizes, *self.ids)])


def _narrow(ascending: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
    """The differences of numbers, which may be larger than 2^63."""
    steps = np.diff(ascending.view(np.uint64))
    return steps.astype(np.min_scalar_type(int(steps.max(initial=0))))


def times_of(batches: Sequence[EventBatch]) -> NDArray[np.int64]:
    """The instants of events by stream."""
    return np.unique(np.concatenate([batch.time for batch in batches]))


def between(batches: Sequence[EventBatch], first: int, last: int) -> _Batches:
    """By stream the events from a time to another, both included."""
    bounds = ((batch.time.searchsorted(first), batch.time.searchsorted(last, "right")) for batch in batches)
    return [batch.slice(int(low), int(high)) for batch, (low, high) in zip(batches, bounds, strict=True)]


def _count(batch: EventBatch) -> int:
    """Of instants."""
    time = batch.time
    return int(np.count_nonzero(time[1:] != time[:-1])) + 1 if len(time) > 1 else len(time)


def _starts(batch: EventBatch) -> NDArray[np.int64]:
    """Where instants begin."""
    return np.flatnonzero(np.diff(batch.time, prepend=batch.time[:1] - 1))
