"""Hash tables of numbers: open addressing, linear probing, half full at the most, a power of two long.

A slot holds 32 bits of hash (a tag) and a number that says what that is the hash of: a row, a group, a pair. Deletion
shifts back what follows, so that nothing is left behind. What is found does not know its slot: these move.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.raw import fetch, get

SLOT: Final = np.dtype([("tag", "u4"), ("number", "i4")], align=True)
"""number: what is found, + 1; 0: nothing."""

_SLOT_SIZE: Final = SLOT.itemsize


def slots_for(rows: int) -> int:
    """How many slots a table for so many has."""
    return 1 << max(2 * rows - 1, 2).bit_length()


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
