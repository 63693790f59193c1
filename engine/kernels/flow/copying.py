"""Rows handed on as they are, with other columns, with the opposite weight, or those of several operators as one.

The output holds what has been done so far: each kernel appends to it.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, Delta
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

# --- columns -----------------------------------------------------------------------------------------


class Picked(Arrays):
    """The columns that are picked."""


_first = array(Picked, "first", np.int64)  # i64[columns + 1]: where in `places` a column's begin
_places = array(Picked, "places", np.int64)  # columns of the input, of which the first that is bound is taken


@kernel
def pick(S: Ptr[Picked], D: Delta, out: Delta) -> int:
    """Write the delta D with other columns."""
    first, places, rows, made, top = _first(S), _places(S), buffers.rows(D), buffers.rows(out), buffers.count(out)
    at, weight, new_at, new_weight = buffers.at(D), buffers.weight(D), buffers.at(out), buffers.weight(out)
    room = new_at.shape[0]
    for i in range(top[0], buffers.count(D)[0]):
        if i == room:
            return NEED_OUT
        new_at[i], new_weight[i] = at[i], weight[i]
        for c in range(made.shape[1]):
            term = i64(0)
            for p in range(first[c], first[c + 1]):
                term = i64(rows[i, places[p]])
                if term != 0:
                    break
            made[i, c] = term
        top[0] = i + 1
    return DONE


@kernel
def negate(D: Delta, out: Delta) -> int:
    """Write the delta D with the opposite weights."""
    top, room, weight = buffers.count(out), buffers.at(out).shape[0], buffers.weight(out)
    for i in range(top[0], buffers.count(D)[0]):
        if i == room:
            return NEED_OUT
        copy_row(D, i, out, i)
        weight[i] = -weight[i]
        top[0] = i + 1
    return DONE


@inner
def copy_row(D: Delta, i: int, out: Delta, n: int) -> None:
    """Write row `i` of a delta as the row `n` of another; there is room."""
    rows, made = buffers.rows(D), buffers.rows(out)
    buffers.at(out)[n], buffers.weight(out)[n] = buffers.at(D)[i], buffers.weight(D)[i]
    for c in range(rows.shape[1]):
        made[n, c] = rows[i, c]


@inner
def append(D: Delta, out: Delta) -> bool:
    """Write a delta behind what another one holds. False: there is no room for it."""
    count, top = buffers.count(D)[0], buffers.count(out)[0]
    if top + count > buffers.at(out).shape[0]:
        return False
    for i in range(count):
        copy_row(D, i, out, top + i)
    buffers.count(out)[0] = top + count
    return True


@inner
def put_row(out: Delta, t: int, weight: int, rows: Array, i: int, first: int, width: int) -> bool:
    """Write columns of a row behind others, from a first one on. False: there is no room for it."""
    n, made = buffers.count(out)[0], buffers.rows(out)
    if n == buffers.at(out).shape[0]:
        return False
    buffers.at(out)[n], buffers.weight(out)[n] = t, weight
    for c in range(width):
        made[n, c] = rows[i, first + c]
    buffers.count(out)[0] = n + 1
    return True


@inner
def put_pair(out: Delta, t: int, weight: int, a: Array, i: int, b: Array, j: int, first: int, width: int) -> bool:
    """Write a row and columns of another one, from a first one on, behind others. False: there is no room for it."""
    n, made = buffers.count(out)[0], buffers.rows(out)
    if not put_row(out, t, weight, a, i, 0, a.shape[1]):
        return False
    for c in range(width):
        made[n, a.shape[1] + c] = b[j, first + c]
    return True


# --- several as one ----------------------------------------------------------------------------------


class Merging(Arrays):
    """What is merged."""


_children = array(Merging, "children", np.int64)  # addresses of their deltas
_next = array(Merging, "next", np.int64)  # i64 by child: the row that comes next; 0 between batches


@kernel
def merge(S: Ptr[Merging], out: Delta) -> int:
    """Write the deltas of all children in order of ticks, each row with its child's number if there is a column for
    it."""
    children, following, top, made = _children(S), _next(S), buffers.count(out), buffers.rows(out)
    room = buffers.at(out).shape[0]
    while True:
        chosen, tick = i64(-1), i64(0)
        for k in range(children.shape[0]):
            i, D = following[k], children[k]
            if i < buffers.count(D)[0] and (chosen < 0 or buffers.at(D)[i] < tick):
                chosen, tick = i64(k), buffers.at(D)[i]
        if chosen < 0:
            break
        for k in range(chosen, children.shape[0]):  # all rows of this tick: those before have none
            D = children[k]
            i, count, at = following[k], buffers.count(D)[0], buffers.at(D)
            while i < count and at[i] == tick:
                if top[0] == room:
                    following[k] = i
                    return NEED_OUT
                copy_row(D, i, out, top[0])
                if made.shape[1] > buffers.rows(D).shape[1]:
                    made[top[0], made.shape[1] - 1] = k
                top[0] += 1
                i += 1
            following[k] = i
    for k in range(children.shape[0]):
        following[k] = 0
    return DONE
