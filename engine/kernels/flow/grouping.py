"""A Group at work (operators.md, 3.4): rows are taken tick by tick; then each group that they touched retracts the
row that it emitted before and emits the one that it has now, if they differ.

Whenever room or Python is wanted the kernel returns, and is called again with the same buffers: all that it needs to go
on stands in the scalars.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow import groups as g
from oxiseq.engine.kernels.flow.accumulating import add_scaled, release_wide, rounded_sum, take_value
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM, Delta
from oxiseq.engine.kernels.flow.copying import put_row
from oxiseq.engine.kernels.flow.results import FULL, decimal_term, double_term, integer_term
from oxiseq.engine.kernels.flow.wide import DOUBLE_LOWEST, ONE, ZERO, divided, high_product, magnitude
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import WORDS, Ptr
from oxiseq.engine.kernels.memory.raw import get
from oxiseq.engine.kernels.terms.table import Terms

NEED_TERMS, NEED_ANSWER, STRANGE = 3, 4, 5
"""More that the kernel answers: that it wants more room in the dictionary; that it wants, as the scalar ANSWER, the
result (an id) of a sum of a group: what the scalars SUM and GROUP say; that it is through, and there are STRANGE_ROWS
in the batch."""

_ASK: Final = -2
_SCRATCH: Final = WORDS * g.GroupMemory._fields.index("scratch")
_ONE18: Final = np.uint64(10**18)
_SMALL: Final = 1 << 32


@kernel
def group(M: Ptr[g.GroupMemory], D: Terms, IN: Delta, OUT: Delta) -> int:
    """Work through the batch in IN from where the scalars say; DONE, or what is wanted before it is called again."""
    scalars = g.scalars(M)
    while True:
        if scalars[g.TELLING] == 0:
            need = _take(M, D, IN)
            if need != DONE:
                return need
            if scalars[g.TOUCHED] == 0:
                scalars[g.ROW] = 0
                return DONE if scalars[g.STRANGE_ROWS] == 0 else STRANGE
            scalars[g.TELLING] = 1
            scalars[g.GROUP] = scalars[g.SUM] = 0
        while scalars[g.GROUP] < scalars[g.TOUCHED]:
            need = _tell(M, D, OUT, g.touched(M)[scalars[g.GROUP]])
            if need != DONE:
                return need
            scalars[g.SUM] = 0
            scalars[g.GROUP] += 1
        scalars[g.TELLING] = scalars[g.TOUCHED] = 0


# --- rows -------------------------------------------------------------------------------------------


@inner
def _take(M: Ptr[g.GroupMemory], D: Terms, IN: Delta) -> int:
    """Take the rows of a tick."""
    scalars, at, count = g.scalars(M), buffers.at(IN), buffers.count(IN)[0]
    rows, weight, values = buffers.rows(IN), buffers.weight(IN), g.values(M)
    group, touched = g.cells(M), g.touched(M)
    first = g.KEY + g.key(M).shape[0] + g.sums(M).shape[0]
    row = scalars[g.ROW]
    while row < count:
        if scalars[g.TOUCHED] == 0:
            scalars[g.TICK] = at[row]
        elif at[row] != scalars[g.TICK]:
            break
        if _wants_room(M):
            scalars[g.ROW] = row
            return NEED_ROOM
        e = g.found_group(M, rows, row)
        if group[e, g.STATE] & g.TOUCHED_BIT == 0:
            group[e, g.STATE] |= g.TOUCHED_BIT
            touched[scalars[g.TOUCHED]] = e
            scalars[g.TOUCHED] += 1
        group[e, g.WEIGHT] += weight[row]
        for i in range(values.shape[0]):
            term, start = i64(rows[row, values[i].place]), first + i * g.VALUE_WORDS
            if values[i].numbers:
                take_value(M, D, e, start, term, weight[row])
            elif term != 0:
                group[e, start + g.BOUND] += weight[row]
        row += 1
    scalars[g.ROW] = row
    return DONE


@inner
def _wants_room(M: Ptr[g.GroupMemory]) -> bool:
    """Whether there is no room for a row of a new group, all of whose values are the first doubles."""
    scalars = g.scalars(M)
    if scalars[g.TOUCHED] == g.touched(M).shape[0]:
        scalars[g.WANTED] = g.FOR_TOUCHED
        return True
    if scalars[g.FREE] < 0 and scalars[g.TOP] == g.cells(M).shape[0]:
        scalars[g.WANTED] = g.FOR_GROUPS
        return True
    if scalars[g.WIDE_LIVE] + 1 + g.values(M).shape[0] > g.wides(M).shape[0]:
        scalars[g.WANTED] = g.FOR_WIDES
        return True
    return False


# --- groups -----------------------------------------------------------------------------------------


@inner
def _tell(M: Ptr[g.GroupMemory], D: Terms, OUT: Delta, e: int) -> int:
    """Emit how a group differs from what it has emitted."""
    group, fresh = g.cells(M), g.fresh(M)
    keyless, results = g.key(M).shape[0] == 0, g.KEY + g.key(M).shape[0]
    there = keyless or group[e, g.WEIGHT] > 0
    _release(M, e, not there and group[e, g.WEIGHT] == 0)
    told, differs = group[e, g.STATE] & g.TOLD_BIT != 0, False
    if there:
        need = _results(M, D, e)
        if need != DONE:
            return need
        for j in range(fresh.shape[0]):
            if fresh[j] != group[e, results + j]:
                differs = True
    if told != there or (there and differs):
        width = buffers.rows(OUT).shape[1]
        if buffers.count(OUT)[0] + 2 > buffers.at(OUT).shape[0]:
            return NEED_OUT
        if told:
            put_row(OUT, g.scalars(M)[g.TICK], -1, group, e, g.KEY, width)
        for j in range(fresh.shape[0]):
            group[e, results + j] = fresh[j] if there else 0
        if there:
            put_row(OUT, g.scalars(M)[g.TICK], 1, group, e, g.KEY, width)
    group[e, g.STATE] = g.TOLD_BIT if there else 0
    if not there and group[e, g.WEIGHT] == 0:
        g.drop_group(M, e)
    return DONE


@inner
def _release(M: Ptr[g.GroupMemory], e: int, now: bool) -> None:
    """Accumulators in which nothing is, or all `now`."""
    values, first = g.values(M), g.KEY + g.key(M).shape[0] + g.sums(M).shape[0]
    for i in range(values.shape[0]):
        if values[i].numbers:
            release_wide(M, e, first + i * g.VALUE_WORDS, now)


@inner
def _results(M: Ptr[g.GroupMemory], D: Terms, e: int) -> int:
    """Make the results of a group."""
    scalars, fresh = g.scalars(M), g.fresh(M)
    while scalars[g.SUM] < fresh.shape[0]:
        j = scalars[g.SUM]
        if scalars[g.ANSWER] >= 0:
            fresh[j] = scalars[g.ANSWER]
            scalars[g.ANSWER] = -1
        else:
            made = _result(M, D, e, j)
            if made == FULL:
                return NEED_TERMS
            if made == _ASK:
                return NEED_ANSWER
            fresh[j] = made
        scalars[g.SUM] = j + 1
    return DONE


@inner
def _result(M: Ptr[g.GroupMemory], D: Terms, e: int, j: int) -> int:
    """The id of a sum's result, 0 for an error; FULL; _ASK."""
    group, each, scratch = g.cells(M), g.sums(M)[j], get(M, _SCRATCH)
    if each.what == g.ROWS:
        return integer_term(D, scratch, group[e, g.WEIGHT])
    if each.what == g.ASKED:
        return i64(_ASK)
    at = g.KEY + g.key(M).shape[0] + g.sums(M).shape[0] + each.value * g.VALUE_WORDS
    count = group[e, at + g.BOUND]
    if each.what == g.VALUES:
        return integer_term(D, scratch, count)
    if group[e, at + g.ODD] != 0:
        return i64(0)
    if count == 0:
        return integer_term(D, scratch, 0)
    mean = each.what == g.MEAN
    if group[e, at + g.WIDE] > 0:
        return _of_doubles(M, D, e, at, mean)
    if group[e, at + g.STRANGE] != 0 or (mean and count >= _SMALL):
        return i64(_ASK)
    if group[e, at + g.DECIMALS] != 0:
        return _of_decimals(M, D, e, at, mean)
    total = group[e, at + g.INT0]
    if group[e, at + g.INT1] != total >> 63:  # more than 64 bits: the store has an error
        return i64(0)
    if not mean:
        return integer_term(D, scratch, total)
    size = magnitude(total)
    return _mean(D, scratch, total < 0, high_product(size, _ONE18), size * _ONE18, count)


