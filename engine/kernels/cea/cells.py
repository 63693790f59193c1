"""Numbers in a column of a record batch → ids of their terms, as far as these are known (engine/cea/column_ids.py)."""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.events.arrow import F64, OFFSET, buffer_of, child_of, integer, is_there
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import get, number
from oxiseq.engine.kernels.memory.slots import slot_of_row

_NAN: Final = 0x7FF8 << 48
"""The bits of the one that all are."""


@kernel
def find_cells(
    array: int, place: int, stored: int, slots: Array, known: Array, ids: Array, key: Array, values: Array, at: int
) -> int:
    """Write the ids of a column's cells to `values[:, at]`, of i64[rows, *], 0 for a missing one; how many are not
    known.

    array: the address of the record batch's struct; stored: how the column's integers or doubles are. slots, known,
    ids: from a number's bits, u32[*, 2], to its id; key: u32[1, 2], scratch.
    """
    column = child_of(array, place)
    valid, cells, first = buffer_of(column, 0), buffer_of(column, 1), get(column, OFFSET)
    missing = i64(0)
    for row in range(values.shape[0]):
        values[row, at] = 0
        if is_there(valid, first + row):
            bits = _bits(stored, cells, first + row)
            key[0, 0], key[0, 1] = bits & 0xFFFFFFFF, (bits >> 32) & 0xFFFFFFFF
            slot = slot_of_row(slots, row_tag(key, 0, 0, 2), known, 0, key, 0, 2)
            if slot >= 0:
                values[row, at] = ids[i64(slots[slot].number) - 1]
            else:
                missing += 1
    return missing


@inner
def _bits(stored: int, cells: int, row: int) -> int:
    """Of an integer in 64 bits, or of a double."""
    if stored != F64:
        return integer(stored, cells, row)
    value = number(cells, row)
    return get(cells, row) if value == value else i64(_NAN)
