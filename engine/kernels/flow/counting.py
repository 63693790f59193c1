"""Rows counted (operators.md, 3.4): each once as long as its weight is above 0 (distinct); or equal rows of a tick as
one, without memory: their weights added up, and what cancels left out (consolidate), or each once (once)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta, is_full, of_use_from
from oxiseq.engine.kernels.flow.copying import put_row
from oxiseq.engine.kernels.flow.moments import END, NO_END, time_in
from oxiseq.engine.kernels.memory.hashing import row_tag, same_rows
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.slots import (
    SLOT,
    drop_slot,
    fetch_slot,
    find_number,
    put_slot,
    slot_of_row,
    slots_for,
)

# --- distinct ----------------------------------------------------------------------------------------

WEIGHT: Final = 0
"""Word of a counted row."""
TAG, STATE, NEXT, ROW = 2, 3, 4, 6
"""Its halves (5 is unused): hash; if it is emitted, and touched; the next one touched, or free; its first column."""

FREED, UNTOLD, TOLD, TOUCHED = -1, 0, 1, 2
"""States. TOUCHED is a bit: the row's weight has changed in this tick."""

(
    LEAST,  # rows below which the table does not shrink
    TOP,  # records ever used
    FREE,  # the first free one below; -1: none
    COUNT,  # rows that are there
    PLACE,  # row of the delta that is taken in next
    CHANGED,  # the first row that the tick has touched; -1: none
    TELLING,  # 1: the tick is over, its changes are being emitted
    SPARSE,  # 1: the table is to shrink
    CLOCK,  # address of the clock that rows are kept by (buffers.py); 0: they are kept until they go
    BEGINS,  # column of the time at which a row begins
    LIMIT,  # for how long it is kept
    KEPT,  # rows that the last look has left
    SCALARS,
) = range(13)

_SPARSE: Final = 16
"""A table shrinks when it has so many times the room that it needs."""
_FAR: Final = 1 << 12
"""Rows from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many rows."""


class Counted(Arrays):
    """Rows and their weights."""


_scalars = array(Counted, "scalars", np.int64, rows=SCALARS)
_words = array(Counted, "words", np.int64, 2, rows="rows", columns="words", lined=True)
_halves = array(Counted, "halves", np.uint32, 2, of="words")
_states = array(Counted, "states", np.int32, 2, of="words")
_slots = array(Counted, "slots", SLOT, rows="rows", slots=slots_for)  # SLOT → record


_SLOTS: Final = WORDS * Counted._fields.index("slots")


@kernel
def distinct(S: Ptr[Counted], D: Delta, out: Delta) -> int:
    """Take in a delta D; write for each tick the rows that have come to be there and those that have ceased to."""
    scalars, at, weight, rows = _scalars(S), buffers.at(D), buffers.weight(D), buffers.rows(D)
    count, width = buffers.count(D)[0], rows.shape[1]
    room = _words(S).shape[0]
    if (
        scalars[PLACE] == 0
        and scalars[TELLING] == 0
        and is_full(scalars[CLOCK], scalars[COUNT], scalars[KEPT], scalars[LIMIT])
    ):
        _let_go(S)
    if scalars[PLACE] == 0 and room > scalars[LEAST] and room > _SPARSE * (scalars[COUNT] + count):
        scalars[SPARSE] = 1
        return NEED_ROOM
    far = scalars[COUNT] > _FAR
    while scalars[PLACE] < count or scalars[TELLING]:
        i = scalars[PLACE]
        if scalars[TELLING] == 0:
            if scalars[FREE] < 0 and scalars[TOP] == room:
                return NEED_ROOM
            if far and i + _AHEAD < count:
                fetch_slot(S, _SLOTS, row_tag(rows, i + _AHEAD, 0, width))
            _count(S, rows, i, weight[i])
            i += 1
            scalars[PLACE] = i
            scalars[TELLING] = i == count or at[i] != at[i - 1]
        if scalars[TELLING]:
            if not _tell(S, at[i - 1], width, out):
                return NEED_OUT
            scalars[TELLING] = 0
    scalars[PLACE] = 0
    return DONE


