"""Other ids in the live keys, for a state that continues with another dictionary: hashes and chains are made again."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import views as v
from oxiseq.engine.kernels.sequence.hashing import hash_row
from oxiseq.engine.kernels.sequence.records import BUCKET_TOP, ENTRY_TOP, GROUP_TOP, Memory, Tables


@kernel
def rename(T: Ptr[Tables], S: Ptr[Memory], slots: Array, numbers: Array) -> None:
    """Put `numbers` (i64 by id) into all keys where `slots` (u8[edges, width]) says that there are ids.

    Hash tables of groups and buckets and chains of `,` waits must be made again afterwards.
    """
    scalars, groups, buckets = v.scalars(S), v.groups(S), v.buckets(S)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge >= 0:
            edge = i64(groups[g].edge)
            width = i64(v.edges(T)[edge].width)
            _rename(v.keys(S), g, slots, edge, width, numbers)
            groups[g].hash = hash_row(edge, v.keys(S), g, width)
    for b in range(scalars[BUCKET_TOP]):
        if buckets[b].probe >= 0:
            p = i64(buckets[b].probe)
            probe, keys = v.probes(T)[p], v.bucket_keys(S)
            for i in range(probe.equal0, probe.equal1):
                if slots[probe.edge, v.equal(T)[i, 0]]:
                    keys[b, i - probe.equal0] = numbers[keys[b, i - probe.equal0]]
            buckets[b].hash = hash_row(p, keys, b, i64(probe.equal1 - probe.equal0))
    for at in range(scalars[ENTRY_TOP]):
        edge = i64(v.entries(S)[at].edge)
        if edge >= 0:
            _rename(v.entry_keys(S), at, slots, edge, i64(v.edges(T)[edge].width), numbers)


@inner
def _rename(keys: Array, at: int, slots: Array, edge: int, width: int, numbers: Array) -> None:
    for c in range(width):
        if slots[edge, c]:
            keys[at, c] = numbers[keys[at, c]]
