"""The events that the windows of a query may still hold: its running state can be rebuilt from them.

In the flow: complete events in order → **those that are in a window**. A window is a stretch of time, or holds the
events of a number of instants of its stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.steady import window_of
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.window import Window

_FEW: Final = 256
"""Batches that are put together to one."""
_CHUNK: Final = 1 << 12
"""Events that are returned at once, and those of the same instant."""
_NONE: Final = np.iinfo(np.int64).min

_Batches = list[EventBatch]


class _Part(NamedTuple):
    """Whole instants. ends: by stream how many instants it has had by then."""

    batches: _Batches
    ends: tuple[int, ...]


class Recent:
    """By stream, in order of time. since: events before this time may be missing, None: none is; `instants`: by stream
    how many it had had by then."""

    def __init__(self, plan: RspPlan, since: int | None = None, instants: Sequence[int] | None = None) -> None:
        self._plan = plan
        self._windows = [(window_of(content.window.operators[0]), content.stream) for content in plan.contents]
        self._counted = any(window.counted for window, _ in self._windows)
        self._since = since
        self._instants = list(instants or [0] * len(plan.streams))
        self._unknown = tuple(self._instants)
        """By stream the instants whose events may be missing."""
        self._old: list[_Part] = []
        self._new: list[_Part] = []
        self._last = _NONE
        """The last instant."""

    def copy(self) -> Recent:
        """Goes on by itself."""
        other = copy(self)
        other._old, other._new, other._instants = list(self._old), list(self._new), list(self._instants)
        return other

    @property
    def complete(self) -> bool:
        """Whether it has all that is in a window."""
        since = self._since
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
        if not any(map(len, batches)):
            return
        if self._counted:
            self._instants = [n + len(_starts(batch)) for n, batch in zip(self._instants, batches, strict=True)]
        self._new.append(_Part(list(batches), tuple(self._instants)))
        self._last = max(self._last, *(int(batch.time[-1]) for batch in batches if len(batch)))
        if len(self._new) >= _FEW or sum(map(len, batches)) >= _FEW:
            self._old.append(_Part(self._together(self._new), tuple(self._instants)))
            self._new = []
            while len(self._old) > 1 and self._is_out(self._old[0]):
                del self._old[0]

    def _is_out(self, part: _Part) -> bool:
        """Whether no window holds anything of it."""
        for window, stream in self._windows:
            batch = part.batches[stream]
            if len(batch) and (part.ends[stream] if window.counted else batch.time.item(-1)) > self._low(
                window, stream
            ):
                return False
        return True

    def _together(self, parts: Sequence[_Part]) -> _Batches:
        streams = range(len(self._plan.streams))
        return [EventBatch.concat([part.batches[s] for part in parts if len(part.batches[s])]) for s in streams]

    @property
    def whole(self) -> _Batches:
        """The contents of windows, and the last instant, by stream."""
        every = self._together([*self._old, *self._new])
        if self._last == _NONE:
            return every
        first = [len(batch) for batch in every]
        for window, stream in self._windows:
            first[stream] = min(first[stream], self._first(window, stream, every[stream]))
        return [batch.slice(low, len(batch)) if low else batch for low, batch in zip(first, every, strict=True)]

    def _first(self, window: Window, stream: int, batch: EventBatch) -> int:
        """The number of the first event that is in a window, or of the last instant."""
        low = min(self._low(window, stream), self._clock(window, stream) - 1)
        if not window.counted:
            return int(batch.time.searchsorted(low, "right"))
        starts = _starts(batch)
        out = max(low - (self._instants[stream] - len(starts)), 0)
        return int(starts[out]) if len(starts) else 0

    @property
    def before(self) -> list[int]:
        """By stream how many instants it had had before `whole`, if windows count them."""
        return [n - len(_starts(batch)) for n, batch in zip(self._instants, self.whole, strict=True)]

    def parts(self) -> Iterator[_Batches]:
        """The same, some thousand events at a time; no instant is split."""
        whole = self.whole
        times = np.unique(np.concatenate([batch.time for batch in whole]))
        for low in range(0, len(times), _CHUNK):
            first, last = times[low], times[min(low + _CHUNK, len(times)) - 1]
            yield [_between(batch, first, last) for batch in whole]

    def same(self, other: Recent) -> bool:
        """Whether both hold the same events."""
        if self._last != other._last or self._phases != other._phases:
            return False
        return all(one.same(another) for one, another in zip(self.whole, other.whole, strict=True))

    @property
    def _phases(self) -> list[int]:
        """Where windows that count are between their slides."""
        return [self._instants[s] - self._low(w, s) for w, s in self._windows if w.counted]

    def __len__(self) -> int:
        return sum(len(batch) for part in (*self._old, *self._new) for batch in part.batches)

    @property
    def last(self) -> int | None:
        """The last instant; None: there was none."""
        return None if self._last == _NONE else self._last

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events."""
        for part in (*self._old, *self._new):
            for batch in part.batches:
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
        self._old = [_Part([EventBatch.restored(each, terms) for each in state["events"]], tuple(self._instants))]


def _between(batch: EventBatch, first: int, last: int) -> EventBatch:
    """The events from a time to another, both included."""
    low, high = batch.time.searchsorted(first), batch.time.searchsorted(last, "right")
    return batch.slice(int(low), int(high))


def _starts(batch: EventBatch) -> NDArray[np.int64]:
    """Where instants begin."""
    return np.flatnonzero(np.diff(batch.time, prepend=batch.time[:1] - 1))
