"""What finds groups is not saved with them, but made again.

In which order groups lie in a bucket decides nothing: what a row finds there is put in order (reading.py).
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.records import DONE
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.groups import killed, oldest_start, remove_group
from oxiseq.engine.kernels.sequence.records import (
    BUCKET_COUNT,
    BUCKET_FREE,
    BUCKET_TOP,
    CLOCK,
    COUNTED,
    GROUP_TOP,
    NEED_BUCKETS,
    PROBES,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.sequence.writing import index_group
from oxiseq.engine.kernels.terms.columns import Columns


@kernel
def remove_dead(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """Remove the groups that a stamp on their bucket has killed, and those of which nothing is in the window at CLOCK:
    which of them are there still depends on what came since. Then the stamps are of no use any more."""
    scalars, groups = v.scalars(S), v.groups(S)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge >= 0 and (killed(T, S, g) or _out_of_window(T, S, i64(g))):
            remove_group(T, S, g)


@inner
def _out_of_window(T: Ptr[Tables], S: Ptr[Memory], g: int) -> bool:
    """Whether all of group `g` starts before its window; what waits for the window's end is none of these."""
    edge = v.edges(T)[v.groups(S)[g].edge]
    if edge.waits != 0 or v.sizes(T)[COUNTED]:
        return False
    return v.groups(S)[g].maxs < oldest_start(T, S, i64(edge.query), v.scalars(S)[CLOCK])


@kernel
def index_groups(T: Ptr[Tables], S: Ptr[Memory], C: Columns) -> int:
    """Put all groups into buckets; DONE, or NEED_BUCKETS: then it must begin again."""
    scalars = v.scalars(S)
    scalars[BUCKET_TOP], scalars[BUCKET_FREE], scalars[BUCKET_COUNT] = 0, -1, 0
    for slot in range(v.bucket_table(S).shape[0]):
        v.bucket_table(S)[slot] = -1
    for g in range(scalars[GROUP_TOP]):
        edge = i64(v.groups(S)[g].edge)
        if edge < 0:
            continue
        if scalars[BUCKET_COUNT] + v.sizes(T)[PROBES] > v.buckets(S).shape[0]:
            return NEED_BUCKETS
        index_group(T, S, C, i64(g), edge)
    return DONE
