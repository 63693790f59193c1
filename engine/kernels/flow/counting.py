"""Rows counted: each once as long as its weight is above 0 (distinct), and what cancels within a tick left out
(consolidate; operators.md, 3.4)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.flow.hashing import row_tag, same_rows
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.flow.slots import SLOT, drop_slot, fetch_slot, find_number, put_slot
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, view_of

# --- distinct ----------------------------------------------------------------------------------------

WEIGHT: Final = 0
"""Word of a counted row."""
TAG, STATE, NEXT, ROW = 2, 3, 4, 6
"""Its halves (5 is unused): hash; whether it is told, and touched; the next one touched, or free; its first column."""

FREED, UNTOLD, TOLD, TOUCHED = -1, 0, 1, 2
"""States. TOUCHED is a bit: the row's weight has changed in this tick."""

(
    LEAST,  # rows below which the table does not shrink
    TOP,  # records ever used
    FREE,  # the first free one below; -1: none
    COUNT,  # rows that are there
    PLACE,  # row of the delta that is taken in next
    CHANGED,  # the first row that the tick has touched; -1: none
    TELLING,  # 1: the tick is over, what it has changed is being told
    SPARSE,  # 1: the table is to shrink
    SCALARS,
) = range(9)

_SPARSE: Final = 16
"""A table shrinks when it has so many times the room that it needs."""
_FAR: Final = 1 << 12
"""Rows from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many rows."""


class Counted(NamedTuple):
    """Rows and their weights. `words`, `halves` and `states` are the same memory, read as i64, u32 and i32."""

    scalars: Array
    words: Array
    halves: Array
    states: Array
    slots: Array
    """SLOT → record."""


_SLOTS: Final = WORDS * Counted._fields.index("slots")

_scalars: Any = view_of(Counted, "scalars", np.int64)
_words: Any = view_of(Counted, "words", np.int64, 2)
_halves: Any = view_of(Counted, "halves", np.uint32, 2)
_states: Any = view_of(Counted, "states", np.int32, 2)
_slots: Any = view_of(Counted, "slots", SLOT)


@kernel
def distinct(S: int, D: int, out: int) -> int:
    """Take in a delta D; write for each tick the rows that have come to be there and those that have ceased to."""
    scalars, at, weight, rows = _scalars(S), buffers.at(D), buffers.weight(D), buffers.rows(D)
    count, width = buffers.count(D)[0], rows.shape[1]
    room = _words(S).shape[0]
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
def _count(S: Any, rows: Any, i: int, weight: int) -> None:
    """Row `i` of a table comes or goes so many times; there is room."""
    scalars, words, states = _scalars(S), _words(S), _states(S)
    e = _record(S, rows, i)
    words[e, WEIGHT] += weight
    state = np.int64(states[e, STATE])
    if state & TOUCHED == 0:
        states[e, STATE] = state | TOUCHED
        states[e, NEXT] = scalars[CHANGED]
        scalars[CHANGED] = e


@inner
def _record(S: Any, rows: Any, i: int) -> int:
    """The record of a row, which may be new."""
    scalars, words, halves, states, slots = _scalars(S), _words(S), _halves(S), _states(S), _slots(S)
    width = rows.shape[1]
    tag, last = row_tag(rows, i, 0, width), slots.shape[0] - 1
    slot = tag & last
    while slots[slot].number != 0:
        if slots[slot].tag == tag and same_rows(halves, np.int64(slots[slot].number) - 1, ROW, rows, i, 0, width):
            return np.int64(slots[slot].number) - 1
        slot = (slot + 1) & last
    e = scalars[FREE]
    if e >= 0:
        scalars[FREE] = np.int64(states[e, NEXT])
    else:
        e = scalars[TOP]
        scalars[TOP] = e + 1
    scalars[COUNT] += 1
    slots[slot].tag, slots[slot].number = tag, e + 1
    words[e, WEIGHT] = 0
    halves[e, TAG] = tag
    states[e, STATE] = UNTOLD
    for c in range(width):
        halves[e, ROW + c] = rows[i, c]
    return e


@inner
def _tell(S: Any, t: int, width: int, out: Any) -> bool:
    """Write what the tick t has changed. False: the output is full."""
    scalars, words, halves, states = _scalars(S), _words(S), _halves(S), _states(S)
    at, weight, rows, top = buffers.at(out), buffers.weight(out), buffers.rows(out), buffers.count(out)
    e = scalars[CHANGED]
    while e >= 0:
        now, n = np.int64(words[e, WEIGHT] > 0), top[0]
        change = now - (states[e, STATE] & TOLD)
        if change != 0:
            if n == at.shape[0]:
                scalars[CHANGED] = e
                return False
            at[n], weight[n] = t, change
            for c in range(width):
                rows[n, c] = halves[e, ROW + c]
            top[0] = n + 1
        following = np.int64(states[e, NEXT])
        states[e, STATE] = now
        if words[e, WEIGHT] == 0:
            _forget(S, e)
        e = following
    scalars[CHANGED] = -1
    return True


