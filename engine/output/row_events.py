"""The events of a set of SPAseq's matches: rows of graph patterns (matches/events.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.output.rows import KnownRows
from oxiseq.engine.plan.query import QueryPlan

I64 = NDArray[np.int64]


class RowEvents:
    """The rows at some places; nodes refer to `rows`."""

    def __init__(self, plan: QueryPlan, rows: KnownRows, pos: I64) -> None:
        ids, self.of = np.unique(pos >> PLACE_BITS, return_inverse=True)
        self._plan, self._block = plan, rows.take(ids)

    def has(self, gpm: str) -> NDArray[np.bool_]:
        return np.array([gpm in letter.letter for letter in self._plan.letters])[self._block.letter]

    def ids(self, variable: Variable, which: NDArray[Any]) -> I64:
        found: I64 = self._block.stored[which, self._plan.runner.stored.index(variable)].astype(np.int64)
        return found

    @property
    def age(self) -> NDArray[np.float64]:
        ages: NDArray[np.float64] = (self._block.time - self._block.time[0] + 1).astype(np.float64)
        return ages