@inner
def _mean(D: Terms, scratch: int, negative: bool, high: np.uint64, low: np.uint64, count: int) -> int:
    """A magnitude in units of 10^-18 divided, what is behind its last digit cut off."""
    by = u64(count)
    high, rest = divided(ZERO, high, by)
    low, _ = divided(rest, low, by)
    return decimal_term(D, scratch, negative, high, low)


@inner
def _of_decimals(M: Ptr[g.GroupMemory], D: Terms, e: int, at: int, mean: bool) -> int:
    """Of integers and decimals: their sums together in 192 bits."""
    group = g.cells(M)
    word0, word1 = u64(group[e, at + g.INT0]), u64(group[e, at + g.INT1])
    negative = group[e, at + g.INT1] < 0
    word0, word1, word2 = _negated(word0, word1, ZERO, negative)
    upper = word1 * _ONE18
    word2 = high_product(word1, _ONE18)
    word1 = high_product(word0, _ONE18) + upper
    if word1 < upper:
        word2 += ONE
    word0, word1, word2 = _negated(word0 * _ONE18, word1, word2, negative)
    known0, known1 = u64(group[e, at + g.DEC0]), u64(group[e, at + g.DEC1])
    known2 = u64(group[e, at + g.DEC2])
    word0 += known0
    carry = ONE if word0 < known0 else ZERO
    word1 += known1
    over = ONE if word1 < known1 else ZERO
    word1 += carry
    if word1 < carry:
        over = ONE
    word2 += known2 + over
    negative = i64(word2) < 0
    if i64(word2) != i64(word1) >> 63:  # more than 128 bits: the store has an error
        return i64(0)
    word0, word1, _ = _negated(word0, word1, word2, negative)
    scratch = get(M, _SCRATCH)
    if mean:
        return _mean(D, scratch, negative, word1, word0, group[e, at + g.BOUND])
    return decimal_term(D, scratch, negative, word1, word0)


