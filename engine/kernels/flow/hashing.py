"""Rows found by hash: open addressing, linear probing, half full at the most, a power of two long.

A slot holds 32 bits of a row's hash (its tag) and a number that says where the row is. Deletion shifts back what
follows, so that nothing is left behind. Rows do not know their slots: these move.

Rows stand in tables of u32, here or there: `rows` is such a table, `i` a line of it, `first` its first column.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.raw import fetch, get

SLOT: Final = np.dtype([("tag", "u4"), ("number", "i4")], align=True)
"""number: what is found, + 1; 0: nothing."""

_SEED: Final = 1609587929392839161
_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
"""Odd, without a pattern in their bits."""
_LOW: Final = 0xFFFFFFFF
_SLOT_SIZE: Final = SLOT.itemsize


def slots_for(rows: int) -> int:
    """How many slots a table of so many rows has."""
    return 1 << max(2 * rows - 1, 2).bit_length()


@inner
def row_tag(rows: Any, i: int, first: int, width: int) -> int:
    """32 bits of hash of a row."""
    h = np.int64(_SEED)
    for c in range(width):
        h = (h ^ np.int64(rows[i, first + c])) * _A
        h ^= h >> 29
    return (h >> 32) & _LOW


@inner
def key_tag(rows: Any, i: int, first: int, key: Any, loose: Any, mask: int, subset: int) -> int:
    """32 bits of hash of a row's columns at `key`, of those of `loose` that are in `subset`, and of which loose ones it
    binds."""
    h = np.int64(_SEED) ^ (mask << 8 | subset) * _B
    for c in range(key.shape[0]):
        h = (h ^ np.int64(rows[i, first + key[c]])) * _A
        h ^= h >> 29
    if subset != 0:
        for c in range(loose.shape[0]):
            if subset >> c & 1:
                h = (h ^ np.int64(rows[i, first + loose[c]])) * _A
                h ^= h >> 29
    return (h >> 32) & _LOW


@inner
def same_rows(a: Any, i: int, a0: int, b: Any, j: int, b0: int, width: int) -> bool:
    """Whether two rows are equal."""
    for c in range(width):  # noqa: SIM110  kernels have no generators
        if a[i, a0 + c] != b[j, b0 + c]:
            return False
    return True


@inner
def put_slot(slots: Any, tag: int, number: int) -> None:
    """Enter a number; there is room."""
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != 0:
        i = (i + 1) & mask
    slots[i].tag = tag
    slots[i].number = number + 1


@inner
def find_number(slots: Any, tag: int, number: int) -> int:
    """The slot of a number that is there."""
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != number + 1:
        i = (i + 1) & mask
    return i


@inner
def drop_slot(slots: Any, i: int) -> None:
    """Empty a slot, and shift back what it would hide."""
    mask = slots.shape[0] - 1
    j = i
    while True:
        j = (j + 1) & mask
        if slots[j].number == 0:
            break
        home = np.int64(slots[j].tag) & mask
        if ((j - home) & mask) >= ((j - i) & mask):  # its home does not lie cyclically in (i, j]
            slots[i].tag = slots[j].tag
            slots[i].number = slots[j].number
            i = j
    slots[i].number = 0


@inner
def fetch_slot(table: Any, place: int, tag: int) -> None:
    """A tag will be looked for soon. place: where the array of slots stands in the pointer table."""
    mask = get(table, place + 1) - 1
    fetch(get(table, place) + (tag & mask) * _SLOT_SIZE)
