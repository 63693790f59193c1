"""The instants at which a query is answered (semantics.md 4 and 6).

Instants given by the caller; every instant of the streams (content change); the multiples of periods (window close,
periodic). Of the last kind those are left out at which no window holds anything and none did at the one before. When
the streams have ended the clock runs on to the first of these at which no window that closes holds an event.

A window may hold the same events at millions of ticks. So ticks come as **stretches**: a tick, and until when the
windows hold the same as there. Only the first tick of a stretch needs an answer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.terms.saved import Stateful, maybe, value
from oxiseq.grammar.records import dataclass

MOST_TICKS: Final = 100_000
"""Ticks of one stretch that are each answered, past which LimitError is raised."""
MOST_REPEATED: Final = 1_000_000
"""Rows that are emitted again in one stretch, past which LimitError is raised."""
_WRITE: Final = "write a longer SLIDE or EVERY"
_FAR: Final = 1 << 60
"""Numbers that may be added and rounded without leaving i64."""
_LAST: Final = np.iinfo(np.int64).max
_NEVER: Final = 1 << 64
"""A period of which no multiple but 0 is a time."""
I64 = NDArray[np.int64]


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


class Windows(Protocol):
    """The contents of a query's windows."""

    def turns(self, after: int | None, until: int) -> I64:
        """Times after `after` (None: any), up to `until`, at which one may come to hold something else; in no order."""

    def filled(self, times: I64) -> NDArray[np.bool_]:
        """Whether one holds something at each of some times, ascending."""

    @property
    def closed(self) -> int | None:
        """The last time at which a window that closes holds an event; None if none does."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Instants to answer, ascending, and for each a time until which windows hold the same: i64[n] each. After the last
    of them: up to when ticks are decided about, and whether windows hold something there."""

    at: I64
    until: I64
    passed: int | None = None
    filled: bool = False

    def __len__(self) -> int:
        return len(self.at)

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """The bounds of each."""
        return zip(self.at.tolist(), self.until.tolist(), strict=True)

    def slice(self, low: int, high: int) -> Stretches:
        """Some of them."""
        if low == 0 and high >= len(self):
            return self
        return replace(self, at=self.at[low:high], until=self.until[low:high])


