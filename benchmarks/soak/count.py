"""How many matches there are, from the drawn numbers with NumPy alone: no automaton, no partial match.

A match is a choice of one event of each kind 0, 1, ..., k of one machine, in order of time, the first at most an
hour before the last. Sort the events by machine and time. With S[i..j](p), how many choices of kinds i..j there
are among the first p events of that order (a running sum of S[i..j-1] over the events of kind j), Chen's identity

    S[i..j](q) = S[i..j](p) + S[i..j-1](p) C[j..j] + ... + S[i..i](p) C[i+1..j] + C[i..j]

gives C[i..j], the choices strictly between p and q. All is modulo 2^64: S grows beyond that, but the C that is
asked for is small, so it comes out exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.soak.events import STEPS, Drawn


class Counter:
    """Counts the matches by stretch; remembers the events of the last window."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._before: Drawn | None = None

    def count(self, stretch: Drawn) -> tuple[int, int]:
        """How many matches end in this stretch, and the sum of the times at which they end, modulo 2^64."""
        known = stretch if self._before is None else Drawn.concat([self._before, stretch])
        ends, counts = matches(known, self._window)
        mine = ends >= stretch.time[0]
        self._before = known.since(int(stretch.time[-1]) - self._window)
        times = (counts[mine] * ends[mine].astype(np.uint64)).sum(dtype=np.uint64)
        return int(counts[mine].sum()), int(times)


def matches(events: Drawn, window: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """For each event of the last kind its time and how many matches it ends."""
    time, machine, kind = (column[events.passes] for column in (events.time, events.machine, events.kind))
    if not len(time):
        return np.zeros(0, np.int64), np.zeros(0, np.uint64)
    base = int(time[0]) - window
    span = int(time[-1]) - base + 1
    place = machine * span + (time - base)
    order = np.argsort(place)
    place, kind, time = place[order], kind[order], time[order]
    high = np.flatnonzero(kind == STEPS - 1)
    low = np.searchsorted(place, place[high] - window)
    return time[high], _between(kind, low, high)


def _between(kind: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The choices of one event of each kind 0, ..., STEPS - 2 in order, among the events low, ..., high - 1."""
    of_kind = [kind == step for step in range(STEPS - 1)]
    one = np.ones(len(low), np.uint64)
    after = [one] * STEPS  # after[j]: the choices of kinds j, ..., STEPS - 2
    for first in reversed(range(STEPS - 1)):
        sums = np.ones(len(kind) + 1, np.uint64)
        known = np.zeros(len(low), np.uint64)
        for step in range(first, STEPS - 1):
            sums[1:] = np.cumsum(np.where(of_kind[step], sums[:-1], 0), dtype=np.uint64)
            sums[0] = 0
            known += sums[low] * after[step + 1]
        after[first] = sums[high] - known
    return after[0]
