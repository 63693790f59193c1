"""What is dead: all that starts before the cut. Each edge belongs to a query, and each query has a window of its own.

In an instant the cut is the first clock of the query's window, or what CONSUME BY has forgotten, if that is later.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.matches.records import EVERYTHING
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.records import (
    BEFORE_ALL,
    CLOCK,
    COUNTED,
    FORGOTTEN,
    HERE,
    PARTITIONED,
    Memory,
    Tables,
)

_NEVER = 1 << 62


@inner
def window_begin(T: Ptr[Tables], S: Ptr[Memory], query: int, clock: int) -> int:
    """The first clock of a query's window at `clock`."""
    window = v.windows(T)[query]
    if window.size == 0 or clock == BEFORE_ALL:
        return i64(BEFORE_ALL)
    return window_start(clock, window.size, window.slides, v.origins(S)[query])


@inner
def cut(T: Ptr[Tables], S: Ptr[Memory], edge: int) -> int:
    """What starts before is dead at an edge in the instant in work, of its partition if there are some."""
    return cut_here(T, S, i64(v.edges(T)[edge].query))


@inner
def cut_here(T: Ptr[Tables], S: Ptr[Memory], query: int) -> int:
    """What starts before is dead for a query in the instant in work."""
    scalars = v.scalars(S)
    return max(window_begin(T, S, query, scalars[CLOCK]), v.floors(S)[scalars[HERE], query])


@inner
def cut_in(T: Ptr[Tables], S: Ptr[Memory], query: int, p: int) -> int:
    """What starts before is dead for a query in partition `p`, 0 where there are none."""
    scalars, sizes = v.scalars(S), v.sizes(T)
    if sizes[PARTITIONED] and v.windows(T)[query].consumes == EVERYTHING and scalars[FORGOTTEN] > v.moments(S)[p]:
        return i64(_NEVER)
    clock = v.numbers(S)[p] if sizes[COUNTED] else scalars[CLOCK]
    return max(window_begin(T, S, query, clock), v.floors(S)[p, query])


@inner
def least_cut(T: Ptr[Tables], S: Ptr[Memory], p: int) -> int:
    """What starts before is dead for all queries in partition `p`."""
    least = i64(_NEVER)
    for query in range(v.windows(T).shape[0]):
        least = min(least, cut_in(T, S, i64(query), p))
    return least
