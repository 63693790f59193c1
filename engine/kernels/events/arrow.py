"""Columns of an Arrow record batch, as the Arrow C data interface lays them out (its page of the Arrow format).

In the flow: record batch ─ `Exported` (engine/events/exported.py) ─▶ **columns at addresses** → times, facts.

A struct ArrowArray is ten words: length, nulls, offset, how many buffers and children it has, the addresses of their
tables, of the dictionary, of the function that frees it, of that function's data. The first buffer is the bits of
validity, or 0; the second one the values.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import (
    byte,
    get,
    half,
    number,
    quarter,
    short_number,
    signed_byte,
    signed_half,
    signed_quarter,
)

LENGTH, NULLS, OFFSET, BUFFER_COUNT, CHILD_COUNT, BUFFERS, CHILDREN, DICTIONARY, RELEASE, _DATA = range(10)
WORDS: Final = 10
"""Of a struct ArrowArray."""
I64, I32, I16, I8, U32, U16, U8, F64, F32 = range(9)
"""How values are stored; F64 and F32 are no integers."""
RISING, FALLING, MISSING = range(3)
"""Of a column of times: none is smaller than the one before; some are; some may be missing."""


@inner
def child_of(array: int, place: int) -> int:
    """The struct of a column of a record batch's struct."""
    return get(get(array, CHILDREN), place)


@inner
def buffer_of(column: int, place: int) -> int:
    """The address of a buffer, 0 where there is none."""
    return get(get(column, BUFFERS), place)


@inner
def dictionary_of(column: int) -> int:
    """The struct of the dictionary that a column's values are indices into."""
    return get(column, DICTIONARY)


@inner
def is_there(valid: int, row: int) -> bool:
    """Whether the bits at an address, 0 for no bits, say that there is a value."""
    return valid == 0 or (byte(valid + (row >> 3)) >> (row & 7)) & 1 == 1


@inner
def integer(stored: int, values: int, row: int) -> int:
    """A value of integers at an address."""
    if stored == I64:
        return get(values, row)
    if stored == I32:
        return signed_half(values, row)
    if stored == I16:
        return signed_quarter(values, row)
    if stored == I8:
        return signed_byte(values, row)
    if stored == U32:
        return half(values, row)
    if stored == U16:
        return quarter(values, row)
    return byte(values + row)


@inner
def real(stored: int, values: int, row: int) -> float:
    """A value of floats at an address."""
    return number(values, row) if stored == F64 else short_number(values, row)


@kernel
def copy_times(array: int, place: int, times: Array) -> int:
    """Copy a column of 64-bit integers into `times`, i64[n], n at least 1. Returns RISING, FALLING or MISSING."""
    column = child_of(array, place)
    values, first = buffer_of(column, 1), get(column, OFFSET)
    before, rising = get(values, first), i64(1)
    for row in range(len(times)):
        times[row] = get(values, first + row)
        rising &= i64(before <= times[row])
        before = times[row]
    if get(column, NULLS) != 0:
        return i64(MISSING)
    return i64(RISING if rising else FALLING)
