"""A delta in memory: rows that come or go, each at a tick (operators.md, 2.1); what is emitted of it; and clocks, which
say which instants are in work.

Kernels take the addresses of the deltas that they read and of the one that they write, and of nothing else but their
own memory; so all of them can be driven by a table. A clock is i64[2], one for all operators of a plan over what
happens at some time, which keep it as long as it is of use; these know its address. Whoever runs the plan sets it
before a step.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.raw import get

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


# --- clocks ----------------------------------------------------------------------------------------------


SINCE, OVER = range(2)
"""What ended before SINCE has happened, and does not change; what no instant from OVER on needs is dropped."""
FEW: Final = 1 << 10
"""Rows that are not worth a look whether they are still of use."""


@inner
def is_full(clock: int, rows: int, kept: int, limit: int) -> bool:
    """Whether it is time to let go of rows. kept: how many the last look has left. Those of an instant go at once."""
    return clock != 0 and rows > 0 and (limit == 0 or rows > 2 * kept + FEW)


@inner
def of_use_from(clock: int, limit: int) -> int:
    """The time before which no row may begin that is kept for so long."""
    return get(clock, OVER) - limit


# --- rows that are emitted, each as often as its weight says ------------------------------------------------


@kernel
def told_rows(weight: Array, sign: int) -> int:
    """How many rows are emitted of a delta with these weights: of those that come (sign 1), or that go (-1)."""
    total = 0
    for i in range(weight.shape[0]):
        total += max(sign * weight[i], 0)
    return total


@kernel
def tell(at: Array, weight: Array, rows: Array, sign: int, first: int, instants: Array, told: Array) -> None:
    """Write them, in the delta's order: their ticks, less `first`, and their columns."""
    n = 0
    for i in range(at.shape[0]):
        for _ in range(sign * weight[i]):
            instants[n] = at[i] - first
            for c in range(rows.shape[1]):
                told[n, c] = rows[i, c]
            n += 1


@kernel
def with_rows(deltas: Array, found: Array) -> int:
    """Which deltas have rows, of addresses: i64[n]. Their numbers go into `found`, i64[n]; how many they are."""
    some = 0
    for i in range(deltas.shape[0]):
        if count(deltas[i])[0] > 0:
            found[some] = i
            some += 1
    return some
