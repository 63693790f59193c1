"""SUPPRESS over rows in the order in which they are decided: which are emitted (semantics.md 2.6c)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.pointers import Array

NEVER: Final = np.iinfo(np.int64).min
"""When a key has had its last emitted row that has had none."""


@kernel
def suppress(
    at: Array, key: Array, part: Array, interval: int, limit: int, last: Array, dropped: Array, had: Array, kept: Array
) -> int:
    """How many rows are emitted. at i64[n] µs, ascending, key, part i64[n]: when each row is decided, the number of its
    key, of its share in LIMIT. last, dropped i64[keys]: when each key's last row was emitted, how many have been
    dropped since; both go on. had i64[parts]: rows emitted of each share. kept i64[n, 2]: the numbers of emitted rows,
    and how many were dropped before each."""
    n = 0
    for i in range(at.shape[0]):
        k = key[i]
        if last[k] != NEVER and at[i] - last[k] < interval:
            dropped[k] += 1
        elif had[part[i]] < limit:
            kept[n, 0], kept[n, 1] = i, dropped[k]
            last[k], dropped[k] = at[i], 0
            had[part[i]] += 1
            n += 1
    return n
