"""Batches of few rows that need not wait for others: their symbols are written where the automaton reads them.

In the flow: table → **symbols of a few rows** → `CeaRun.feed_few`, past `Marks` and merging. What is seen from
outside is the same: between two calls of the run such a batch may have to become one that waits (`taken`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.events import FEW
from oxiseq.engine.cea.marks import Marks
from oxiseq.engine.cea.run import CeaRun
from oxiseq.engine.cea.table_marks import TableMarker
from oxiseq.engine.events.tuples import TupleRows


class AtOnce:
    """For a query of one stream without values that aggregates need. `time`: of the batch that has been marked and not
    been fed, i64[n], µs; None: there is none. `values`: of it, of PARTITION BY, i64[n, k] as in Marks,
    and perhaps further rows."""

    def __init__(self, marker: TableMarker, runner: CeaRun) -> None:
        self._marker, self._few = marker, runner.few
        self._room = marker.room_in(self._few.symbol, self._few.attribute)
        self.time: NDArray[np.int64] | None = None
        self.values = np.zeros((0, 0), np.int64)

    def mark(self, batch: TupleRows) -> bool:
        """Mark a batch that comes in order; False: it is not one for this, and nothing has happened. Raises EventError
        as `TableMarker.mark`."""
        if not batch.rising or len(batch.time) > FEW:
            return False
        values = self._marker.mark_few(batch, self._room)
        if values is None:
            return False
        self.time, self.values = batch.time, values
        return True

    def taken(self) -> Marks | None:
        """The marked batch, as others are, once."""
        time, self.time = self.time, None
        if time is None:
            return None
        few, count = self._few, len(time)
        attribute = few.attribute[:count].copy() if len(few.attribute) else None
        return Marks(few.symbol[:count].copy(), time, attribute, self.values[:count])
