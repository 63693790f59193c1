"""Bucket keys that Spark's hash partitioning deals out evenly.

Spark puts a row into partition `pmod(murmur3(key, 42), partitions)`. Eight keys 0 to 7 over two partitions may well lie
five to three; so keys are chosen by their hashes. They do not depend on the number of partitions, which may be another
one when a query starts again from its checkpoint.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

_EVEN: Final = 2**6 * 3**2 * 5 * 7
"""Keys are even over every number of partitions that divides this: 1 to 10, 12, 14, 15, 16, 18, 20, 24... 64..."""
_AT_A_TIME: Final = 1 << 18
MOST: Final = 4096
"""Buckets, at most."""


def spark_hash(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spark's hash of an int column, signed (Murmur3_x86_32 of four bytes, seed 42)."""
    k = _times(_rotated(_times(values.astype(np.uint64) & _MASK, 0xCC9E2D51), 15), 0x1B873593)
    h = (_times(_rotated(k ^ np.uint64(42), 13), 5) + np.uint64(0xE6546B64)) & _MASK
    h ^= np.uint64(4)
    h = _times(h ^ h >> np.uint64(16), 0x85EBCA6B)
    h = _times(h ^ h >> np.uint64(13), 0xC2B2AE35)
    h ^= h >> np.uint64(16)
    return h.astype(np.uint32).astype(np.int32).astype(np.int64)


_MASK: Final = np.uint64(0xFFFF_FFFF)


def _times(x: NDArray[np.uint64], factor: int) -> NDArray[np.uint64]:
    product: NDArray[np.uint64] = x * np.uint64(factor) & _MASK
    return product


def _rotated(x: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    turned: NDArray[np.uint64] = (x << np.uint64(bits) | x >> np.uint64(32 - bits)) & _MASK
    return turned


@lru_cache
def even_keys(buckets: int) -> tuple[int, ...]:
    """A key for each bucket, all different: bucket i's lies in partition i modulo the number of partitions."""
    found: dict[int, int] = {}
    start = 0
    while len(found) < buckets:
        keys = np.arange(start, start + _AT_A_TIME)
        places = spark_hash(keys) % _EVEN
        for place, first in zip(*np.unique(places, return_index=True), strict=True):
            if place < buckets:
                found.setdefault(int(place), start + int(first))
        start += _AT_A_TIME
    return tuple(found[bucket] for bucket in range(buckets))
