"""Pairs of rows of which the one ends before the other starts (operators.md, 3.1).

It keeps rows in timelines: first rows by the time at which they end, second ones by that at which they start. A change
of one row is worked out against what is there, then made; so what is emitted adds up to the difference of the pairs,
whatever the order of the changes within a tick.

    ALL     a row → its pairs with all that lie on its right side
    LATEST  a second row has the last first row before it. A first row that comes takes the second ones between its end
            and the next end from the end before it, and gives them back when it goes.
    EARLIEST  a second row has the first of all, if that lies before it

O(log n) for a row, and O(1) for each pair that comes or goes.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow import moments as t
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.copying import put_pair
from oxiseq.engine.kernels.flow.moments import NONE, TIME, time_in
from oxiseq.engine.kernels.flow.timelines import (
    change_row,
    entry_of,
    group_of,
    is_sparse,
    lacks_room,
    last_until,
    next_after,
    tag_of_key,
    tag_of_row,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

ALL, EARLIEST, LATEST = range(3)
"""Which pairs, which rows."""
LEFT, RIGHT = range(2)

(
    CHOICE,
    MEETING,  # 1: the first may end when the second starts
    PLACE,  # row of the left delta that comes next
    PLACE_RIGHT,
    SIDE,  # of the change in work
    ROW,  # its row
    AT,  # its tick
    WEIGHT,  # its weight
    SCALARS,
) = range(9)


class Following(Arrays):
    """What is to be paired."""


_scalars = array(Following, "scalars", np.int64)
_loose = array(Following, "loose", np.int64)
"""Columns of the left. Pairs are emitted if these agree with those of the right where both have a value;
EARLIEST and LATEST choose without them."""
_loose_right = array(Following, "loose_right", np.int64)


@kernel
def follow(F: Ptr[Following], L: Ptr[t.Timeline], R: Ptr[t.Timeline], left: Delta, right: Delta, out: Delta) -> int:
    """Take in the deltas of both sides, whose timelines are L and R. `out` has the left's columns, then the right's."""
    scalars = _scalars(F)
    at, at_right = buffers.at(left), buffers.at(right)
    count, count_right = buffers.count(left)[0], buffers.count(right)[0]
    if scalars[PLACE] == 0 and scalars[PLACE_RIGHT] == 0 and (is_sparse(L, count) or is_sparse(R, count_right)):
        return NEED_ROOM
    while True:
        i, j = scalars[PLACE], scalars[PLACE_RIGHT]
        if i < count and (j == count_right or at[i] <= at_right[j]):
            need = _take_left(F, L, R, left, out)
        elif j < count_right:
            need = _take_right(F, L, R, right, out)
        else:
            break
        if need != DONE:
            return need
    scalars[PLACE] = scalars[PLACE_RIGHT] = 0
    return DONE


@inner
def _take_left(F: Ptr[Following], L: Ptr[t.Timeline], R: Ptr[t.Timeline], D: Delta, out: Delta) -> int:
    if lacks_room(L):
        return NEED_ROOM
    scalars, given = _scalars(F), buffers.rows(D)
    i = scalars[PLACE]
    scalars[SIDE], scalars[ROW], scalars[AT], scalars[WEIGHT] = LEFT, i, buffers.at(D)[i], buffers.weight(D)[i]
    tag, key = tag_of_row(L, given, i), tag_of_key(L, given, i)
    other, before = group_of(R, given, i, t.key(L), key), buffers.count(out)[0]
    if other >= 0 and not _tell_left(F, L, R, D, out, tag, key, other):
        buffers.count(out)[0] = before
        return NEED_OUT
    change_row(L, given, i, tag, key, scalars[WEIGHT])
    scalars[PLACE] += 1
    return DONE


@inner
def _take_right(F: Ptr[Following], L: Ptr[t.Timeline], R: Ptr[t.Timeline], D: Delta, out: Delta) -> int:
    if lacks_room(R):
        return NEED_ROOM
    scalars, given = _scalars(F), buffers.rows(D)
    i = scalars[PLACE_RIGHT]
    scalars[SIDE], scalars[ROW], scalars[AT], scalars[WEIGHT] = RIGHT, i, buffers.at(D)[i], buffers.weight(D)[i]
    key = tag_of_key(R, given, i)
    other, before = group_of(L, given, i, t.key(R), key), buffers.count(out)[0]
    if other >= 0 and not _tell_right(F, L, R, D, out, other):
        buffers.count(out)[0] = before
        return NEED_OUT
    change_row(R, given, i, tag_of_row(R, given, i), key, scalars[WEIGHT])
    scalars[PLACE_RIGHT] += 1
    return DONE


# --- what a change makes of the pairs ------------------------------------------------------------------


@inner
def _tell_right(F: Ptr[Following], L: Ptr[t.Timeline], R: Ptr[t.Timeline], D: Delta, out: Delta, g: int) -> bool:
    """The pairs of a second row with those of a group of first ones. False: there is no room for them."""
    scalars = _scalars(F)
    start = time_in(buffers.rows(D), scalars[ROW], t.scalars(R)[TIME])
    m = last_until(L, g, start, scalars[MEETING] != 0)
    if m < 0:
        return True
    if scalars[CHOICE] == EARLIEST:
        m = i64(t.groups(L)[g].head)
    if scalars[CHOICE] != ALL:
        return _write_with(F, L, D, out, m)
    while m >= 0:
        if not _write_with(F, L, D, out, m):
            return False
        m = i64(t.moments(L)[m].before)
    return True


@inner
def _tell_left(
    F: Ptr[Following], L: Ptr[t.Timeline], R: Ptr[t.Timeline], D: Delta, out: Delta, tag: int, key: int, other: int
) -> bool:
    """What a first row does to the pairs with a group of second ones. False: there is no room for it."""
    scalars, given = _scalars(F), buffers.rows(D)
    i, choice = scalars[ROW], scalars[CHOICE]
    end = time_in(given, i, t.scalars(L)[TIME])
    m = next_after(R, other, last_until(R, other, end, scalars[MEETING] == 0))
    if m < 0:
        return True
    if choice == ALL:
        return _write_range(F, L, R, D, out, m, NONE, NONE, 0)
    g = group_of(L, given, i, t.key(L), key)
    own, before = i64(NONE), i64(NONE)
    if g >= 0:
        own = last_until(L, g, end, True)
        before = last_until(L, g, end, False)
    if own == before:
        own = i64(NONE)
    # what the second rows have without any row at this end, and from which end on they have something later
    if choice == LATEST:
        rest = before
        stop = next_after(L, g, own if own >= 0 else before) if g >= 0 else i64(NONE)
    else:
        if before >= 0:
            return True
        rest = next_after(L, g, own) if g >= 0 else i64(NONE)
        stop = i64(NONE)
    sign = i64(0)  # how often the pairs with `rest` come, if they do
    if own < 0:
        sign = i64(-1)
    elif _vanishes(L, own, given, i, tag, scalars[WEIGHT]):
        sign = i64(1)
    return _write_range(F, L, R, D, out, m, stop, rest, sign)


@inner
def _vanishes(S: Ptr[t.Timeline], m: int, given: Array, i: int, tag: int, weight: int) -> bool:
    """Whether a moment is empty after a change of a row."""
    first = i64(t.moments(S)[m].first)
    alone = t.entries(S)[first].next < 0 and t.entries(S)[first].weight + weight == 0
    return alone and entry_of(S, given, i, tag) == first


@inner
def _write_range(
    F: Ptr[Following],
    L: Ptr[t.Timeline],
    R: Ptr[t.Timeline],
    D: Delta,
    out: Delta,
    m: int,
    stop: int,
    rest: int,
    sign: int,
) -> bool:
    """The pairs of the first row in work with the second ones of a moment and of those after it, as long as these do
    not lie behind the moment `stop` of first ones, and, so often as `sign` says, the pairs of `rest` with them."""
    scalars = _scalars(F)
    while m >= 0:
        start = t.moments(R)[m].time
        if stop >= 0 and _precedes(scalars, t.moments(L)[stop].time, start):
            break
        if not _write_with(F, R, D, out, m):
            return False
        if (
            sign != 0
            and rest >= 0
            and _precedes(scalars, t.moments(L)[rest].time, start)
            and not _write_product(F, L, R, out, rest, m, sign)
        ):
            return False
        m = i64(t.moments(R)[m].after)
    return True


@inner
def _precedes(scalars: Array, end: int, start: int) -> bool:
    return end < start or (scalars[MEETING] != 0 and end == start)


# --- written -----------------------------------------------------------------------------------------


@inner
def _write_with(F: Ptr[Following], O: Ptr[t.Timeline], D: Delta, out: Delta, m: int) -> bool:
    """The pairs of the row in work with those of a moment of the other side O."""
    scalars, given, others = _scalars(F), buffers.rows(D), t.rows(O)
    i, weight = scalars[ROW], scalars[WEIGHT]
    e = i64(t.moments(O)[m].first)
    while e >= 0:
        w = weight * t.entries(O)[e].weight
        if scalars[SIDE] == LEFT:
            if not _write(F, out, w, given, i, others, e):
                return False
        elif not _write(F, out, w, others, e, given, i):
            return False
        e = i64(t.entries(O)[e].next)
    return True


@inner
def _write_product(
    F: Ptr[Following], L: Ptr[t.Timeline], R: Ptr[t.Timeline], out: Delta, first: int, second: int, sign: int
) -> bool:
    """All pairs of two moments, as they are kept."""
    e = i64(t.moments(L)[first].first)
    while e >= 0:
        f = i64(t.moments(R)[second].first)
        while f >= 0:
            w = sign * t.entries(L)[e].weight * t.entries(R)[f].weight
            if not _write(F, out, w, t.rows(L), e, t.rows(R), f):
                return False
            f = i64(t.entries(R)[f].next)
        e = i64(t.entries(L)[e].next)
    return True


@inner
def _write(F: Ptr[Following], out: Delta, weight: int, a: Array, i: int, b: Array, j: int) -> bool:
    """A pair, if its rows agree where both have a value. False: there is no room for it."""
    loose, loose_right = _loose(F), _loose_right(F)
    for c in range(loose.shape[0]):
        one, other = a[i, loose[c]], b[j, loose_right[c]]
        if one != other and one != 0 and other != 0:
            return True
    return put_pair(out, _scalars(F)[AT], weight, a, i, b, j, 0, b.shape[1])