@inner
def _negated(
    word0: np.uint64, word1: np.uint64, word2: np.uint64, really: bool
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """The number in two's complement, lowest word first, negated."""
    if not really:
        return word0, word1, word2
    word0 = ZERO - word0
    word1 = ~word1
    word2 = ~word2
    if word0 == ZERO:
        word1 += ONE
        if word1 == ZERO:
            word2 += ONE
    return word0, word1, word2


@inner
def _of_doubles(M: Ptr[g.GroupMemory], D: Terms, e: int, at: int, mean: bool) -> int:
    """Of values among which are doubles, or floats."""
    group, wides = g.cells(M), g.wides(M)
    r = group[e, at + g.WIDE]
    floats = wides[r, g.DOUBLES] == 0
    if wides[r, g.NANS] != 0 or (wides[r, g.INFINITE] != 0 and wides[r, g.MINUS_INFINITE] != 0):
        number = np.nan
    elif wides[r, g.INFINITE] != 0:
        number = np.inf
    elif wides[r, g.MINUS_INFINITE] != 0:
        number = -np.inf
    elif group[e, at + g.STRANGE] != 0 or group[e, at + g.DECIMALS] != 0:
        return i64(_ASK)
    else:
        if group[e, at + g.INT0] != 0 or group[e, at + g.INT1] != 0:
            r = _with_integers(M, e, at, r)
        number = rounded_sum(M, r, floats)
    if mean:
        count = group[e, at + g.BOUND]
        if floats:
            number = np.float64(np.float32(number) / np.float32(count))
        else:
            number /= np.float64(count)
    return double_term(D, get(M, _SCRATCH), number, kinds.FLOAT if floats else kinds.DOUBLE)


@inner
def _with_integers(M: Ptr[g.GroupMemory], e: int, at: int, r: int) -> int:
    """The scratch accumulator with what another holds and the sum of the integers."""
    group, wides = g.cells(M), g.wides(M)
    for i in range(g.FIRST, g.END):
        wides[0, i] = wides[r, i]
    negative = group[e, at + g.INT1] < 0
    low, high = u64(group[e, at + g.INT0]), u64(group[e, at + g.INT1])
    low, high, _ = _negated(low, high, ZERO, negative)
    add_scaled(M, 0, high, low, -DOUBLE_LOWEST, negative)
    return i64(0)
