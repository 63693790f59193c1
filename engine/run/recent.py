"""The events that the windows of a query may still hold: what its running state is made of, and can be made anew of.

Where it stands: complete events in order → **those that are in a window**. Windows are stretches of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.rsp.steady import window_of
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_FEW: Final = 256
"""Batches that are put together to one."""
_CHUNK: Final = 1 << 12
"""Events that are handed out at once, and those of the same instant."""
_NONE: Final = np.iinfo(np.int64).min

_Batches = list[EventBatch]


class Recent:
    """By stream, in order of time. since: events before this time may be missing; None: none is."""

    def __init__(self, plan: RspPlan, since: int | None = None) -> None:
        self._plan = plan
        self._windows = [window_of(content.window.operators[0]) for content in plan.contents]
        self._since = since
        self._old: list[_Batches] = []
        """Each holds whole instants."""
        self._new: list[_Batches] = []
        self._last = _NONE
        """The last instant."""

    def copy(self) -> Recent:
        """Goes on by itself."""
        other = copy(self)
        other._old, other._new = list(self._old), list(self._new)
        return other

    @property
    def complete(self) -> bool:
        """Whether it has all that is in a window."""
        if self._since is not None and self._last != _NONE and self._low() >= self._since - 1:
            self._since = None
        return self._since is None

    def _low(self) -> int:
        """The time up to which events are out of all windows."""
        return min(window.low_of(self._last) for window in self._windows)

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Further instants, whole ones."""
        if not any(map(len, batches)):
            return
        self._new.append(list(batches))
        self._last = max(self._last, *(int(batch.time[-1]) for batch in batches if len(batch)))
        if len(self._new) >= _FEW or sum(map(len, batches)) >= _FEW:
            self._old.append(self._together(self._new))
            self._new = []
            low = self._low()
            while len(self._old) > 1 and all(not len(b) or int(b.time[-1]) <= low for b in self._old[0]):
                del self._old[0]

    def _together(self, parts: Sequence[_Batches]) -> _Batches:
        return [EventBatch.concat([part[s] for part in parts if len(part[s])]) for s in range(len(self._plan.streams))]

    @property
    def whole(self) -> _Batches:
        """What is in a window, and the last instant, by stream."""
        low = self._low() if self._last != _NONE else _NONE
        found = []
        for batch in self._together([*self._old, *self._new]):
            first = int(batch.time.searchsorted(min(low, self._last - 1), "right"))
            found.append(batch.slice(first, len(batch)) if first else batch)
        return found

    def parts(self) -> Iterator[_Batches]:
        """The same, some thousand events at a time; no instant is split."""
        whole = self.whole
        times = np.unique(np.concatenate([batch.time for batch in whole]))
        for low in range(0, len(times), _CHUNK):
            first, last = times[low], times[min(low + _CHUNK, len(times)) - 1]
            yield [_between(batch, first, last) for batch in whole]

    def same(self, other: Recent) -> bool:
        """Whether both hold the same events."""
        if self._last != other._last:
            return False
        return all(one.same(another) for one, another in zip(self.whole, other.whole, strict=True))

    def __len__(self) -> int:
        return sum(len(batch) for part in (*self._old, *self._new) for batch in part)

    @property
    def last(self) -> int | None:
        """The last instant; None: there was none."""
        return None if self._last == _NONE else self._last

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of the events."""
        for part in (*self._old, *self._new):
            for batch in part:
                yield from batch.ids

    def save(self, terms: SavedTerms) -> State:
        """Its state, if it is complete."""
        whole = self.whole
        return {"last": self._last, "events": [batch.save(terms) for batch in whole]}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for one that has not seen any event."""
        self._last = int(state["last"])
        self._old = [[EventBatch.restored(each, terms) for each in state["events"]]]


def _between(batch: EventBatch, first: int, last: int) -> EventBatch:
    """The events from a time to another, both included."""
    low, high = batch.time.searchsorted(first), batch.time.searchsorted(last, "right")
    return batch.slice(int(low), int(high))
