"""Matches as columns: nothing is turned into Python objects until somebody looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.grammar.records import dataclass

_FEW: Final = 4
"""As many times as large a whole is as a part that is copied out of it."""


@dataclass(slots=True, eq=False)  # not frozen: to make one, of a thousand queries each, would take four times as long
class MatchBatch:
    """n matches, in the order in which they are decided (semantics.md 2.6a). They are never changed.

    time: i64[n] µs, the end of each match, or the time of a row; values: u32[n, c] term ids of the answer's columns (0:
    unbound); ends: i64[n + 1]; event_letter i32[f] and event_time i64[f]: the events of match i are `ends[i] : ends[i +
    1]`, in order of time. decided: i64[n] µs, when each is decided; None: at its `time`.
    """

    time: NDArray[np.int64]
    values: NDArray[np.uint32]
    ends: NDArray[np.int64]
    event_letter: NDArray[np.int32]
    event_time: NDArray[np.int64]
    decided: NDArray[np.int64] | None = None

    @property
    def at(self) -> NDArray[np.int64]:
        """i64[n] µs: when each is decided."""
        return self.time if self.decided is None else self.decided

    def __len__(self) -> int:
        return len(self.time)

    def take(self, index: NDArray[np.int64]) -> MatchBatch:
        """Some of the matches, in the order of `index`."""
        sizes = np.diff(self.ends)[index]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat = np.repeat(self.ends[:-1][index] - ends[:-1], sizes) + np.arange(ends[-1])
        decided = None if self.decided is None else self.decided[index]
        letters, times = self.event_letter[flat], self.event_time[flat]
        return MatchBatch(self.time[index], self.values[index], ends, letters, times, decided)

    def cut(self, bounds: Sequence[int]) -> Iterator[MatchBatch]:
        """The matches from each bound up to the next: of thousands of queries, some of each. Few are copied, since
        whoever keeps a view keeps all."""
        ends, each = self.ends, int(self.ends[1]) if len(self) else 0
        even = bool((np.diff(ends) == each).all())
        for low, high in pairwise(bounds):
            first, last = (each * low, each * high) if even else (int(ends[low]), int(ends[high]))
            part = MatchBatch(
                self.time[low:high],
                self.values[low:high],
                ends[: high - low + 1] if even else ends[low : high + 1] - first,
                self.event_letter[first:last],
                self.event_time[first:last],
                None if self.decided is None else self.decided[low:high],
            )
            yield part if _FEW * (high - low) > len(self) else part.copied()

    def copied(self) -> MatchBatch:
        """The same in arrays of its own."""
        decided = None if self.decided is None else self.decided.copy()
        letters, times = self.event_letter.copy(), self.event_time.copy()
        return MatchBatch(self.time.copy(), self.values.copy(), self.ends.copy(), letters, times, decided)

    @classmethod
    def of_groups(
        cls, time: NDArray[np.int64], values: NDArray[np.uint32], decided: NDArray[np.int64] | None = None
    ) -> MatchBatch:
        """Rows of groups, which name no events."""
        ends, letters, times = np.zeros(len(time) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
        return cls(time, values, ends, letters, times, decided)

    @classmethod
    def concat(cls, batches: list[MatchBatch], columns: int) -> MatchBatch:
        """Several batches as one."""
        if not batches:
            return cls.of_groups(np.zeros(0, np.int64), np.zeros((0, columns), np.uint32))
        if len(batches) == 1:
            return batches[0]
        sizes = np.concatenate([np.diff(b.ends) for b in batches])
        return cls(
            np.concatenate([b.time for b in batches]),
            np.concatenate([b.values for b in batches]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([b.event_letter for b in batches]),
            np.concatenate([b.event_time for b in batches]),
            None if all(b.decided is None for b in batches) else np.concatenate([b.at for b in batches]),
        )
