"""The instants at which a query is answered (semantics.md 4 and 6).

Instants given by the caller; every instant of the streams (content change); the multiples of periods (window close,
periodic). Of the last kind those are left out at which no window holds anything and none did at the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.terms.saved import State


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When: at `given` times, else at the multiples of `periods`, else (both empty) at every instant of the streams."""

    given: tuple[int, ...] | None = None
    periods: tuple[int, ...] = ()

    @property
    def ticks(self) -> bool:
        """Whether it follows periods."""
        return self.given is None and bool(self.periods)


class Filled(NamedTuple):
    """Whether a window holds something at a tick, and whether one may without a further event."""

    now: bool
    later: bool


class Schedule:
    """Where a query stands in its rhythm."""

    def __init__(self, rhythm: Rhythm) -> None:
        self.rhythm = rhythm
        self._done: int | None = None
        """The last of the given instants that has been told."""
        self._next: int | None = None
        """The next tick to decide about; None: that of the next event."""
        self._filled = False

    def due(
        self, times: NDArray[np.int64], passed: int, newest: int | None, ended: bool, filled: Callable[[int], Filled],
    ) -> Iterator[int]:
        """The instants to answer now, in order. `times`: of the events that have become complete, ascending; `passed`:
        everything before is complete; `newest`: the last event's time."""
        if self.rhythm.given is not None:
            for instant in self.rhythm.given:
                if instant < passed and (self._done is None or instant > self._done):
                    self._done = instant
                    yield instant
        elif self.rhythm.periods:
            yield from self._ticks(times, passed, newest, ended, filled)
        else:
            yield from np.unique(times).tolist()

    def _ticks(
        self, times: NDArray[np.int64], passed: int, newest: int | None, ended: bool, filled: Callable[[int], Filled]
    ) -> Iterator[int]:
        if newest is None:
            return
        last = max(-(-newest // p) * p for p in self.rhythm.periods)
        while True:
            if self._next is None and len(times):
                self._next = self._at_or_after(int(times[0]))
            tick = self._next
            if tick is None or tick >= passed or (ended and tick > last):
                return
            times = times[np.searchsorted(times, tick, "right") :]
            found = filled(tick)
            told = found.now or self._filled
            self._filled = found.now
            self._next = self._after(tick) if found.now or found.later else None
            if told:
                yield tick

    def _after(self, tick: int) -> int:
        return min((tick // p + 1) * p for p in self.rhythm.periods)

    def _at_or_after(self, time: int) -> int:
        return min(-(-time // p) * p for p in self.rhythm.periods)

    def forget(self) -> None:
        """No window holds anything any more; what has been told is not told again."""
        self._next, self._filled = None, False

    def save(self) -> State:
        """Where it stands."""
        return {"done": self._done, "next": self._next, "filled": self._filled}

    def restore(self, state: State) -> None:
        """Go on from a saved state."""
        self._done, self._next = (None if state[n] is None else int(state[n]) for n in ("done", "next"))
        self._filled = bool(state["filled"])
