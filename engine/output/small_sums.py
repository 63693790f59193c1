"""Sums and averages of numbers of usual sizes as columns (semantics.md 2.6b).

In the flow: weights of groups → **numbers as columns** → terms (sums.py, which makes those of other sizes one by one).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import DIVISION_DIGITS
from oxiseq.engine.kernels.matches.nearest import nearest
from oxiseq.engine.kernels.matches.weights import LIMBS
from oxiseq.engine.matches.measures import BLOCK_BITS, Measures, number_of

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]
_MOST: Final = float(1 << 61)
"""Magnitudes of sums, in units of their last digit."""
_HALF_DIGITS: Final = 9
_MOST_EVENTS: Final = (1 << 63) // 10**_HALF_DIGITS
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64((1 << 32) - 1)


class SmallSums(NamedTuple):
    """What terms are made of (kernels/flow/results.py, number_terms): kinds, numbers, magnitudes of decimals in units
    of 10^-18; which rows are `made`, of which those of kind 0 are errors."""

    kind: I64
    numbers: NDArray[np.float64]
    high: U64
    low: U64
    made: Mask


def small_sums(name: str, m: int, weights: U64, form: I64, measures: Measures) -> SmallSums:
    """SUM or AVG of the values of a measure, of n weights: decimals whose digits are few, and doubles."""
    count, average = len(weights), name == "AVG"
    kind, failed, finite = measures.kinds_of(m, weights)
    events, few = np.ones(count, np.int64), np.ones(count, np.bool_)
    if average:
        events, few = number_of(measures.counting(m), weights, form)
        few &= (events > 0) & (events < _MOST_EVENTS)
    sums = {column: i for column, i in measures.columns_of(m) if _words(i, weights, form).any()}
    exact = (kind == kinds.DECIMAL) | ((kind == kinds.INTEGER) & average)
    rows = np.flatnonzero(few & finite & ~failed & exact)
    numbers, high, low = np.zeros(count), np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    made = failed.copy()
    if len(rows):
        total, scale, fits = _whole(sums, weights[rows], form)
        rows, total = rows[fits], total[fits]
        high[rows], low[rows] = _units(np.abs(total), scale, events[rows])
        numbers[rows], kind[rows], made[rows] = np.where(total < 0, -1.0, 1.0), kinds.DECIMAL, True
    rows = np.flatnonzero(few & finite & ~failed & (kind == kinds.DOUBLE))
    if len(rows) or average:  # with none, too: then the kernel is compiled with the others
        found = _doubles(sums, weights[rows], form)
        if average:
            found = found / events[rows]
        fits = ~np.isnan(found)
        numbers[rows[fits]], made[rows[fits]] = found[fits], True
    kind[~made | failed] = 0
    return SmallSums(kind, numbers, high, low, made)


def _words(i: int, weights: U64, form: I64) -> U64:
    limbs = int(form[LIMBS])
    return weights[:, (1 + i) * limbs + 1 : (2 + i) * limbs + 1]


def _whole(sums: dict[tuple[int, int, int], int], weights: U64, form: I64) -> tuple[I64, int, Mask]:
    """The sums as multiples of 10^-scale, and where they are such of usual size."""
    ours = {k: i for (_, k, j), i in sums.items() if j == 0 and k <= DIVISION_DIGITS}
    scale, fits = max(ours, default=0), np.ones(len(weights), np.bool_)
    total, size = np.zeros(len(weights), np.int64), np.zeros(len(weights))
    for k, i in ours.items():
        number, small = number_of(1 + i, weights, form)
        size += np.abs(number.astype(np.float64)) * float(10 ** (scale - k))
        fits &= small
        with np.errstate(over="ignore"):
            total += number * 10 ** (scale - k)
    for (_, k, j), i in sums.items():
        if j or k > DIVISION_DIGITS:
            fits &= ~_words(i, weights, form).any(axis=1)
    return total, scale, fits & (size < _MOST)


def _units(total: I64, scale: int, events: I64) -> tuple[U64, U64]:
    """total · 10^-scale / events in units of 10^-18, rounded down, as two words: high, low."""
    digits = DIVISION_DIGITS - scale
    some = min(digits, _HALF_DIGITS)
    whole, rest = np.divmod(total, events)
    first, rest = np.divmod(rest * 10**some, events)
    behind = (first * 10 ** (digits - some) + rest * 10 ** (digits - some) // events).astype(np.uint64)
    unit = 10**digits
    q0, q1 = whole.astype(np.uint64) & _LOW, whole.astype(np.uint64) >> _HALF
    m0, m1 = np.uint64(unit & int(_LOW)), np.uint64(unit >> 32)
    product = q0 * m0
    middle = q1 * m0 + (product >> _HALF)
    other = q0 * m1 + (middle & _LOW)
    low = (other << _HALF | product & _LOW) + behind
    high = q1 * m1 + (middle >> _HALF) + (other >> _HALF) + (low < behind)
    return high, low


def _doubles(sums: dict[tuple[int, int, int], int], weights: U64, form: I64) -> NDArray[np.float64]:
    """The sums as doubles, rounded once; NaN: it is none of the usual ones."""
    ours = {j: i for (_, k, j), i in sums.items() if k == 0}
    lowest, limbs, found = min(ours, default=0), int(form[LIMBS]), np.zeros(len(weights))
    shift = np.array([BLOCK_BITS * (j - lowest) for j in ours], np.int64)
    first = np.array([1 + (1 + i) * limbs for i in ours.values()], np.int64)
    room = np.zeros(limbs + int(shift.max(initial=0)) // 64 + 2, np.uint64)
    nearest(np.ascontiguousarray(weights), first, shift, limbs, BLOCK_BITS * lowest, room, found)
    for (_, k, _), i in sums.items():
        if k:
            found[_words(i, weights, form).any(axis=1)] = np.nan
    return found
