"""Where a run's rows go that operators read: a delta for each query.

Where it stands: the kernel's output → **rows that come and go**, each query's into its own buffer (engine/flow).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from oxiseq.engine.kernels.memory.pointers import Replaceable
from oxiseq.engine.kernels.windows.handing import NONE_FULL, Handing, hand_on


class Growing(Protocol):
    """A delta in memory (kernels/flow/buffers.py)."""

    @property
    def address(self) -> int:
        """Of its pointer table; it stays the same."""
        ...

    def grow(self) -> None:
        """Room for twice as many rows. Raises LimitError."""


class Sinks:
    """The deltas of a plan's queries, in their order. Whoever reads them empties them before the next push."""

    def __init__(self, buffers: Sequence[Growing]) -> None:
        self._buffers = buffers
        addresses = np.array([buffer.address for buffer in buffers], np.int64)
        self._memory = Replaceable(Handing(addresses, np.zeros(1, np.int64)))

    def take(self, memory: int, rows: int, tick: int) -> None:
        """Copy the first rows of the output of a run, whose memory is at `memory`: what is new with weight 1, what has
        ended with weight -1, of instant k at `tick` + k. Raises LimitError."""
        while (full := hand_on(self._memory.address, memory, rows, tick)) != NONE_FULL:
            self._buffers[full].grow()