@inner
def _count(S: Ptr[Counted], rows: Array, i: int, weight: int) -> None:
    """Row `i` of a table comes or goes so many times; there is room."""
    scalars, words, states = _scalars(S), _words(S), _states(S)
    e = _record(S, rows, i)
    words[e, WEIGHT] += weight
    state = i64(states[e, STATE])
    if state & TOUCHED == 0:
        states[e, STATE] = state | TOUCHED
        states[e, NEXT] = scalars[CHANGED]
        scalars[CHANGED] = e


@inner
def _record(S: Ptr[Counted], rows: Array, i: int) -> int:
    """The record of a row, which may be new."""
    scalars, words, halves, states, slots = _scalars(S), _words(S), _halves(S), _states(S), _slots(S)
    width = rows.shape[1]
    tag = row_tag(rows, i, 0, width)
    slot = slot_of_row(slots, tag, halves, ROW, rows, i, width)
    if slot >= 0:
        return i64(slots[slot].number) - 1
    e = scalars[FREE]
    if e >= 0:
        scalars[FREE] = i64(states[e, NEXT])
    else:
        e = scalars[TOP]
        scalars[TOP] = e + 1
    scalars[COUNT] += 1
    slots[-1 - slot].tag, slots[-1 - slot].number = tag, e + 1
    words[e, WEIGHT] = 0
    halves[e, TAG] = tag
    states[e, STATE] = UNTOLD
    for c in range(width):
        halves[e, ROW + c] = rows[i, c]
    return e


@inner
def _tell(S: Ptr[Counted], t: int, width: int, out: Delta) -> bool:
    """Write what the tick t has changed. False: the output is full."""
    scalars, words, halves, states = _scalars(S), _words(S), _halves(S), _states(S)
    e = scalars[CHANGED]
    while e >= 0:
        now = i64(words[e, WEIGHT] > 0)
        change = now - (states[e, STATE] & TOLD)
        if change != 0 and not put_row(out, t, change, halves, e, ROW, width):
            scalars[CHANGED] = e
            return False
        following = i64(states[e, NEXT])
        states[e, STATE] = now
        if words[e, WEIGHT] == 0:
            _forget(S, e)
        e = following
    scalars[CHANGED] = -1
    return True


@inner
def _forget(S: Ptr[Counted], e: int) -> None:
    """A row is not there any more; its record will be used again."""
    scalars, states, slots = _scalars(S), _states(S), _slots(S)
    drop_slot(slots, find_number(slots, i64(_halves(S)[e, TAG]), e))
    states[e, STATE] = FREED
    states[e, NEXT] = scalars[FREE]
    scalars[FREE] = e
    scalars[COUNT] -= 1


@kernel
def forget(S: Ptr[Counted], now: int) -> None:
    """Between batches: rows that are no longer of use leave, and nothing is emitted: if there may be many, or now."""
    scalars = _scalars(S)
    if now or is_full(scalars[CLOCK], scalars[COUNT], scalars[KEPT], scalars[LIMIT]):
        _let_go(S)


@inner
def _let_go(S: Ptr[Counted]) -> None:
    scalars, halves, states = _scalars(S), _halves(S), _states(S)
    before, place = of_use_from(scalars[CLOCK], scalars[LIMIT]), ROW + scalars[BEGINS]
    for e in range(scalars[TOP]):
        if states[e, STATE] != FREED and time_in(halves, e, place) < before:
            _forget(S, e)
    if scalars[COUNT] == 0:  # begin with the first record again
        scalars[TOP], scalars[FREE] = 0, -1
    scalars[KEPT] = scalars[COUNT]


@kernel
def fill_slots(S: Ptr[Counted]) -> None:
    """Fill an empty table from the records."""
    halves, states, slots = _halves(S), _states(S), _slots(S)
    for e in range(_scalars(S)[TOP]):
        if states[e, STATE] != FREED:
            put_slot(slots, i64(halves[e, TAG]), e)


# --- equal rows of a tick --------------------------------------------------------------------------


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
        wanted = places[NUMBERED] == EVERY or time_in(rows, i, END) != NO_END
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
