"""A delta in memory: rows that come or go, each at a tick (operators.md, 2.1).

Kernels take the addresses of the deltas that they read and of the one that they write, and of nothing else but their
own memory; so all of them can be driven by a table.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.memory.pointers import Ptr

DONE, NEED_OUT, NEED_ROOM, NEED_ORDER, TOO_MANY_READS = range(5)
"""What a kernel answers: that it is through; that it wants more room for its output, or in its memory; that it has to
compare terms whose order Python must say (`TermOrder.prepare`). It is called again then, and goes on
where it was. Of too many reads at one tick it does not."""


class Flowing(Arrays):
    """A delta. `count` rows are in use; the others are room."""


at = array(Flowing, "at", np.int64)  # ticks, ascending
weight = array(Flowing, "weight", np.int64)  # i64, never 0: how many such rows come, or (below 0) go
rows = array(Flowing, "rows", np.uint32, 2)  # u32[room, columns]: term ids, 0 being unbound
count = array(Flowing, "count", np.int64)  # i64[1]


Delta: TypeAlias = Ptr[Flowing]
"""A delta, for kernels."""
