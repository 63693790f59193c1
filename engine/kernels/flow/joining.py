"""Rows of an arrangement that agree with rows: pairs of two arrangements, of what has come and gone in both (join;
operators.md, 3.2); what has come looks for what there is in one (look; plan.Look).

    Δ(A ⋈ B) = ΔA ⋈ (B before the tick) + (A at its end) ⋈ ΔB

A join merges both deltas by tick, so that the output ascends. Neither has a memory but its place: the chains in which a
row may find what agrees with it are walked one after the other, and a walk can be gone on with where it was.

Rows look for those of a table, which does not change while rows come, by how their numbers compare (between;
plan.Lookup).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arrangement import BORN, DIED, LINK0, LIVE, ROW, WEIGHT, WIDTH, Arrangement
from oxiseq.engine.kernels.flow.arranging import first_of_chain, link_number, mask_of, sweep
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.copying import put_pair, put_row
from oxiseq.engine.kernels.flow.moments import END, NO_END, NO_START, START, time_in
from oxiseq.engine.kernels.memory.hashing import key_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.slots import fetch_slot
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import Terms
from oxiseq.engine.kinds import DECIMAL, DOUBLE, INTEGER, ROUNDED

(
    MASK_AT,  # of the entries that are walked
    ENTRY_AT,  # next entry of the chain; -1: no chain is being walked
    LINK_AT,  # number of its links
    WALK,
) = range(4)
_BY_KEY: Final = WORDS * Arrangement._fields.index("by_key")
_FAR: Final = 1 << 12
"""Entries from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many rows."""


@inner
def fetch_ahead(A: Ptr[Arrangement], rows: Array, i: int, count: int, key: Array, loose: Array) -> None:
    """Have memory fetched where a row soon after row `i` of `count` will look."""
    if i + _AHEAD < count and v.seen(A).shape[0] == 1 and v.scalars(A)[LIVE] > _FAR:
        fetch_slot(A, _BY_KEY, key_tag(rows, i + _AHEAD, 0, key, loose, 0, 0))


@inner
def enter_chain(at: Array, A: Ptr[Arrangement], rows: Array, i: int, key: Array, loose: Array, bound: int) -> bool:
    """Begin the chain of the mask at which the walk is, for row `i`, which binds the loose columns `bound`; unless one
    is being walked, or is not needed. False: room is wanted for its links."""
    mask = at[MASK_AT]
    if at[ENTRY_AT] < 0 and v.seen(A)[mask] > 0:
        number = link_number(A, mask, mask & bound)
        if number < 0:
            return False
        at[LINK_AT] = number
        at[ENTRY_AT] = first_of_chain(A, rows, i, key, loose, mask, mask & bound, number)
    return True


@inner
def compatible(rows: Array, i: int, checked: Array, halves: Array, e: int, others: Array) -> bool:
    """Whether a row and an entry agree in the columns at `checked` and `others` where both have a value."""
    for c in range(checked.shape[0]):
        one, other = rows[i, checked[c]], halves[e, v.ROW + others[c]]
        if one != other and one != 0 and other != 0:
            return False
    return True


# --- joins -----------------------------------------------------------------------------------------


(
    LEFT_AT,  # row of the left delta that comes next
    RIGHT_AT,
    SIDE,  # that the row in work is of; -1: none is in work
    PLACES,
) = range(WALK, WALK + 4)
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
        if at_[ENTRY_AT] >= 0 and not _write_pairs(J, mine, D, i, other, out):
            return NEED_OUT
        at_[MASK_AT] += 1
    return DONE


@inner
def _write_pairs(
    J: Ptr[Joining], mine: Ptr[v.Arrangement], D: Delta, i: int, other: Ptr[v.Arrangement], out: Delta
) -> bool:
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


# --- lookups ---------------------------------------------------------------------------------------


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
) = range(WALK, WALK + 9)
"""Behind the place of the walk over the rows that are looked at."""


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
        if scalars[ENTRY_AT] >= 0 and not _look_along(K, D, i, t, A, out):
            return NEED_OUT
        scalars[MASK_AT] += 1
    return DONE


@inner
def _look_along(K: Ptr[Looking], D: Delta, i: int, t: int, A: Ptr[v.Arrangement], out: Delta) -> bool:
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
            if ordered and end - to > limit and to != NO_END and end != NO_END:  # those behind it have ended no later
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
        return to < start and to != NO_END and start != NO_START
    return order == ANY or to <= end


# --- by number -------------------------------------------------------------------------------------


BELOW, EQUAL, ABOVE = range(3)
"""How a row's number has to compare: below that of the table's row, or equal to it; equal; above it, or equal."""
AT, MADE, PLACE, SIGN, ALL, BETWEEN_PLACES = range(6)
"""The row that looks next; the table's row that it has been paired with last, -1: none; the column of its number; where
that is to stand; 1: some of the table's numbers are none, and all rows are looked at."""


class Between(Arrays):
    """A table in the order of its numbers."""


_between = array(Between, "places", np.int64)  # i64[BETWEEN_PLACES]
_ascending = array(Between, "number", np.float64)  # f64[n], ascending, each rounded once
_table = array(Between, "rows", np.uint32, 2)  # u32[n, columns]


@kernel
def between(S: Ptr[Between], T: Terms, D: Delta, out: Delta) -> int:
    """Write each row of the delta D with those of the table whose numbers compare with its own as they have to.
    Rounding keeps the order, but for numbers that become equal; so equal ones are written, too. T: the dictionary."""
    places, table, rows, count = _between(S), _table(S), buffers.rows(D), buffers.count(D)[0]
    at, weight, made, top = buffers.at(out), buffers.weight(out), buffers.rows(out), buffers.count(out)
    own, width, room = rows.shape[1], table.shape[1], at.shape[0]
    n = top[0]
    for i in range(places[AT], count):
        low, high = _range(S, T, i64(rows[i, places[PLACE]]))
        for j in range(max(low, places[MADE] + 1), high):
            if n == room:
                places[AT], places[MADE], top[0] = i, j - 1, n
                return NEED_OUT
            at[n], weight[n] = buffers.at(D)[i], buffers.weight(D)[i]
            for c in range(own):
                made[n, c] = rows[i, c]
            for c in range(width):
                made[n, own + c] = table[j, c]
            n += 1
        places[MADE] = -1
    places[AT], top[0] = 0, n
    return DONE


@inner
def _range(S: Ptr[Between], T: Terms, term: int) -> Any:
    """Which rows of the table a term may compare with as it has to. What is no such number is compared with all."""
    places, ascending = _between(S), _ascending(S)
    n, kind, value = ascending.shape[0], worth.kind(T)[term], worth.number(T)[term]
    is_number = (kind == INTEGER or kind == DECIMAL or kind == DOUBLE) and worth.quality(T)[term] & ROUNDED != 0
    if places[ALL] != 0 or not is_number or np.isnan(value):
        return i64(0), i64(n)
    low, high = i64(0), i64(n)
    if places[SIGN] != ABOVE:
        low = _first(ascending, value, False)
    if places[SIGN] != BELOW:
        high = _first(ascending, value, True)
    return low, high


@inner
def _first(ascending: Array, value: float, behind: bool) -> int:
    """The first number that is not below a value; `behind`: that is above it."""
    low, high = i64(0), i64(ascending.shape[0])
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value or (behind and ascending[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low
