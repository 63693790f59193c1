"""Hash tables of numbers: open addressing, linear probing, half full at the most, a power of two long.

A slot holds 32 bits of hash (a tag) and a number that says what that is the hash of: a row, a group, a pair. Deletion
shifts back what follows, so that nothing is left behind. What is found does not know its slot: these move.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.hashing import same_rows
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import fetch, get

SLOT: Final = np.dtype([("tag", "u4"), ("number", "i4")], align=True)
"""number: what is found, + 1; 0: nothing."""

_SLOT_SIZE: Final = SLOT.itemsize


def slots_for(rows: int) -> int:
    """How many slots a table for so many has."""
    return 1 << max(2 * rows - 1, 2).bit_length()


@inner
def put_slot(slots: Array, tag: int, number: int) -> None:
    """Enter a number; there is room."""
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != 0:
        i = (i + 1) & mask
    slots[i].tag = tag
    slots[i].number = number + 1


@inner
def find_number(slots: Array, tag: int, number: int) -> int:
    """The slot of a number that is there."""
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != number + 1:
        i = (i + 1) & mask
    return i


@inner
def slot_of_row(slots: Array, tag: int, rows: Array, first: int, given: Array, i: int, width: int) -> int:
    """The slot of row `i` of `given`, whose tag this is; below 0: there is none, and -1 - slot is the free one that it
    would get. The slots' numbers are those of rows, which begin at column `first` of `rows`."""
    mask = slots.shape[0] - 1
    at = tag & mask
    while slots[at].number != 0:
        n = i64(slots[at].number) - 1
        if slots[at].tag == tag and same_rows(rows, n, first, given, i, 0, width):
            return at
        at = (at + 1) & mask
    return -1 - at


@inner
def find_key(slots: Array, tag: int, keys: Array, rows: Array, i: int, places: Array) -> int:
    """The number of the key that a row has at `places`, -1 if there is none. keys: u32[numbers, places]."""
    mask = slots.shape[0] - 1
    at = tag & mask
    while slots[at].number != 0:
        if slots[at].tag == tag:
            g = i64(slots[at].number) - 1
            c = i64(0)
            while c < places.shape[0] and keys[g, c] == rows[i, places[c]]:
                c += 1
            if c == places.shape[0]:
                return g
        at = (at + 1) & mask
    return i64(-1)


@inner
def drop_slot(slots: Array, i: int) -> None:
    """Empty a slot, and shift back what it would hide."""
    mask = slots.shape[0] - 1
    j = i
    while True:
        j = (j + 1) & mask
        if slots[j].number == 0:
            break
        home = i64(slots[j].tag) & mask
        if ((j - home) & mask) >= ((j - i) & mask):  # its home does not lie cyclically in (i, j]
            slots[i].tag = slots[j].tag
            slots[i].number = slots[j].number
            i = j
    slots[i].number = 0


@inner
def clear_slots(slots: Array) -> None:
    """Empty a table."""
    for i in range(slots.shape[0]):
        slots[i].tag = slots[i].number = 0


@inner
def fetch_slot(table: int, place: int, tag: int) -> None:
    """A tag will be looked for soon. place: of the array of slots in the pointer table."""
    mask = get(table, place + 1) - 1
    fetch(get(table, place) + (tag & mask) * _SLOT_SIZE)
