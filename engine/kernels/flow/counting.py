"""Rows counted: each once as long as its weight is above 0 (distinct; operators.md, 3.4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.clocks import is_full, of_use_from
from oxiseq.engine.kernels.flow.copying import put_row
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.memory.hashing import row_tag
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
    CLOCK,  # address of the clock that rows are kept by (clocks.py); 0: they are kept until they go
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
