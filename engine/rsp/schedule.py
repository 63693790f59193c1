"""The instants at which a query is answered (semantics.md 4 and 6).

Instants given by the caller; every instant of the streams (content change); the multiples of periods (window close,
periodic). Of the last kind those are left out at which no window holds anything and none did at the one before. When
the streams have ended the clock goes on as long as a window that closes holds an event.

A window may hold the same events at millions of ticks. So ticks come as **stretches**: a tick, and until when the
windows hold the same as there. Only the first tick of a stretch needs an answer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.terms.saved import State

MOST_TICKS: Final = 100_000
"""Ticks of one stretch that are each answered, past which LimitError is raised."""
MOST_REPEATED: Final = 1_000_000
"""Rows that are told again in one stretch, past which LimitError is raised."""
_WRITE: Final = "write a longer SLIDE or EVERY"


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When: at `given` times, else at the multiples of `periods`, else (both empty) at every instant of the streams."""

    given: tuple[int, ...] | None = None
    periods: tuple[int, ...] = ()

    @property
    def every_instant(self) -> bool:
        """Whether it follows the streams."""
        return self.given is None and not self.periods

    @property
    def ticks(self) -> bool:
        """Whether it follows periods."""
        return self.given is None and bool(self.periods)


class Filled(NamedTuple):
    """Whether a window holds something at a tick, whether one may without a further event, and a time until which they
    hold the same."""

    now: bool
    later: bool
    until: int


class Windows(Protocol):
    """What the windows of a query hold of the events that have come."""

    def filled(self, at: int, most: int, step: int) -> Filled:
        """At a time; `until` is at most `most`, and may be too early by less than `step`."""

    @property
    def closed(self) -> int | None:
        """The last time at which a window that closes holds an event; None if none does."""


class Stretch(NamedTuple):
    """An instant to answer, and a time until which windows hold the same; what they held before that is the same at
    all further ticks up to then."""

    at: int
    until: int


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
        self, times: NDArray[np.int64], passed: int, newest: int | None, ended: bool, windows: Windows
    ) -> Iterator[Stretch]:
        """The instants to answer now, in order. `times`: of the events that have become complete, ascending; `passed`:
        everything before is complete; `newest`: the last event's time. The next one is to be asked for when the one
        before has been answered."""
        if self.rhythm.given is not None:
            for instant in self.rhythm.given:
                if instant < passed and (self._done is None or instant > self._done):
                    self._done = instant
                    yield Stretch(instant, instant)
        elif self.rhythm.periods:
            yield from self._ticks(times, passed, newest, ended, windows)
        else:
            yield from (Stretch(at, at) for at in np.unique(times).tolist())

    def _ticks(
        self, times: NDArray[np.int64], passed: int, newest: int | None, ended: bool, windows: Windows
    ) -> Iterator[Stretch]:
        if newest is None:
            return
        last = self._last(newest, windows) if ended else passed - 1
        while True:
            if self._next is None and len(times):
                self._next = self._at_or_after(int(times[0]))
            tick = self._next
            if tick is None or tick > last:
                return
            times = times[np.searchsorted(times, tick, "right") :]
            found = windows.filled(tick, last, min(self.rhythm.periods))
            if found.now or self._filled:  # of empty ones only the first is told
                yield Stretch(tick, found.until if found.now else tick)
            self._filled = found.now
            self._next = self._after(found.until) if found.now or found.later else None

    def _last(self, newest: int, windows: Windows) -> int:
        """The last tick of streams that have ended. Windows that never close are answered once more after the last
        event."""
        closed = windows.closed
        after = max(-(-newest // p) * p for p in self.rhythm.periods)
        return after if closed is None else max(after, closed)

    def check(self, stretch: Stretch) -> None:
        """Raise LimitError for a stretch that has too many ticks to answer each."""
        if (count := self._ticks_of(stretch)) > MOST_TICKS:
            what = "ticks at which the windows hold the same and the answer may be another"
            raise LimitError(count, MOST_TICKS, f"{what} ({_WRITE})")

    def next_of(self, stretch: Stretch) -> Stretch | None:
        """The rest of a stretch; None if it was its only tick."""
        at = self._after(stretch.at) if self.rhythm.ticks else stretch.until + 1
        return Stretch(at, stretch.until) if at <= stretch.until else None

    def again(self, stretch: Stretch, rows: int) -> NDArray[np.int64]:
        """All ticks of a stretch but the first, ascending: so many rows are told again at each. Raises LimitError."""
        if (count := self._ticks_of(stretch) * rows) > MOST_REPEATED:
            what = "rows of RSTREAM that are told again while the windows hold the same"
            raise LimitError(count, MOST_REPEATED, f"{what} ({_WRITE}, or take ISTREAM)")
        at, until = stretch
        ticks = [np.arange(at // p + 1, until // p + 1) * p for p in self.rhythm.periods]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *ticks]))

    def _ticks_of(self, stretch: Stretch) -> int:
        """How many come after the first, at most."""
        return sum(stretch.until // p - stretch.at // p for p in self.rhythm.periods)

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
