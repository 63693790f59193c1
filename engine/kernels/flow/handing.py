"""Rows that windows emit become deltas of operators, query by query."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

NONE_FULL: Final = -1


class Handing(Arrays):
    """Where rows go."""


_sinks = array(Handing, "sinks", np.int64)  # i64 by query: the address of its delta (buffers.Flowing).
_next = array(Handing, "next", np.int64)  # i64[1]: the row that comes next; 0 between calls that are through


@kernel
def hand_on(H: Ptr[Handing], out: Array, values: Array, new: int, tick: int) -> int:
    """Add rows to the deltas: those of the kind `new` come, the others go; those of instant 0 at `tick`. NONE_FULL, or
    the query whose delta wants room before this is called again.

    out: records (at, query, kind), `at` being the number of an instant; values: u32[rows, columns], the first of which
    are the query's."""
    sinks, following = _sinks(H), _next(H)
    for i in range(following[0], out.shape[0]):
        row = out[i]
        D = sinks[row.query]
        top, given = buffers.count(D), buffers.rows(D)
        n = top[0]
        if n == given.shape[0]:
            following[0] = i
            return row.query
        buffers.at(D)[n], buffers.weight(D)[n] = tick + row.at, 1 if row.kind == new else -1
        for c in range(given.shape[1]):
            given[n, c] = values[i, c]
        top[0] = n + 1
    following[0] = 0
    return NONE_FULL
