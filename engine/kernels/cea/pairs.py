"""Pairs of numbers ↔ 0, 1, 2..., by a table with open addressing."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel


@inner
def _place(key: int, slots: int) -> int:
    mixed = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    return np.int64(mixed & np.uint64(slots - 1))


@kernel
def number_pairs(a: Any, b: Any, slots: Any, keys: Any, count: Any, start: int, out: Any) -> int:
    """Number the pairs (a[i], b[i]) from `start` on; -1 where one is negative. Returns how many are done.

    a, b: i64[n], below 2^31. slots: i32, a power of two, twice as many as keys: 0, or 1 + a number. keys: i64, the pair
    of each number. count: i64[1], the numbers given; when there is no key left for a new one the kernel returns.
    """
    for i in range(start, len(a)):
        if a[i] < 0 or b[i] < 0:
            out[i] = -1
            continue
        key = (a[i] << 32) | b[i]
        at = _place(key, len(slots))
        while slots[at] != 0 and keys[slots[at] - 1] != key:
            at = (at + 1) & (len(slots) - 1)
        if slots[at] == 0:
            if count[0] == len(keys):
                return i
            keys[count[0]] = key
            count[0] += 1
            slots[at] = count[0]
        out[i] = slots[at] - 1
    return len(a)


@kernel
def place_again(slots: Any, keys: Any, count: int) -> None:
    """Fill empty slots with the first `count` keys."""
    for number in range(count):
        at = _place(keys[number], len(slots))
        while slots[at] != 0:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = number + 1
