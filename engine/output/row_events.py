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

    def __init__(self, reader: RowReader, rows: KnownRows, pos: I64) -> None:
        ids, self.of = np.unique(pos >> PLACE_BITS, return_inverse=True)
        self._reader, self._block, self.count = reader, rows.take(ids), len(ids)

    def has(self, gpm: str) -> NDArray[np.bool_]:
        return np.array([gpm in letter for letter in self._reader.letters])[self._block.letter]

    def ids(self, variable: Variable, which: NDArray[Any]) -> I64:
        found: I64 = self._block.stored[which, self._reader.stored[variable]].astype(np.int64)
        return found

    @property
    def age(self) -> NDArray[np.float64]:
        ages: NDArray[np.float64] = (self._block.time - self._block.time[0] + 1).astype(np.float64)
        return ages

    @property
    def end(self) -> int:
        """When the matches end: their last events are newer than the others."""
        return int(self._block.time[-1])


class RowReader:
    """Reads those of one query."""

    def __init__(self, plan: QueryPlan) -> None:
        self.letters = [letter.letter for letter in plan.letters]
        self.stored = {variable: i for i, variable in enumerate(plan.runner.stored)}