class Schedule(Stateful):
    """Where a query is in its rhythm."""

    made_of = value("_passed", maybe), value("_filled", bool)

    def __init__(self, rhythm: Rhythm) -> None:
        self.rhythm = rhythm
        self._multiples = _included(rhythm.periods)
        self._passed: int | None = None
        """All instants up to this one have been decided about; None: none."""
        self._filled = False
        """Whether windows held something at the last tick."""

    def due(self, times: I64, passed: int, newest: int | None, ended: bool, windows: Windows) -> Stretches:
        """The instants to answer now. `times`: of the events that have become complete, in no order; `passed`:
        everything before is complete; `newest`: the last event's time. They are due until `go_on` takes them."""
        if self.rhythm.given is not None:
            due = [at for at in self.rhythm.given if at < passed and (self._passed is None or at > self._passed)]
            at = np.array(due, np.int64)
            return Stretches(at, at, due[-1] if due else self._passed)
        if self.rhythm.periods:
            return self._ticks(passed, newest, ended, windows)
        at = np.unique(times) if len(times) > 1 else times
        return Stretches(at, at)

    def go_on(self, answered: Stretches) -> None:
        """Those have been answered."""
        self._passed, self._filled = answered.passed, answered.filled

    def _ticks(self, passed: int, newest: int | None, ended: bool, windows: Windows) -> Stretches:
        none = np.zeros(0, np.int64)
        if newest is None:
            return Stretches(none, none)
        last, before = min(self._last(newest, windows) if ended else passed - 1, _LAST), self._passed
        if before is not None and last <= before:
            return Stretches(none, none, before, self._filled)
        if before is not None and all(last // p == before // p for p in self.rhythm.periods):  # no tick lies between
            return Stretches(none, none, last, self._filled)
        turns = windows.turns(before, last)
        if before is not None:  # those that turned before may have their first tick now
            turns = np.append(turns, before + 1)
        ticks = _in_order(self._at_or_after(turns), last)
        filled = windows.filled(ticks)
        told = filled | np.append(self._filled, filled[:-1])[: len(ticks)]  # of empty ones only the first
        until = np.where(filled, np.append(ticks[1:] - 1, last)[: len(ticks)], ticks)
        return Stretches(ticks[told], until[told], last, bool(filled[-1]) if len(filled) else self._filled)

    def _last(self, newest: int, windows: Windows) -> int:
        """The last tick of streams that have ended: the first at which windows that close are empty. Windows that never
        close are answered again after the last event."""
        closed = windows.closed
        after = max(-(-newest // p) * p for p in self.rhythm.periods)
        return after if closed is None else max(after, min((closed // p + 1) * p for p in self.rhythm.periods))

    def check(self, stretches: Stretches) -> None:
        """Raise LimitError if one of them has too many ticks to answer each."""
        if (count := max((self._ticks_of(at, until) for at, until in stretches.pairs), default=0)) > MOST_TICKS:
            what = "ticks at which the windows hold the same and the answer may be another"
            raise LimitError(count, MOST_TICKS, f"{what} ({_WRITE})")

    def further_of(self, stretches: Stretches) -> I64:
        """How many ticks come after the first of each, at most: i64[n]."""
        if not self.rhythm.ticks:
            return np.zeros(len(stretches), np.int64)
        return np.array([self._ticks_after(at, until) for at, until in stretches.pairs], np.int64)

    def divided(self, stretches: Stretches, ticks: I64) -> Stretches:
        """The first so many ticks of each as stretches of their own, the last of which has the rest."""
        at = stretches.at.repeat(ticks)
        until = at.copy()
        ends = np.cumsum(ticks)
        until[ends - 1] = stretches.until
        for k in np.flatnonzero(ticks > 1).tolist():
            further = self.further(stretches.slice(k, k + 1), int(ticks[k]) - 1)
            at[ends[k] - len(further) : ends[k]] = further
        until[:] = np.maximum(until, at)
        return replace(stretches, at=at, until=until)

    def further(self, stretch: Stretches, most: int) -> I64:
        """The ticks of one stretch but the first, ascending: so many at the most."""
        at, until = int(stretch.at[0]), int(stretch.until[0])
        ticks = [
            np.arange(at // p + 1, min(until // p, at // p + most) + 1) * p
            for p in self.rhythm.periods
            if until // p > at // p
        ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *ticks]))[:most]

    def again(self, stretch: Stretches, rows: int) -> I64:
        """All of them: so many rows are emitted again at each. Raises LimitError."""
        count = self._ticks_of(int(stretch.at[0]), int(stretch.until[0]))
        if count * rows > MOST_REPEATED:
            what = "rows that RSTREAM repeats while the windows do not change"
            raise LimitError(count * rows, MOST_REPEATED, f"{what} ({_WRITE}, or take ISTREAM)")
        return self.further(stretch, count)

    def _ticks_of(self, at: int, until: int) -> int:
        """How many come after the first, at most."""
        return sum(until // p - at // p for p in self.rhythm.periods)

    def _ticks_after(self, at: int, until: int) -> int:
        """How many come after the first: each multiple of a period once."""
        return sum(sign * (until // p - at // p) for p, sign in self._multiples)

    def _at_or_after(self, times: I64) -> NDArray[Any]:
        every = [-(-exact(times, self.rhythm.periods) // p) * p for p in self.rhythm.periods]
        first: NDArray[Any] = np.minimum.reduce(every)
        return first

    def forget(self) -> None:
        """No window holds anything any more; nothing is emitted again."""
        self._filled = False

    def same(self, other: Schedule) -> bool:
        """Whether another of the same rhythm is there, too."""
        return (self._passed, self._filled) == (other._passed, other._filled)


def exact(numbers: I64, sizes: Sequence[int]) -> NDArray[Any]:
    """Numbers to be rounded to multiples of sizes and shifted by them: Python's integers where that may leave i64."""
    far = any(abs(size) > _FAR for size in sizes)
    if far or (len(numbers) and not -_FAR <= numbers.min() <= numbers.max() <= _FAR):
        return numbers.astype(object)
    return numbers


def _included(periods: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers whose multiples, each counted so often, are the multiples of periods, each counted once (inclusion and
    exclusion)."""
    found: dict[int, int] = {}
    for period in periods:
        for multiple, sign in [*found.items()]:
            both = min(lcm(multiple, period), _NEVER)
            found[both] = found.get(both, 0) - sign
        found[period] = found.get(period, 0) + 1
    return [(multiple, sign) for multiple, sign in found.items() if sign]


def _in_order(times: NDArray[Any], last: int) -> I64:
    """Those that are not behind the last, each once."""
    return np.unique(times[times <= last].astype(np.int64))
