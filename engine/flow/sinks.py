"""The changes of windows, as operators read them: a delta for each query.

In the flow: output of engine/windows → **rows that come and go**, each query's in its own buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.delta import Buffer, Ids
from oxiseq.engine.kernels.flow.handing import NONE_FULL, Handing, hand_on
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.windows.run import Report

_NEW: Final = int(Report.NEW)


class Sinks:
    """The deltas of a plan's queries, in their order. Whoever reads them empties them before the next push."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._buffers = buffers
        addresses = np.array([buffer.address for buffer in buffers], np.int64)
        self._memory = Replaceable(Handing(addresses, np.zeros(1, np.int64)))
        self.tick = 0
        """Of the push's first instant."""

    def take(self, out: NDArray[np.void], values: Ids) -> None:
        """Copy rows of a run of windows (kernels/windows, records.OUT): new ones with weight 1, ended ones with
        weight -1. Raises LimitError."""
        while (full := call(hand_on, self._memory, out, values, _NEW, self.tick)) != NONE_FULL:
            self._buffers[full].grow()
