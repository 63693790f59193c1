"""Equal rows of a tick as one: their weights added up, and what cancels left out (consolidate), or each once (once;
operators.md, 3.4). Nothing is kept from tick to tick."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.memory.hashing import row_tag, same_rows
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import SLOT, put_slot, slots_for

(
    READ_AT,  # row of the delta that is taken in next
    FIRST,  # row of the output with which the tick begins; -1: no tick is in work
    LARGE,  # 1: the tick has so many rows that equal ones are found by hash
    BASE,  # number in the table of the tick's first row: what is lower is of earlier ticks, and no longer there
    FILLED,  # 1: the table holds something
    SLOTS_WANTED,
    ONCE,  # 1: rows that come are written once, with weight 1
    NUMBERED,  # TIMED, EVERY: two columns behind each row number it, through all ticks, if it has a time, or anyway
    PLACES,
) = range(9)

TIMED, EVERY = 1, 2
NUMBER_BITS: Final = 24
"""Of a row's number: its place within the tick, below the tick."""
_END: Final = 2
"""Column of the time at which an interval ends."""
_NO_END: Final = -(1 << 62)
_SPARSE: Final = 16
"""A table shrinks when it has so many times the room that it needs."""
_FEW: Final = 8
"""Rows of a tick that are compared one by one."""
_LEAST_SLOTS: Final = 1 << 10
"""Slots below which the table does not shrink."""


class Cancelling(Arrays):
    """What a tick's rows are found by: empty between batches."""


_places = array(Cancelling, "places", np.int64, rows=PLACES, fill={FIRST: -1})
_found = array(Cancelling, "slots", SLOT, rows="found", slots=slots_for)
"""SLOT → row of the output, counted from BASE for the tick's first."""


@kernel
def consolidate(S: Ptr[Cancelling], D: Delta, out: Delta) -> int:
    """Write the delta D with equal rows of a tick as one: with their weights added up, of what adds up to 0 nothing.
    Or, where rows only come, each once.

    The tick's rows are written at once, and found there."""
    places, slots, at, top = _places(S), _found(S), buffers.at(D), buffers.count(out)
    count, room = buffers.count(D)[0], buffers.at(out).shape[0]
    if slots.shape[0] > _LEAST_SLOTS and slots.shape[0] > _SPARSE * count and places[FIRST] < 0:
        places[SLOTS_WANTED] = 2 * count
        return NEED_ROOM
    while places[READ_AT] < count:
        i = places[READ_AT]
        if places[FIRST] < 0:
            places[FIRST] = top[0]
            places[LARGE] = i + _FEW < count and at[i + _FEW] == at[i]
        if top[0] == room:
            return NEED_OUT
        if places[LARGE] and 2 * (top[0] - places[FIRST] + 1) > slots.shape[0]:
            places[SLOTS_WANTED] = 2 * slots.shape[0]
            return NEED_ROOM
        _add(S, D, i, out)
        i += 1
        places[READ_AT] = i
        if i == count or at[i] != at[i - 1]:
            places[BASE] += top[0] - places[FIRST]
            if places[ONCE] == 0:
                _drop_zeros(places[FIRST], out)
            places[FIRST] = -1
    places[READ_AT] = places[BASE] = 0
    if places[FILLED]:
        for slot in range(slots.shape[0]):
            slots[slot].number = 0
        places[FILLED] = 0
    return DONE


@inner
def _add(S: Ptr[Cancelling], D: Delta, i: int, out: Delta) -> None:
    """Add row `i` of a delta to what its tick has written; there is room."""
    places, rows, written, weight = _places(S), buffers.rows(D), buffers.rows(out), buffers.weight(out)
    width = rows.shape[1]
    e = _written(S, rows, i, out)
    if e >= 0:
        if places[ONCE] == 0:
            weight[e] += buffers.weight(D)[i]
        return
    n, t = buffers.count(out)[0], buffers.at(D)[i]
    buffers.at(out)[n] = t
    weight[n] = buffers.weight(D)[i] if places[ONCE] == 0 else i64(1)
    for c in range(width):
        written[n, c] = rows[i, c]
    if places[NUMBERED]:
        wanted = places[NUMBERED] == EVERY or time_in(rows, i, _END) != _NO_END
        number = t << NUMBER_BITS | (n - places[FIRST]) if wanted else i64(0)
        written[n, width], written[n, width + 1] = number >> 32, number & 0xFFFFFFFF
    buffers.count(out)[0] = n + 1


@inner
def _written(S: Ptr[Cancelling], rows: Array, i: int, out: Delta) -> int:
    """The row of the output, of this tick, that is equal to row `i` of a table; -1: there is none, and the next one is
    entered in its place."""
    places, made, n, width = _places(S), buffers.rows(out), buffers.count(out)[0], rows.shape[1]
    first = places[FIRST]
    if places[LARGE] == 0:
        for e in range(first, n):
            if same_rows(made, e, 0, rows, i, 0, width):
                return e
        return -1
    slots, base = _found(S), places[BASE]
    tag, last = row_tag(rows, i, 0, width), slots.shape[0] - 1
    slot = tag & last
    while slots[slot].number > base:
        e = first + i64(slots[slot].number) - 1 - base
        if slots[slot].tag == tag and same_rows(made, e, 0, rows, i, 0, width):
            return e
        slot = (slot + 1) & last
    slots[slot].tag, slots[slot].number = tag, base + n - first + 1
    places[FILLED] = 1
    return -1


@inner
def _drop_zeros(first: int, out: Delta) -> None:
    """The tick is over: close the gaps that rows of weight 0 leave."""
    at, weight, rows, top = buffers.at(out), buffers.weight(out), buffers.rows(out), buffers.count(out)
    kept = first
    for e in range(first, top[0]):
        if weight[e] == 0:
            continue
        if kept < e:
            at[kept], weight[kept] = at[e], weight[e]
            for c in range(rows.shape[1]):
                rows[kept, c] = rows[e, c]
        kept += 1
    top[0] = kept


@kernel
def fill_found(S: Ptr[Cancelling], D: Delta, out: Delta) -> None:
    """Fill an empty table from what the tick in work has written."""
    places, rows, width = _places(S), buffers.rows(out), buffers.rows(D).shape[1]
    if places[FIRST] < 0 or places[LARGE] == 0:
        return
    for e in range(places[FIRST], buffers.count(out)[0]):
        put_slot(_found(S), row_tag(rows, e, 0, width), places[BASE] + e - places[FIRST])
