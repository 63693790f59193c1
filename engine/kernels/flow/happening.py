"""Rows that happen at some time, row by row: triples that a pattern accepts, and pairs with the interval of both
(plan.Triples, plan.Cover).

The output holds what has been done so far; `place` says of which row that was the last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT
from oxiseq.engine.kernels.flow.looking import END, START
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.memory.pointers import Array, view_of

INTERVAL = 4
"""Columns of an interval."""
PLACE, LONGEST, TIMED = range(3)
"""Scalars: the next row; the longest interval; 1: nothing without a time."""
SINCE, LEFT, RIGHT = range(2, 5)
"""Before when nothing changes but what has no time; where the intervals of both sides stand."""

_NO_END = -(1 << 62)


class Accepting(NamedTuple):
    """What a triple pattern asks for."""

    scalars: Array
    equal: Array
    """i64[n, 2]: columns and the terms that stand there."""
    same: Array
    """i64[n, 2]: columns of equal terms."""
    but: Array
    """i64: terms that the predicate is not."""
    columns: Array
    """i64: those that are handed on behind the interval."""


_scalars: Any = view_of(Accepting, "scalars", np.int64)
_equal: Any = view_of(Accepting, "equal", np.int64, 2)
_same: Any = view_of(Accepting, "same", np.int64, 2)
_but: Any = view_of(Accepting, "but", np.int64)
_columns: Any = view_of(Accepting, "columns", np.int64)


@kernel
def accept(S: int, D: int, out: int) -> int:
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
def _accepted(S: Any, rows: Any, i: int) -> bool:
    equal, same, but = _equal(S), _same(S), _but(S)
    for c in range(equal.shape[0]):
        if rows[i, equal[c, 0]] != equal[c, 1]:
            return False
    for c in range(same.shape[0]):
        if rows[i, same[c, 0]] != rows[i, same[c, 1]]:
            return False
    for c in range(but.shape[0]):
        if rows[i, INTERVAL + 1] == but[c]:
            return False
    start, end = time_in(rows, i, START), time_in(rows, i, END)
    return end - start <= _scalars(S)[LONGEST] and (end != _NO_END or _scalars(S)[TIMED] == 0)


class Covering(NamedTuple):
    """How pairs become rows."""

    scalars: Array
    first: Array
    """i64[columns + 1]: where in `places` those of a column begin."""
    places: Array
    """i64: columns of the pair, of which the first that is bound is taken."""


_limits: Any = view_of(Covering, "scalars", np.int64)
_first: Any = view_of(Covering, "first", np.int64)
_places: Any = view_of(Covering, "places", np.int64)


@kernel
def cover(S: int, D: int, out: int) -> int:
    """Write pairs with the least interval that holds those of both sides."""
    scalars, rows, top = _limits(S), buffers.rows(D), buffers.count(out)
    left, right, longest, since = scalars[LEFT], scalars[RIGHT], scalars[LONGEST], scalars[SINCE]
    room = buffers.at(out).shape[0]
    for i in range(scalars[PLACE], buffers.count(D)[0]):
        first = left if time_in(rows, i, left + START) <= time_in(rows, i, right + START) else right
        last = left if time_in(rows, i, left + END) >= time_in(rows, i, right + END) else right
        end = time_in(rows, i, last + END)
        if end - time_in(rows, i, first + START) > longest or (end < since and end != _NO_END):
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
def _write(S: Any, rows: Any, i: int, start: int, end: int, made: Any, n: int) -> None:
    first, places = _first(S), _places(S)
    for c in range(2):
        made[n, START + c], made[n, END + c] = rows[i, start + c], rows[i, end + c]
    for c in range(made.shape[1] - INTERVAL):
        term = np.int64(0)
        for p in range(first[c], first[c + 1]):
            term = np.int64(rows[i, places[p]])
            if term != 0:
                break
        made[n, INTERVAL + c] = term
