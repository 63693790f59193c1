"""Several queries in one run, each a partition of it: which of them are left out at an event, since they are past a
bound there (omissions.py). What bounds one does not concern the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import BOUNDS, InstantBound, InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.matches.found import Found
from oxiseq.engine.omissions import InstantError, Streak

I64 = NDArray[np.int64]


class QueryStreaks:
    """By query the events at which it was left out one after the other."""

    def __init__(self) -> None:
        self._streaks: dict[int, Streak] = {}
        self._since: dict[int, int] = {}
        """The row of the batch at which each was left out last; -1: one of an earlier batch."""

    def running(self, query: int) -> int:
        """How many those of a query are."""
        return self._streaks[query].running if query in self._streaks else 0

    def begin(self, query: int, running: int) -> None:
        """A query comes that has been left out so often."""
        self._streaks.pop(query, None)
        if running:
            self._streaks[query] = Streak(BOUNDS, running)
            self._since[query] = -1

    def leave_out(
        self, row: int, query: int, bound: InstantBound, given: int | LimitError, instant: int, bounds: InstantBounds
    ) -> bool:
        """A query is past a bound at a row of the batch; whether it is to be stopped. `answered` has been called."""
        streak = self._streaks.setdefault(query, Streak(bounds))
        streak.bounds = bounds
        streak.leave_out(bound, given, instant)
        self._since[query] = row
        return streak.over

    def answered(self, parts: Sequence[Found], query_of: I64, *, ends: bool = False) -> None:
        """What has been found of the batch; `query_of`: by row. `ends`: that is all of it."""
        if not self._streaks:
            return
        rows = np.concatenate([np.zeros(0, np.int64), *(part.marks[:, 0] for part in parts)])
        for query, streak in self._streaks.items():
            mine = rows[query_of[rows] == query]
            if not streak.over and len(mine) and mine.max() > self._since[query]:
                streak.answered()
            if ends:
                self._since[query] = -1

    def take(self) -> dict[int, list[InstantError]]:
        """Where each was left out since the last call."""
        taken = {query: streak.take() for query, streak in self._streaks.items()}
        self._streaks = {query: streak for query, streak in self._streaks.items() if streak.running}
        return {query: errors for query, errors in taken.items() if errors}
