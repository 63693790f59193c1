"""Rows of term ids → their numbers, by a hash table: open addressing, linear probing, half full at the most.

`known`: u32[n, width], the row of each number. `slots`: i32, a power of two long: 0, or 1 + a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.mixing import mix


def slots_for(rows: int) -> NDArray[np.int32]:
    """Slots for so many rows, all free."""
    return np.zeros(1 << max(2 * rows - 1, 1).bit_length(), np.int32)


@inner
def _slot(rows: Any, i: int, slots: Any, known: Any) -> int:
    """The slot of row `i`, or the free one that it would get."""
    width = rows.shape[1]
    h = np.uint64(0)
    for c in range(width):
        h = mix(h, rows[i, c])
    mask = slots.shape[0] - 1
    at = np.int64(h & np.uint64(mask))
    while slots[at] != 0:
        number = slots[at] - 1
        c = 0
        while c < width and known[number, c] == rows[i, c]:
            c += 1
        if c == width:
            break
        at = (at + 1) & mask
    return at


@kernel
def find_rows(rows: Any, slots: Any, known: Any, out: Any) -> None:
    """The number of each row, -1 where it has none. rows: u32[k, width]; out: i64[k]."""
    for i in range(rows.shape[0]):
        out[i] = slots[_slot(rows, i, slots, known)] - 1


@kernel
def enter_rows(numbers: Any, slots: Any, known: Any) -> None:
    """Let the rows of these numbers (i64[k]) be found, of equal ones the first; there is room."""
    for i in range(numbers.shape[0]):
        at = _slot(known, numbers[i], slots, known)
        if slots[at] == 0:
            slots[at] = 1 + numbers[i]
