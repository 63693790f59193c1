"""Other ids in the live keys, for a state that continues with another dictionary: hashes and chains are made again."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import views as v
from oxiseq.engine.kernels.sequence.hashing import hash_key, hash_row
from oxiseq.engine.kernels.sequence.records import BUCKET_TOP, ENTRY_TOP, GROUP_TOP, Memory, Tables


@kernel
def rename(T: Ptr[Tables], S: Ptr[Memory], slots: Array, numbers: Array, instant: int) -> None:
    """Put `numbers` (i64 by id) into all keys where `slots` (u8[edges, width]) says that there are ids.

    The `,` arena was written at `instant`. Hash tables of groups and buckets must be filled again afterwards.
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
        _rename(v.entry_keys(S), at, slots, edge, i64(v.edges(T)[edge].width), numbers)
        _chain(T, S, at, edge, instant)


@inner
def _rename(keys: Array, at: int, slots: Array, edge: int, width: int, numbers: Array) -> None:
    for c in range(width):
        if slots[edge, c]:
            keys[at, c] = numbers[keys[at, c]]


@inner
def _chain(T: Ptr[Tables], S: Ptr[Memory], at: int, edge: int, instant: int) -> None:
    """Put an entry of the `,` arena into its chain, as when it was written."""
    chained, first = v.edges(T)[edge].chained, v.edges(T)[edge].chain0
    for c in range(chained):
        v.key(S)[c] = v.entry_keys(S)[at, v.chain(T)[first + c]]
    h = hash_key(edge, v.key(S), chained) & np.uint64(v.chains(S).shape[0] - 1)
    chain = v.chains(S)[h]
    v.entries(S)[at].next = chain.head if chain.stamp == instant else -1
    chain.stamp = instant
    chain.head = at
