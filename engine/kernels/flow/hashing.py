"""Hashes of rows, of which 32 bits are their tags in a table (slots.py).

Rows stand in tables of u32, here or there: `rows` is such a table, `i` a line of it, `first` its first column.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner

_SEED: Final = 1609587929392839161
_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
"""Odd, without a pattern in their bits."""
_LOW: Final = 0xFFFFFFFF
SEED: Final = 0x51ED270B
"""The hash of no term."""


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
def find_key(slots: Any, tag: int, keys: Any, rows: Any, i: int, places: Any) -> int:
    """The number of the key that a row has at `places`, -1 if there is none. keys: u32[numbers, places]."""
    mask = slots.shape[0] - 1
    at = tag & mask
    while slots[at].number != 0:
        if slots[at].tag == tag:
            g = np.int64(slots[at].number) - 1
            c = np.int64(0)
            while c < places.shape[0] and keys[g, c] == rows[i, places[c]]:
                c += 1
            if c == places.shape[0]:
                return g
        at = (at + 1) & mask
    return np.int64(-1)
