"""Hashes of rows and keys, the same for every table: fixed, without a random seed, so that runs repeat.

Rows are in tables of u32: `rows` is such a table, `i` a line of it, `first` its first column. 32 bits of a row's hash
are its tag (slots.py).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array

SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: multiples of it are far apart."""
_SEED: Final = 1609587929392839161
_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
"""Odd, without a pattern in their bits."""
_LOW: Final = 0xFFFFFFFF
SEED: Final = 0x51ED270B
"""The hash of no term."""


@inner
def times(h: int, factor: int) -> int:
    """h * factor modulo 2^64. Signed products are taken not to overflow: where LLVM sees that one does, it puts
    anything in its place, the same hash for all rows for instance."""
    return i64(u64(h) * u64(factor))


@inner
def row_tag(rows: Array, i: int, first: int, width: int) -> int:
    """32 bits of hash of a row."""
    h = i64(_SEED)
    for c in range(width):
        h = times(h ^ i64(rows[i, first + c]), _A)
        h ^= h >> 29
    return (h >> 32) & _LOW


@inner
def key_tag(rows: Array, i: int, first: int, key: Array, loose: Array, mask: int, subset: int) -> int:
    """32 bits of hash of a row's columns at `key`, of those of `loose` that are in `subset`, and of which loose ones it
    binds."""
    h = i64(_SEED) ^ times(mask << 8 | subset, _B)
    for c in range(key.shape[0]):
        h = times(h ^ i64(rows[i, first + key[c]]), _A)
        h ^= h >> 29
    if subset != 0:
        for c in range(loose.shape[0]):
            if subset >> c & 1:
                h = times(h ^ i64(rows[i, first + loose[c]]), _A)
                h ^= h >> 29
    return (h >> 32) & _LOW


@inner
def same_rows(a: Array, i: int, a0: int, b: Array, j: int, b0: int, width: int) -> bool:
    """Whether two rows are equal."""
    for c in range(width):  # noqa: SIM110  kernels have no generators
        if a[i, a0 + c] != b[j, b0 + c]:
            return False
    return True


@inner
def mixed(h: int, x: int) -> int:
    """The hash of some terms and one more."""
    h = times(h ^ x, _A)
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


@inner
def tag_of(h: int) -> int:
    """32 bits of a hash."""
    return (times(h, _B) >> 32) & _LOW


@inner
def mix(h: np.uint64, value: Any) -> np.uint64:
    """The hash of some values of 64 bits and one more."""
    x = h ^ u64(value)
    x = (x ^ (x >> u64(33))) * u64(0xFF51AFD7ED558CCD)
    return x ^ (x >> u64(29))
