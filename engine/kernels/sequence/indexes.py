"""What finds groups is not saved with them, but made again.

In which order groups lie in a bucket decides nothing: what a row finds there is put in order (reading.py).
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.matches.records import DONE
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.memory.slots import clear_slots
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.groups import expired, killed, remove_group
from oxiseq.engine.kernels.sequence.records import (
    BUCKET_COUNT,
    BUCKET_FREE,
    BUCKET_TOP,
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
    """Remove the groups that a stamp on their bucket has killed, of which the stamps are of no use any more then, and
    those that are out of their window behind others that are not."""
    for g in range(v.scalars(S)[GROUP_TOP]):
        if v.groups(S)[g].edge >= 0 and (killed(T, S, g) or expired(T, S, g)):
            remove_group(T, S, g)


@kernel
def index_groups(T: Ptr[Tables], S: Ptr[Memory], C: Columns) -> int:
    """Put all groups into buckets; DONE, or NEED_BUCKETS: then it must begin again."""
    scalars = v.scalars(S)
    scalars[BUCKET_TOP], scalars[BUCKET_FREE], scalars[BUCKET_COUNT] = 0, -1, 0
    clear_slots(v.bucket_table(S))
    for g in range(scalars[GROUP_TOP]):
        edge = i64(v.groups(S)[g].edge)
        if edge < 0:
            continue
        if scalars[BUCKET_COUNT] + v.sizes(T)[PROBES] > v.buckets(S).shape[0]:
            return NEED_BUCKETS
        index_group(T, S, C, i64(g), edge)
    return DONE