@inner
def _forget(S: Any, e: int) -> None:
    """A row is not there any more; its record will be used again."""
    scalars, states, slots = _scalars(S), _states(S), _slots(S)
    drop_slot(slots, find_number(slots, np.int64(_halves(S)[e, TAG]), e))
    states[e, STATE] = FREED
    states[e, NEXT] = scalars[FREE]
    scalars[FREE] = e
    scalars[COUNT] -= 1


@kernel
def forget(S: int, place: int, before: int) -> None:
    """Rows whose time at a place lies before a time leave, and nobody is told. Between batches."""
    halves, states = _halves(S), _states(S)
    for e in range(_scalars(S)[TOP]):
        if states[e, STATE] != FREED and time_in(halves, e, ROW + place) < before:
            _forget(S, e)
    if _scalars(S)[COUNT] == 0:  # begin with the first record again
        _scalars(S)[TOP], _scalars(S)[FREE] = 0, -1


@kernel
def fill_slots(S: int) -> None:
    """Fill an empty table from the records."""
    halves, states, slots = _halves(S), _states(S), _slots(S)
    for e in range(_scalars(S)[TOP]):
        if states[e, STATE] != FREED:
            put_slot(slots, np.int64(halves[e, TAG]), e)


# --- consolidate -------------------------------------------------------------------------------------

(
    READ_AT,  # row of the delta that is taken in next
    FIRST,  # row of the output with which the tick begins; -1: no tick is in work
    LARGE,  # 1: the tick has so many rows that equal ones are found by hash
    SLOTS_WANTED,
    PLACES,
) = range(5)

_FEW: Final = 8
"""Rows of a tick that are compared one by one."""
_LEAST_SLOTS: Final = 1 << 10
"""Slots below which the table does not shrink."""


class Cancelling(NamedTuple):
    """What a tick's rows are found by: empty between ticks."""

    places: Array
    slots: Array
    """SLOT → row of the output, counted from the tick's first."""


_places: Any = view_of(Cancelling, "places", np.int64)
_found: Any = view_of(Cancelling, "slots", SLOT)


@kernel
def consolidate(S: int, D: int, out: int) -> int:
    """Write the delta D with the weights of equal rows of a tick added up; of what adds up to 0, nothing.

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
            _drop_zeros(S, out)
            places[FIRST] = -1
    places[READ_AT] = 0
    return DONE


@inner
def _add(S: Any, D: Any, i: int, out: Any) -> None:
    """Add row `i` of a delta to what its tick has written; there is room."""
    places, rows, written = _places(S), buffers.rows(D), buffers.rows(out)
    weight, top = buffers.weight(out), buffers.count(out)
    first, n, width = places[FIRST], top[0], rows.shape[1]
    if places[LARGE]:
        slots = _found(S)
        tag, last = row_tag(rows, i, 0, width), slots.shape[0] - 1
        slot = tag & last
        while slots[slot].number != 0:
            e = first + np.int64(slots[slot].number) - 1
            if slots[slot].tag == tag and same_rows(written, e, 0, rows, i, 0, width):
                weight[e] += buffers.weight(D)[i]
                return
            slot = (slot + 1) & last
        slots[slot].tag, slots[slot].number = tag, n - first + 1
    else:
        for e in range(first, n):
            if same_rows(written, e, 0, rows, i, 0, width):
                weight[e] += buffers.weight(D)[i]
                return
    buffers.at(out)[n], weight[n] = buffers.at(D)[i], buffers.weight(D)[i]
    for c in range(width):
        written[n, c] = rows[i, c]
    top[0] = n + 1


@inner
def _drop_zeros(S: Any, out: Any) -> None:
    """The tick is over: empty the table, and close the gaps that rows of weight 0 leave."""
    places, at, weight, rows = _places(S), buffers.at(out), buffers.weight(out), buffers.rows(out)
    top, width = buffers.count(out), rows.shape[1]
    first, n = places[FIRST], top[0]
    if places[LARGE]:
        for e in range(first, n):
            _empty_run(S, row_tag(rows, e, 0, width))
    kept = first
    for e in range(first, n):
        if weight[e] == 0:
            continue
        if kept < e:
            at[kept], weight[kept] = at[e], weight[e]
            for c in range(width):
                rows[kept, c] = rows[e, c]
        kept += 1
    top[0] = kept


@inner
def _empty_run(S: Any, tag: int) -> None:
    """Empty the slots from where a tag belongs to the next empty one. Done for all tags of a table this empties it: no
    slot between a tag's home and its place is emptied without those behind it."""
    slots = _found(S)
    last = slots.shape[0] - 1
    slot = tag & last
    while slots[slot].number != 0:
        slots[slot].number = 0
        slot = (slot + 1) & last


@kernel
def fill_found(S: int, out: int) -> None:
    """Fill an empty table from what the tick in work has written."""
    places, rows = _places(S), buffers.rows(out)
    if places[FIRST] < 0 or places[LARGE] == 0:
        return
    for e in range(places[FIRST], buffers.count(out)[0]):
        put_slot(_found(S), row_tag(rows, e, 0, rows.shape[1]), e - places[FIRST])
