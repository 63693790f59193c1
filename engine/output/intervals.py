"""Answers with intervals as columns: nothing is turned into Python objects until somebody looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class IntervalAnswers:
    """n answers, in order of their ends. start, time: i64[n] µs, the hull (`time` is its end); values: u32[n, c] term
    ids of the answer's columns (0: unbound)."""

    start: NDArray[np.int64]
    time: NDArray[np.int64]
    values: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.time)

    def take(self, index: NDArray[np.int64]) -> IntervalAnswers:
        """Some of the answers, in the order of `index`."""
        return IntervalAnswers(self.start[index], self.time[index], self.values[index])

    @classmethod
    def concat(cls, batches: list[IntervalAnswers], columns: int) -> IntervalAnswers:
        """Several batches as one."""
        if not batches:
            none = np.zeros(0, np.int64)
            return cls(none, none, np.zeros((0, columns), np.uint32))
        return cls(
            np.concatenate([b.start for b in batches]),
            np.concatenate([b.time for b in batches]),
            np.concatenate([b.values for b in batches]),
        )
