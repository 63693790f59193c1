"""What has come looks for what there is in an arrangement (plan.Look). Chains by key alone are in order of time,
the newest first: what has a time came when it ended.

Where time counts the first four columns of both are their intervals, start and end, each an i64 in two halves. Nothing
is kept but the place: a row of the delta, the mask of the rows that it is compared with, an entry of their chain.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers, walking
from oxiseq.engine.kernels.flow.arrangement import BORN, DIED, LINK0, ROW, WEIGHT, WIDTH
from oxiseq.engine.kernels.flow.arranging import mask_of
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.copying import put_pair, put_row
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.flow.walking import ENTRY_AT, LINK_AT, MASK_AT, compatible, enter_chain, fetch_ahead
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr

START, END = 0, 2
"""Columns of an interval."""
ANY, BEFORE, BY = range(3)
"""Orders of time: what is found has ended before the start of what looks; by its end."""
PAIRS, WITH, WITHOUT = range(3)
"""What is written."""

(
    ORDER,
    WHAT,
    LIMIT,  # the longest interval of both
    EARLIER,  # 1: what comes at the same tick is not found
    ROW_AT,  # row of the delta that looks next
    FOUND,  # 1: the row has found something
    TIMELESS,  # 1: the arrangement has rows without a time
    TIMED,  # 1: when rows happen counts; else they need no interval
    SCALARS,
) = range(walking.PLACES, walking.PLACES + 9)
"""Behind the place of the walk over the rows that are looked at."""

_NO_START: Final = 1 << 62
_NO_END: Final = -(1 << 62)
"""Of what has no time: it is before nothing, and after nothing."""


class Looking(Arrays):
    """How is looked, and where it is."""


_scalars = array(Looking, "scalars", np.int64)
_key = array(Looking, "key", np.int64)  # columns of what looks
_loose = array(Looking, "loose", np.int64)
"""Columns that agree where both have a value, as many as the arrangement makes chains by."""
_checked = array(Looking, "checked", np.int64)  # further ones


@kernel
def look(K: Ptr[Looking], D: Delta, A: Ptr[v.Arrangement], out: Delta) -> int:
    """What the rows of the delta D find in the arrangement A, which has taken in its own."""
    scalars, at, count, rows = _scalars(K), buffers.at(D), buffers.count(D)[0], buffers.rows(D)
    while scalars[ROW_AT] < count:
        i = scalars[ROW_AT]
        if scalars[ENTRY_AT] < 0:
            fetch_ahead(A, rows, i, count, _key(K), _loose(K))
        answer = _find(K, D, i, at[i] - scalars[EARLIER], A, out)
        if answer != DONE:
            return answer
        if scalars[WHAT] != PAIRS and (scalars[FOUND] != 0) == (scalars[WHAT] == WITH):
            if not put_row(out, at[i], buffers.weight(D)[i], rows, i, 0, rows.shape[1]):
                return NEED_OUT
        scalars[ROW_AT] = i + 1
        scalars[MASK_AT] = scalars[FOUND] = 0
    scalars[ROW_AT] = 0
    return DONE


@inner
def _find(K: Ptr[Looking], D: Delta, i: int, t: int, A: Ptr[v.Arrangement], out: Delta) -> int:
    """Walk all entries that may agree with row `i`, from where it was; without pairs, until one does."""
    scalars, rows, seen, key, loose = _scalars(K), buffers.rows(D), v.seen(A), _key(K), _loose(K)
    bound = mask_of(rows, i, 0, loose)
    while scalars[MASK_AT] < seen.shape[0] and (scalars[FOUND] == 0 or scalars[WHAT] == PAIRS):
        if not enter_chain(scalars, A, rows, i, key, loose, bound):
            return NEED_ROOM
        if scalars[ENTRY_AT] >= 0 and not _walk(K, D, i, t, A, out):
            return NEED_OUT
        scalars[MASK_AT] += 1
    return DONE


@inner
def _walk(K: Ptr[Looking], D: Delta, i: int, t: int, A: Ptr[v.Arrangement], out: Delta) -> bool:
    """Go along a chain from where it is. Whether its end is reached, or one entry is enough and there is one."""
    scalars, words, halves, links = _scalars(K), v.words(A), v.halves(A), v.links(A)
    rows, checked, others, limit = buffers.rows(D), _checked(K), v.checked(A), scalars[LIMIT]
    timed, order, start, end = scalars[TIMED] != 0, scalars[ORDER], i64(0), i64(0)
    if timed:
        start, end = time_in(rows, i, START), time_in(rows, i, END)
    # chains by loose columns are made late, in any order; rows without a time may be anywhere
    ordered = v.loose(A).shape[0] == 0 and scalars[TIMELESS] == 0
    following, e = v.scalars(A)[LINK0] + 2 * scalars[LINK_AT], scalars[ENTRY_AT]
    while e >= 0:
        in_time = True
        if timed:
            from_, to = time_in(halves, e, ROW + START), time_in(halves, e, ROW + END)
            if ordered and end - to > limit and to != _NO_END and end != _NO_END:  # those behind it have ended no later
                break
            in_time = _in_order(order, start, end, to) and max(end, to) - min(start, from_) <= limit
        if in_time and words[e, BORN] <= t < words[e, DIED] and compatible(rows, i, checked, halves, e, others):
            if scalars[WHAT] != PAIRS:
                scalars[FOUND] = 1
                break
            weight = buffers.weight(D)[i] * words[e, WEIGHT]
            if not put_pair(out, buffers.at(D)[i], weight, rows, i, halves, e, ROW, v.scalars(A)[WIDTH]):
                scalars[ENTRY_AT] = e
                return False
        e = i64(links[e, following])
    scalars[ENTRY_AT] = -1
    return True


@inner
def _in_order(order: int, start: int, end: int, to: int) -> bool:
    """Whether what looks, from `start` to `end`, may find what ended at `to`."""
    if order == BEFORE:
        return to < start and to != _NO_END and start != _NO_START
    return order == ANY or to <= end
