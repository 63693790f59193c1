"""Hashes of groups, buckets and leads, and their tables (kernels/memory/slots.py)."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.hashing import SPREAD, mix
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import clear_slots, put_slot
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.records import GROUP_TOP, Memory, Tables

_TAG = np.uint64(0xFFFFFFFF)


@inner
def hash_key(number: int, key: Array, width: int) -> np.uint64:
    """Hash of the first `width` values of `key` for edge or signature `number`."""
    h = u64(number) * SPREAD + u64(1)
    for i in range(width):
        h = mix(h, key[i])
    return h


@inner
def hash_row(number: int, keys: Array, at: int, width: int) -> np.uint64:
    """`hash_key` of row `at` of a table of keys."""
    h = u64(number) * SPREAD + u64(1)
    for i in range(width):
        h = mix(h, keys[at, i])
    return h


@inner
def same_key(keys: Array, at: int, first: int, key: Array, width: int) -> bool:
    """Whether row `at` of a table of keys has, from column `first` on, the first `width` values of `key`."""
    i = 0
    while i < width and keys[at, first + i] == key[i]:
        i += 1
    return i == width


@inner
def tag_in(h: np.uint64) -> int:
    """The part of a hash that is in its slot."""
    return i64(h & _TAG)


@kernel
def rehash_groups(table: Array, records: Array, top: int) -> None:
    """Fill a table again after it has grown."""
    clear_slots(table)
    for r in range(top):
        if records[r].edge >= 0:
            put_slot(table, tag_in(records[r].hash), r)


@kernel
def rehash_buckets(table: Array, records: Array, top: int) -> None:
    """`rehash_groups` for buckets."""
    clear_slots(table)
    for r in range(top):
        if records[r].signature >= 0:
            put_slot(table, tag_in(records[r].hash), r)


@kernel
def hash_again(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """The hashes of groups, when ids in their keys have changed. Their table must be filled again."""
    groups = v.groups(S)
    for g in range(v.scalars(S)[GROUP_TOP]):
        edge = i64(groups[g].edge)
        if edge >= 0:
            groups[g].hash = hash_row(edge, v.keys(S), g, i64(v.edges(T)[edge].width))
