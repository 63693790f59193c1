"""Rows that happen at some time, row by row: triples that a pattern accepts, pairs with the interval of both, rows that
last long enough, rows that have happened at all (plan.Triples, plan.Cover, plan.Lasting, plan.Sometime).

The output holds what has been done so far; `place` says of which row that was the last.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, SINCE, Delta
from oxiseq.engine.kernels.flow.copying import copy_row
from oxiseq.engine.kernels.flow.moments import END, INTERVAL, NO_END, START, put_time, time_in
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.raw import get

PLACE, LONGEST, TIMED = range(3)
"""Scalars: the next row; the longest interval; 1: nothing without a time."""
CLOCK, LEFT, RIGHT = range(2, 5)
"""Address of the clock (buffers.py); the columns of the intervals of both sides."""

_LONG_AGO = NO_END + 1
"""The instant of an occurrence whose time no operator reads."""


class Accepting(Arrays):
    """What a triple pattern asks for."""


_scalars = array(Accepting, "scalars", np.int64)
_equal = array(Accepting, "equal", np.int64, 2)  # i64[n, 2]: columns and the terms that they must hold
_same = array(Accepting, "same", np.int64, 2)  # i64[n, 2]: columns of equal terms
_columns = array(Accepting, "columns", np.int64)  # those that are handed on behind the interval


@kernel
def accept(S: Ptr[Accepting], D: Delta, out: Delta) -> int:
    """Write the triples of a delta that a pattern accepts."""
    scalars, columns, rows, made, top = _scalars(S), _columns(S), buffers.rows(D), buffers.rows(out), buffers.count(out)
    room, count = buffers.at(out).shape[0], buffers.count(D)[0]
    for i in range(scalars[PLACE], count):
        if not _accepted(S, rows, i):
            continue
        n = top[0]
        if n == room:
            scalars[PLACE] = i
            return NEED_OUT
        buffers.at(out)[n], buffers.weight(out)[n] = buffers.at(D)[i], buffers.weight(D)[i]
        for c in range(INTERVAL):
            made[n, c] = rows[i, c]
        for c in range(columns.shape[0]):
            made[n, INTERVAL + c] = rows[i, columns[c]]
        top[0] = n + 1
    scalars[PLACE] = 0
    return DONE


@inner
def _accepted(S: Ptr[Accepting], rows: Array, i: int) -> bool:
    equal, same = _equal(S), _same(S)
    for c in range(equal.shape[0]):
        if rows[i, equal[c, 0]] != equal[c, 1]:
            return False
    for c in range(same.shape[0]):
        if rows[i, same[c, 0]] != rows[i, same[c, 1]]:
            return False
    start, end = time_in(rows, i, START), time_in(rows, i, END)
    return end - start <= _scalars(S)[LONGEST] and (end != NO_END or _scalars(S)[TIMED] == 0)


class Covering(Arrays):
    """How pairs become rows."""


_limits = array(Covering, "scalars", np.int64)
_first = array(Covering, "first", np.int64)  # i64[columns + 1]: where in `places` those of a column begin
_places = array(Covering, "places", np.int64)  # columns of the pair, of which the first that is bound is taken


@kernel
def cover(S: Ptr[Covering], D: Delta, out: Delta) -> int:
    """Write pairs with the least interval that holds those of both sides."""
    scalars, rows, top = _limits(S), buffers.rows(D), buffers.count(out)
    left, right, longest, since = scalars[LEFT], scalars[RIGHT], scalars[LONGEST], get(scalars[CLOCK], SINCE)
    room = buffers.at(out).shape[0]
    for i in range(scalars[PLACE], buffers.count(D)[0]):
        first = left if time_in(rows, i, left + START) <= time_in(rows, i, right + START) else right
        last = left if time_in(rows, i, left + END) >= time_in(rows, i, right + END) else right
        end = time_in(rows, i, last + END)
        if end - time_in(rows, i, first + START) > longest or (end < since and end != NO_END):
            continue
        n = top[0]
        if n == room:
            scalars[PLACE] = i
            return NEED_OUT
        buffers.at(out)[n], buffers.weight(out)[n] = buffers.at(D)[i], buffers.weight(D)[i]
        _write(S, rows, i, first + START, last + END, buffers.rows(out), n)
        top[0] = n + 1
    scalars[PLACE] = 0
    return DONE


@inner
def _write(S: Ptr[Covering], rows: Array, i: int, start: int, end: int, made: Array, n: int) -> None:
    first, places = _first(S), _places(S)
    for c in range(2):
        made[n, START + c], made[n, END + c] = rows[i, start + c], rows[i, end + c]
    for c in range(made.shape[1] - INTERVAL):
        term = i64(0)
        for p in range(first[c], first[c + 1]):
            term = i64(rows[i, places[p]])
            if term != 0:
                break
        made[n, INTERVAL + c] = term


class Bounds(Arrays):
    """How long rows last that are wanted."""


_bounds = array(Bounds, "scalars", np.int64)  # i64[BOUNDS]


BEGIN_AT, END_AT, LEAST, MOST, BOUNDS = range(1, 6)
"""Behind PLACE: where an interval begins and ends, the shortest and the longest that is wanted."""


@kernel
def lasting(S: Ptr[Bounds], D: Delta, out: Delta) -> int:
    """Write the rows that last so long."""
    scalars, rows, top, room = _bounds(S), buffers.rows(D), buffers.count(out), buffers.at(out).shape[0]
    least, most = max(scalars[LEAST], 0), scalars[MOST]
    for i in range(scalars[PLACE], buffers.count(D)[0]):
        start, end = time_in(rows, i, scalars[BEGIN_AT]), time_in(rows, i, scalars[END_AT])
        if start > end or not least <= end - start <= most:  # a difference of 2^63 is below 0: too long, too
            continue
        if top[0] == room:
            scalars[PLACE] = i
            return NEED_OUT
        copy_row(D, i, out, top[0])
        top[0] += 1
    scalars[PLACE] = 0
    return DONE


@kernel
def sometime(D: Delta, out: Delta) -> int:
    """Write the rows with an interval of long ago if they have a time."""
    rows, made, top, room = buffers.rows(D), buffers.rows(out), buffers.count(out), buffers.at(out).shape[0]
    for i in range(top[0], buffers.count(D)[0]):
        if i == room:
            return NEED_OUT
        copy_row(D, i, out, i)
        if time_in(rows, i, END) != NO_END:
            for place in (START, END):
                put_time(made, i, place, _LONG_AGO)
        top[0] = i + 1
    return DONE
