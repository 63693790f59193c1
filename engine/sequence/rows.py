"""Rows for the sequence kernel, in arrays that are kept from batch to batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.sequence.tables import SequenceTables


class RowBuffer:
    """A batch of rows, sorted by instant; `kernels.letter_rows` fills it.

    `instants`: how many instants are in it; arrays and pointers are replaced when `reserve` has to grow them.
    """

    def __init__(self, compiled: SequenceTables, capacity: int = 16) -> None:
        self._columns = max((len(columns) for columns in compiled.columns), default=0) or 1
        self._measures = max(compiled.measure_count, 1)
        self._partitioned = compiled.clauses.partitioned
        self.instants = 0
        self._allocate(capacity)

    @classmethod
    def empty(cls, compiled: SequenceTables) -> RowBuffer:
        """A batch without rows."""
        return cls(compiled, 0)

    def reserve(self, count: int) -> None:
        """Room for so many rows, and instants; what was there is lost."""
        if count > self._capacity:
            self._allocate(max(count, 2 * self._capacity))

    def count_of(self, time: int, partitions: NDArray[np.int64]) -> int:
        """How many of its instants are at a time (µs), and of these partitions."""
        there = self.arrays.time[: self.instants] == time
        return int(np.count_nonzero(there & np.isin(self.arrays.partition[: self.instants], partitions)))

    def _allocate(self, capacity: int) -> None:
        self._capacity = capacity
        self.arrays = k.Rows.allocate(
            rows=capacity,
            instants=capacity,
            firsts=capacity + 1,
            columns=self._columns,
            measures=self._measures,
            partitioned=int(self._partitioned),
        )
        self.pointers = Pointers(self.arrays)
        """With the lengths of the present batch, once it has been filled."""
