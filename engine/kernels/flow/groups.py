"""The memory of a Group: records, numbered scalars, views, and the hash table that finds a group by its key.

A group is a row of `cells`, i64 words:

    weight | state | key ... | result emitted, by sum ... | state of its values, by column that sums are over ...

An accumulator for doubles and floats is a row of `wides`, made when a group sees its first.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import SLOT, drop_slot, find_number, put_slot, slots_for

# --- scalars ----------------------------------------------------------------------------------------

(
    TOP,  # rows of cells ever used
    FREE,  # first free one below, -1: none
    LIVE,  # groups
    WIDE_TOP,  # rows of wides ever used; row 0 is scratch
    WIDE_FREE,  # first free one below, 0: none
    WIDE_LIVE,
    ROW,  # of the input, that is taken next
    TICK,  # of the groups that are touched
    TOUCHED,  # how many
    TELLING,  # 0 while rows are taken, 1 while groups are emitted
    GROUP,  # which of those touched is emitted
    SUM,  # whose result is made next
    ANSWER,  # of the sum that Python computed; -1: none yet
    STRANGE_ROWS,  # of the batch: with numbers that Python adds up
    WANTED,  # what there is no room for
    SCALARS,
) = range(16)

FOR_GROUPS, FOR_WIDES, FOR_TOUCHED = range(3)
"""WANTED."""

# --- cells ------------------------------------------------------------------------------------------

WEIGHT, STATE, KEY = range(3)
"""Words of a group; its key's are followed by its results, those by its values. `state` of a free row is -1, and its
`weight` the next free row."""
TOUCHED_BIT, TOLD_BIT = 1, 2

(
    BOUND,  # how many values there are
    ODD,  # how often there is none, or one that is no number
    DECIMALS,  # of the values
    STRANGE,  # integers and decimals that have more than 64 bits or 15 digits behind the dot: Python adds them up
    INT0,  # sum of the integers, 128 bits in two's complement
    INT1,
    DEC0,  # sum of the decimals in units of 10^-18, 192 bits
    DEC1,
    DEC2,
    WIDE,  # its row of `wides`, 0: none
    VALUE_WORDS,
) = range(11)

# --- wides ------------------------------------------------------------------------------------------

FLOATS, DOUBLES, NANS, INFINITE, MINUS_INFINITE, FIRST = range(6)
"""Words of an accumulator: how many values of each kind, then the sum in units of 2^-1074, in two's complement."""
WORDS: Final = 34
"""Of the sum: 2^63 of the largest double."""
END: Final = FIRST + WORDS
WIDE_WORDS: Final = 40

# --- the plan ---------------------------------------------------------------------------------------

VALUE = np.dtype([("place", "i4"), ("numbers", "i4")], align=True)
"""A column that sums are over; whether its numbers are wanted, or only how many values there are."""

SUMMED = np.dtype([("what", "i4"), ("value", "i4")], align=True)
ROWS, VALUES, TOTAL, MEAN, ASKED = range(5)
"""What a sum is: the number of rows, of bound values, the sum, the mean, something that Python makes."""


class GroupMemory(Arrays):
    """What `M` points to."""


scalars = array(GroupMemory, "scalars", np.int64, rows=SCALARS)
cells = array(GroupMemory, "cells", np.int64, 2, rows="groups", columns="words")
slots = array(GroupMemory, "slots", SLOT, rows="groups", slots=slots_for)  # rows of cells by the hash of their keys
touched = array(GroupMemory, "touched", np.int64, rows="touched")  # the groups that rows of this tick are of
wides = array(GroupMemory, "wides", np.int64, 2, rows="wides", columns=WIDE_WORDS)
key = array(GroupMemory, "key", np.int64)  # columns
values = array(GroupMemory, "values", VALUE)
sums = array(GroupMemory, "sums", SUMMED)
fresh = array(GroupMemory, "fresh", np.int64, rows="sums")  # i64 by sum: results of the group that is emitted
array(GroupMemory, "scratch", np.uint8, rows="scratch")  # for texts


@inner
def found_group(M: Ptr[GroupMemory], rows: Array, row: int) -> int:
    """The group of a row, which is made if there is none; there is room."""
    places, group, table = key(M), cells(M), slots(M)
    width = places.shape[0]
    h = key_tag(rows, row, 0, places, places, 0, 0)
    mask = table.shape[0] - 1
    at = h & mask
    while table[at].number != 0:
        if table[at].tag == h:
            e, same = i64(table[at].number) - 1, True
            for i in range(width):
                if group[e, KEY + i] != rows[row, places[i]]:
                    same = False
                    break
            if same:
                return e
        at = (at + 1) & mask
    e = _fresh_group(M)
    for i in range(width):
        group[e, KEY + i] = i64(rows[row, places[i]])
    table[at].tag = h
    table[at].number = e + 1
    return e


@inner
def _fresh_group(M: Ptr[GroupMemory]) -> int:
    known, group = scalars(M), cells(M)
    e = known[FREE]
    if e >= 0:
        known[FREE] = group[e, WEIGHT]
    else:
        e = known[TOP]
        known[TOP] += 1
    known[LIVE] += 1
    for i in range(group.shape[1]):
        group[e, i] = 0
    return e


@inner
def drop_group(M: Ptr[GroupMemory], e: int) -> None:
    """Forget a group."""
    known, group, table = scalars(M), cells(M), slots(M)
    drop_slot(table, find_number(table, row_tag(group, e, KEY, key(M).shape[0]), e))
    for k in range(KEY, group.shape[1]):
        group[e, k] = 0
    group[e, WEIGHT], group[e, STATE] = known[FREE], -1
    known[FREE] = e
    known[LIVE] -= 1


@kernel
def fill_slots(M: Ptr[GroupMemory]) -> None:
    """Fill an empty table from the groups."""
    group, table = cells(M), slots(M)
    for e in range(scalars(M)[TOP]):
        if group[e, STATE] >= 0:
            put_slot(table, row_tag(group, e, KEY, key(M).shape[0]), e)
