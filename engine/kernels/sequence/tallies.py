"""Matches that are counted, not listed: how many end in a bucket of time with a key (kernels/matches/counting.py).

A tally is a record by (bucket, edge, key), found by hash. Python takes all of them at times, and the table is empty.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.counting import add, carries
from oxiseq.engine.kernels.matches.records import DONE, NEED_LIMBS
from oxiseq.engine.kernels.memory.hashing import SPREAD, mix, same_rows
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.memory.slots import put_slot
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.hashing import tag_in
from oxiseq.engine.kernels.sequence.records import NEED_TALLIES, TALLIES, Memory, Tables


@inner
def tally(T: Ptr[Tables], S: Ptr[Memory], i: int, edge: int, clock: int) -> int:
    """Count the matches of pending prefix `i`, which end at `clock`: in one bucket with those of that clock, or of the
    tumbling window, by its number."""
    scalars, keys, slots, counts = v.scalars(S), v.tally_keys(S), v.tally_table(S), v.tally(S)
    bucket, query = clock, i64(v.edges(T)[edge].query)
    if v.windows(T)[query].together:
        bucket = (clock - v.origins(S)[query]) // v.windows(T)[query].size
    width = v.edges(T)[edge].width
    pending = v.pending_keys(S)
    h = mix(u64(bucket) * SPREAD, edge)
    for c in range(width):
        h = mix(h, pending[i, c])
    tag, mask = tag_in(h), slots.shape[0] - 1
    slot = tag & mask
    while slots[slot].number != 0:
        at = i64(slots[slot].number) - 1
        same = slots[slot].tag == tag and keys[at, 0] == bucket and keys[at, 1] == edge
        if same and same_rows(keys, at, 2, pending, i, 0, width):
            return _add(S, at, i64(v.pending(S)[i, 1]))
        slot = (slot + 1) & mask
    at = scalars[TALLIES]
    if at == keys.shape[0]:
        return NEED_TALLIES
    scalars[TALLIES] = at + 1
    put_slot(slots, tag, at)
    keys[at, 0] = bucket
    keys[at, 1] = edge
    for c in range(width):
        keys[at, 2 + c] = pending[i, c]
    for limb in range(counts.shape[1]):
        counts[at, limb] = 0
    return _add(S, at, i64(v.pending(S)[i, 1]))


@inner
def _add(S: Ptr[Memory], at: int, node: int) -> int:
    if carries(S, v.tally(S), at, v.weights(S), node):
        return NEED_LIMBS
    add(v.tally(S), at, v.weights(S), node)
    return DONE
