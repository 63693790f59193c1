"""Rows of term ids → their numbers, by a hash table (kernels/memory/slots.py).

`known`: u32[n, width], the row of each number; `slots` finds it.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.slots import slot_of_row


@kernel
def find_rows(rows: Array, slots: Array, known: Array, out: Array) -> int:
    """The number of each row, -1 where it has none; how many have none. rows: u32[k, width]; out: i64[k]."""
    missing = i64(0)
    for i in range(rows.shape[0]):
        slot = slot_of_row(slots, row_tag(rows, i, 0, rows.shape[1]), known, 0, rows, i, rows.shape[1])
        out[i] = i64(slots[slot].number) - 1 if slot >= 0 else i64(-1)
        missing += slot < 0
    return missing


@kernel
def enter_rows(numbers: Array, slots: Array, known: Array) -> None:
    """Let the rows of these numbers (i64[k]) be found, of equal ones the first; there is room."""
    for i in range(numbers.shape[0]):
        tag = row_tag(known, numbers[i], 0, known.shape[1])
        slot = slot_of_row(slots, tag, known, 0, known, numbers[i], known.shape[1])
        if slot < 0:
            slots[-1 - slot].tag, slots[-1 - slot].number = tag, numbers[i] + 1
