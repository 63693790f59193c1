"""Rows of a table → symbols, in one call: the facts about single columns, then the atoms (engine/cea/columns.py).

The columns are a table of `COLUMN` records. Those at a place of the record batch are read where Arrow has them; others
(`place` −1) have been made by Python. What a code means is a table made once for each dictionary: a record says of
which one, and the kernel returns to ask for another.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.cea.facts import symbols_of_rows
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.events.arrow import (
    F64,
    I32,
    LENGTH,
    OFFSET,
    buffer_of,
    child_of,
    dictionary_of,
    integer,
    is_there,
    real,
)
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.raw import get, number, signed_half
from oxiseq.engine.kernels.memory.slots import slot_of_row

TYPES, FACTS, NUMBERS = range(3)
"""What a column is for: the types of events; facts by code; comparisons of numbers (and the window's attribute)."""
DONE: Final = -1
_NAN: Final = 0x7FF8 << 48
"""The bits of the one that all are."""

COLUMN = np.dtype(
    [
        ("place", "i8"),
        ("use", "i8"),
        ("stored", "i8"),
        ("values", "i8"),  # the address of the values,
        ("valid", "i8"),  # and of the bits of validity (0: all are there),
        ("first", "i8"),  # in both of which the first row is this one
        ("table", "i8"),  # the address of what codes mean, the missing one first: i64 or u64[words] each; 0: not made
        ("length", "i8"),  # the dictionary that it is for: its length,
        ("offset", "i8"),  # offset
        ("memory", "i8", 3),  # and buffers
        ("low", "i8"),  # its ranges are from here
        ("high", "i8"),  # to here, this one excluded
        ("window", "i8"),  # 1: it is the window's attribute
    ],
    align=True,
)

RANGE = np.dtype(
    [("low", "i8"), ("high", "i8"), ("least", "f8"), ("most", "f8"), ("negated", "i8"), ("leaf", "i8")], align=True
)
"""A leaf is `low <= value <= high` of integers, `least <= value <= most` of floats, or the contrary."""


class Program(Arrays):
    """What is asked of the rows of one schema."""


_columns = array(Program, "columns", COLUMN)
_ranges = array(Program, "ranges", RANGE)
_gates = array(Program, "gates", np.uint64, 2)  # as in FactPlan, to the end
_any_of = array(Program, "any_of", np.uint8)
_first_atom = array(Program, "first_atom", np.int64)
_atom_of = array(Program, "atom_of", np.int64)
_masks = array(Program, "masks", np.uint64, 2)


class Room(Arrays):
    """Where rows are marked."""


_facts = array(Room, "facts", np.uint64, 2)  # u64[rows, words]: of leaves of one attribute
_type_of = array(Room, "type_of", np.int64)  # i64[rows]; -1: none of the query's
_window = array(Room, "window", np.float64)  # f64[rows], NaN: none; or empty
_symbol = array(Room, "symbol", np.uint64, 2)  # u64[rows, words of atoms]


@kernel
def mark_rows(array: int, P: Ptr[Program], R: Ptr[Room], leaves: int, count: int, whole: bool) -> int:
    """Mark `count` rows in `R`, which has room for them: where `whole` is set with their symbols. DONE, or the number
    of the column whose dictionary is new: the caller makes its table.

    array: the address of the record batch's struct.
    """
    columns = _columns(P)
    for at in range(columns.shape[0]):
        if columns[at].place >= 0:
            if _point(child_of(array, columns[at].place), columns[at]):
                return at
        elif columns[at].use != NUMBERS and columns[at].table == 0:
            return at
    facts, type_of, window, symbol = _facts(R), _type_of(R), _window(R), _symbol(R)
    words = facts.shape[1]
    for row in range(count):
        type_of[row] = -1
        for word in range(words):
            facts[row, word] = 0
    for row in range(min(count, window.shape[0])):
        window[row] = np.nan
    for at in range(columns.shape[0]):
        column = columns[at]
        if column.use == TYPES:
            for row in range(count):
                type_of[row] = get(column.table, 1 + _code(column, row))
        elif column.use == FACTS:
            for row in range(count):
                code = words * (1 + _code(column, row))
                for word in range(words):
                    facts[row, word] |= u64(get(column.table, code + word))
        elif column.stored < F64:
            _mark_integers(P, column, facts, window, count)
        else:
            _mark_reals(P, column, facts, window, count)
    if whole:
        for row in range(count):
            for word in range(symbol.shape[1]):
                symbol[row, word] = 0
        symbols_of_rows(
            facts, type_of, count, leaves, _gates(P), _any_of(P), _first_atom(P), _atom_of(P), _masks(P), symbol
        )
    return DONE


@inner
def _point(there: int, column: Any) -> bool:
    """Let a record point to a column of the batch; whether its dictionary is another."""
    column.valid, column.values, column.first = buffer_of(there, 0), buffer_of(there, 1), get(there, OFFSET)
    if column.use == NUMBERS:
        return False
    dictionary = dictionary_of(there)
    length, offset = get(dictionary, LENGTH), get(dictionary, OFFSET)
    bits, ends, text = buffer_of(dictionary, 0), buffer_of(dictionary, 1), buffer_of(dictionary, 2)
    known, memory = column.table != 0, column.memory
    if known and column.length == length and column.offset == offset:
        if memory[0] == bits and memory[1] == ends and memory[2] == text:
            return False
    column.table, column.length, column.offset = 0, length, offset
    memory[0], memory[1], memory[2] = bits, ends, text
    return True


@inner
def _code(column: Any, row: int) -> int:
    """The code of a row, -1 where it is missing."""
    at = column.first + row
    if not is_there(column.valid, at):
        return i64(-1)
    return signed_half(column.values, at) if column.stored == I32 else integer(column.stored, column.values, at)


@inner
def _mark_integers(P: Ptr[Program], column: Any, facts: Array, window: Array, count: int) -> None:
    ranges = _ranges(P)
    for row in range(count):
        at = column.first + row
        if is_there(column.valid, at):
            value = integer(column.stored, column.values, at)
            if column.window:
                window[row] = value
            for j in range(column.low, column.high):
                bit = ranges[j].leaf
                met = (i64(ranges[j].low <= value) & i64(value <= ranges[j].high)) ^ ranges[j].negated
                facts[row, bit >> 6] |= u64(met) << u64(bit & 63)


@inner
def _mark_reals(P: Ptr[Program], column: Any, facts: Array, window: Array, count: int) -> None:
    """NaN is inside nothing."""
    ranges = _ranges(P)
    for row in range(count):
        at = column.first + row
        if is_there(column.valid, at):
            value = real(column.stored, column.values, at)
            if column.window:
                window[row] = value
            for j in range(column.low, column.high):
                bit = ranges[j].leaf
                met = (i64(ranges[j].least <= value) & i64(value <= ranges[j].most)) ^ ranges[j].negated
                facts[row, bit >> 6] |= u64(met) << u64(bit & 63)


# --- numbers in a column → ids of their terms, as far as these are known (engine/cea/column_ids.py) ---


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
