"""Full rows: by which answers are compared. Two are the same when all their columns, and the times of their event
mappings if they carry any, are."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class FullRows:
    """The answer at one instant. values: u32[k, columns]; span: i64[k, 2], start and end of the event mapping, or
    i64[k, 0]."""

    values: NDArray[np.uint32]
    span: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: NDArray[np.int64]) -> FullRows:
        """Some of them."""
        return FullRows(self.values[index], self.span[index])


NO_ROWS: Final = FullRows(np.zeros((0, 0), np.uint32), np.zeros((0, 0), np.int64))
