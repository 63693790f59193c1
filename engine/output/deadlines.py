"""When matches with trailing negations are decided: at the greatest deadline of these (semantics.md 2.6a).

In the flow: run → matches of ends and starts → **when each is decided** → the order in which they are told. A deadline
is a time, or an instant's number, which is a time as soon as that instant is there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.window import end_of, number_of
from oxiseq.grammar.algebra import Window
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]
UNKNOWN: Final = 1 << 62
"""The time of an instant that has not come, or may never come."""


class NumberedInstants(NamedTuple):
    """Some instants that follow each other, in order: their numbers and times (µs); and where partitions have instants
    of their own, whose they are (counted from 1)."""

    number: I64
    time: I64
    partition: I64 | None = None

    def times(self, numbers: I64, partitions: I64) -> I64:
        """When the instants of these numbers were, UNKNOWN where they are not here."""
        if not len(self.number):
            return np.full(len(numbers), UNKNOWN, np.int64)
        mine, wanted = self.number, numbers
        if self.partition is not None:
            wide = 1 + max(int(self.number.max()), int(numbers.max(initial=0)))
            mine, wanted = self.partition * wide + self.number, partitions * wide + numbers
        order = np.argsort(mine, kind="stable")
        at = np.minimum(np.searchsorted(mine[order], wanted), len(mine) - 1)
        found: I64 = np.where(mine[order][at] == wanted, self.time[order][at], UNKNOWN)
        return found


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Of one query. `window`: its WITHIN; `wait`: how long (µs) after its end a match waits at most, None: until the
    window ends; `bound`: how long by the bounds that there are."""

    window: Window | None
    wait: int | None
    bound: int = 0

    def last_clocks(self, starts: I64, start: int) -> I64:
        """The last clock of the windows in which matches are that begin at the clocks `starts`. `start`: the first
        clock of the first tumbling window."""
        window = self.window
        assert window is not None
        if window.sliding:
            return starts + window.size
        ends: I64 = end_of(window, number_of(window, starts, start), start) - 1  # type: ignore[assignment, arg-type]
        return ends

    def bounds(self, ends: I64) -> I64:
        """When the bounds of all trailing negations have passed, for matches that end at these times (µs); UNKNOWN: one
        has none."""
        return np.full(len(ends), UNKNOWN, np.int64) if self.wait is None else ends + self.wait

    def at_end(self, ends: I64, reached: int) -> I64:
        """When matches that end at these times are decided, of which only later instants could tell, by streams that
        have ended, where one had come to `reached` (µs)."""
        return np.maximum(ends + self.bound, reached)

    def of(self, ends: I64, starts: I64, partitions: I64, start: int, instants: NumberedInstants) -> I64:
        """When (µs) matches are decided that end at the times `ends` and begin at the clocks `starts`, UNKNOWN where
        only later instants can tell. `instants`: those that have come with the last of them, or since."""
        if self.window is None:
            return self.bounds(ends)
        lasts = self.last_clocks(starts, start)
        if self.window.events:
            lasts = instants.times(lasts, partitions)
        return np.minimum(self.bounds(ends), lasts)
