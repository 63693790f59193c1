"""Hash tables of numbers: open addressing, linear probing, a power of two long, half full at the most.

Deletion shifts back what follows, so that nothing is left behind.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner

SLOT: Final = np.dtype([("tag", "u4"), ("number", "i4")], align=True)
"""32 bits of hash, and the number of what it is that of, + 1; 0: none."""

_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
"""Odd, without a pattern in their bits."""
_LOW: Final = 0xFFFFFFFF
SEED: Final = 0x51ED270B
"""The hash of no term."""


@inner
def mixed(h: int, x: int) -> int:
    """The hash of some terms and one more."""
    h = (h ^ x) * _A
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


@inner
def tag_of(h: int) -> int:
    """32 bits of a hash."""
    h *= _B
    return (h >> 32) & _LOW


@inner
def put_slot(slots: Any, tag: int, number: int) -> None:
    """Enter a number that is not there; there is room."""
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != 0:
        i = (i + 1) & mask
    slots[i].tag = tag
    slots[i].number = number + 1


@inner
def drop_slot(slots: Any, tag: int, number: int) -> None:
    """Take out a number that is there."""
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != number + 1:
        i = (i + 1) & mask
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


def slot_count(records: int) -> int:
    """How many slots so many records want, half of them at the most being used."""
    return 1 << max(2 * records - 1, 2).bit_length()
