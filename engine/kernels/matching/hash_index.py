"""A hash index over distinct 64-bit keys: open addressing, linear probing, at most half full.

Where it stands: the join with KB answers (matching/enrich.py) finds a row's key here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel


@inner
def _place(key: int, mask: int) -> int:
    h = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h ^ (h >> np.uint64(32))) & np.uint64(mask))


@kernel
def build(keys: Any) -> Any:
    """The table of distinct keys (u64[n]): i64, the number of a key or −1."""
    size = 8
    while size < 2 * keys.shape[0]:
        size *= 2
    table = np.full(size, -1, np.int64)
    for number in range(keys.shape[0]):
        at = _place(keys[number], size - 1)
        while table[at] >= 0:
            at = (at + 1) & (size - 1)
        table[at] = number
    return table


@kernel
def find(table: Any, keys: Any, wanted: Any) -> Any:
    """The number of each wanted key (u64[k]), −1 where there is none: i64[k]."""
    found = np.empty(wanted.shape[0], np.int64)
    mask = table.shape[0] - 1
    for i in range(wanted.shape[0]):
        at = _place(wanted[i], mask)
        number = table[at]
        while number >= 0 and keys[number] != wanted[i]:
            at = (at + 1) & mask
            number = table[at]
        found[i] = number
    return found
