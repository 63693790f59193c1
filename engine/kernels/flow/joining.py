"""Pairs of two arrangements, of what has come and gone in both (operators.md, 3.2).

    Δ(A ⋈ B) = ΔA ⋈ (B before the tick) + (A at its end) ⋈ ΔB

Both deltas are merged by tick, so that the output ascends. The join has no memory but its place.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers, walking
from oxiseq.engine.kernels.flow.arrangement import BORN, DIED, LINK0, ROW, WEIGHT, WIDTH
from oxiseq.engine.kernels.flow.arranging import mask_of, sweep
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.walking import ENTRY_AT, LINK_AT, MASK_AT, compatible, enter_chain, fetch_ahead
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr

(
    LEFT_AT,  # row of the left delta that comes next
    RIGHT_AT,
    SIDE,  # that the row in work is of; -1: none is in work
    PLACES,
) = range(walking.PLACES, walking.PLACES + 4)
"""Behind the place of the walk over the other side's rows."""
_NO_SIDE, _LEFT, _RIGHT = -1, 0, 1


class Joining(Arrays):
    """Where a join is."""


places = array(Joining, "places", np.int64)  # i64[PLACES]


@kernel
def join(J: Ptr[Joining], A: Ptr[v.Arrangement], dA: Delta, B: Ptr[v.Arrangement], dB: Delta, out: Delta) -> int:
    """The pairs of the arrangements A and B, which have taken in their deltas dA and dB."""
    at_, left_at, right_at = places(J), buffers.at(dA), buffers.at(dB)
    lefts, rights = buffers.count(dA)[0], buffers.count(dB)[0]
    if lefts == 0:  # it has not been swept
        sweep(A)
    if rights == 0:
        sweep(B)
    while True:
        i, j = at_[LEFT_AT], at_[RIGHT_AT]
        if at_[SIDE] == _NO_SIDE:
            if i == lefts and j == rights:
                at_[LEFT_AT] = at_[RIGHT_AT] = 0
                return DONE
            is_left = j == rights or (i < lefts and left_at[i] <= right_at[j])
            at_[SIDE] = _LEFT if is_left else _RIGHT
            at_[MASK_AT] = 0
        if at_[SIDE] == _LEFT:
            answer = _pairs(J, A, dA, i, lefts, B, out)
        else:
            answer = _pairs(J, B, dB, j, rights, A, out)
        if answer != DONE:
            return answer
        at_[LEFT_AT if at_[SIDE] == _LEFT else RIGHT_AT] += 1
        at_[SIDE] = _NO_SIDE


@inner
def _pairs(
    J: Ptr[Joining], mine: Ptr[v.Arrangement], D: Delta, i: int, count: int, other: Ptr[v.Arrangement], out: Delta
) -> int:
    """The pairs of row `i` of a side's delta with the other side's rows."""
    at_, rows, seen = places(J), buffers.rows(D), v.seen(other)
    key, loose = v.key(mine), v.loose(mine)
    fetch_ahead(other, rows, i, count, key, loose)
    bound = mask_of(rows, i, 0, loose)
    while at_[MASK_AT] < seen.shape[0]:
        if not enter_chain(at_, other, rows, i, key, loose, bound):
            return NEED_ROOM
        if at_[ENTRY_AT] >= 0 and not _walk(J, mine, D, i, other, out):
            return NEED_OUT
        at_[MASK_AT] += 1
    return DONE


@inner
def _walk(J: Ptr[Joining], mine: Ptr[v.Arrangement], D: Delta, i: int, other: Ptr[v.Arrangement], out: Delta) -> bool:
    """Write the pairs of a row with the entries of a chain, from where the join is. Whether the end is reached."""
    at_, words, halves, links = places(J), v.words(other), v.halves(other), v.links(other)
    at, weight, top = buffers.at(out), buffers.weight(out), buffers.count(out)
    checked, is_left, my_rows, rows = v.checked(mine), at_[SIDE] == _LEFT, buffers.rows(D), buffers.rows(out)
    t, my_weight = buffers.at(D)[i], buffers.weight(D)[i]
    as_of = t - 1 if is_left else t
    width, my_width = v.scalars(other)[WIDTH], v.scalars(mine)[WIDTH]
    my_first, first = (i64(0), my_width) if is_left else (width, i64(0))
    following = v.scalars(other)[LINK0] + 2 * at_[LINK_AT]
    n, room, e = top[0], at.shape[0], at_[ENTRY_AT]
    while e >= 0:
        if words[e, BORN] <= as_of < words[e, DIED] and (
            checked.shape[0] == 0 or compatible(my_rows, i, checked, halves, e, v.checked(other))
        ):
            if n == room:
                break
            at[n], weight[n] = t, my_weight * words[e, WEIGHT]
            for c in range(my_width):
                rows[n, my_first + c] = my_rows[i, c]
            for c in range(width):
                rows[n, first + c] = halves[e, ROW + c]
            n += 1
        e = i64(links[e, following])
    at_[ENTRY_AT] = e
    top[0] = n
    return e < 0
