"""Exact sums of values that come and go: integers, decimals, floats and doubles of one column of a group.

A float or double is added to an accumulator of fixed point that reaches over all of them. So a sum depends on what
there is alone, not on the order in which it came, and a value that goes leaves nothing behind. It is rounded when it is
told.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.flow import groups as g
from oxiseq.engine.kernels.flow.wide import (
    DOUBLE_DIGITS,
    DOUBLE_HIGHEST,
    DOUBLE_LOWEST,
    FLOAT_DIGITS,
    FLOAT_HIGHEST,
    FLOAT_LOWEST,
    ONE,
    ZERO,
    high_product,
    leading_zeros,
    made_double,
    magnitude,
    rounded,
    taken_apart,
)
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import Terms

_SCALES: Final = np.array([10 ** (18 - scale) for scale in range(kinds.MAX_SCALE + 1)], np.uint64)


@inner
def take_value(M: Ptr[g.GroupMemory], D: Terms, e: int, at: int, term: int, weight: int) -> None:
    """A value of group `e` comes, or goes, so many times. `at`: the word where its column's values begin."""
    group = g.cells(M)
    if term != 0:
        group[e, at + g.BOUND] += weight
    kind, quality = i64(worth.kind(D)[term]), i64(worth.quality(D)[term])
    if term == 0 or kind < kinds.INTEGER or kind > kinds.DOUBLE:
        group[e, at + g.ODD] += weight
    elif kind >= kinds.FLOAT:
        _take_double(M, e, at, kind, worth.number(D)[term], weight)
    else:
        if kind == kinds.DECIMAL:
            group[e, at + g.DECIMALS] += weight
        if not quality & kinds.EXACT_INTEGER:
            group[e, at + g.STRANGE] += weight
            g.scalars(M)[g.STRANGE_ROWS] += 1
        elif kind == kinds.INTEGER:
            _add_integer(M, e, at, worth.exact(D)[term], weight)
        else:
            _add_decimal(M, e, at, worth.exact(D)[term], quality >> kinds.SCALE_SHIFT, weight)


@inner
def _add_integer(M: Ptr[g.GroupMemory], e: int, at: int, number: int, weight: int) -> None:
    a, b = magnitude(number), magnitude(weight)
    low, high, negative = a * b, high_product(a, b), (number < 0) != (weight < 0)
    _add_words(g.cells(M), e, at + g.INT0, at + g.INT1 + 1, low, high, ZERO, negative)


@inner
def _add_decimal(M: Ptr[g.GroupMemory], e: int, at: int, mantissa: int, scale: int, weight: int) -> None:
    a, b, factor = magnitude(mantissa), magnitude(weight), _SCALES[scale]
    low, high = a * factor, high_product(a, factor)
    word0, word1, word2 = low * b, high_product(low, b), high_product(high, b)
    total = word1 + high * b
    if total < word1:
        word2 += ONE
    _add_words(g.cells(M), e, at + g.DEC0, at + g.DEC2 + 1, word0, total, word2, (mantissa < 0) != (weight < 0))


@inner
def _add_words(
    cells: Array, e: int, at: int, end: int, word0: np.uint64, word1: np.uint64, word2: np.uint64, negative: bool
) -> None:
    """Add ± three words to the number in two's complement in the cells [at, end) of a row."""
    carry, i = ZERO, 0
    while at + i < end and (i < 3 or carry != ZERO):
        word = word0 if i == 0 else word1 if i == 1 else word2 if i == 2 else ZERO
        known = u64(cells[e, at + i])
        if negative:
            left = known - word
            now = left - carry
            carry = ONE if known < word or left < carry else ZERO
        else:
            left = known + word
            now = left + carry
            carry = ONE if left < word or now < carry else ZERO
        cells[e, at + i] = i64(now)
        i += 1


# --- doubles ----------------------------------------------------------------------------------------


@inner
def _take_double(M: Ptr[g.GroupMemory], e: int, at: int, kind: int, number: float, weight: int) -> None:
    group, wides = g.cells(M), g.wides(M)
    r = group[e, at + g.WIDE]
    if r == 0:
        r = _fresh_wide(M)
        group[e, at + g.WIDE] = r
    wides[r, g.FLOATS if kind == kinds.FLOAT else g.DOUBLES] += weight
    if number - number == 0:
        c, exponent = taken_apart(number)
        b = magnitude(weight)
        add_scaled(M, r, high_product(c, b), c * b, exponent - DOUBLE_LOWEST, (number < 0) != (weight < 0))
    elif number != number:
        wides[r, g.NANS] += weight
    elif number > 0:
        wides[r, g.INFINITE] += weight
    else:
        wides[r, g.MINUS_INFINITE] += weight


@inner
def _fresh_wide(M: Ptr[g.GroupMemory]) -> int:
    """An accumulator of nothing; there is room."""
    scalars, wides = g.scalars(M), g.wides(M)
    r = scalars[g.WIDE_FREE]
    if r > 0:
        scalars[g.WIDE_FREE] = wides[r, 0]
    else:
        r = scalars[g.WIDE_TOP]
        scalars[g.WIDE_TOP] += 1
    scalars[g.WIDE_LIVE] += 1
    for i in range(g.END):
        wides[r, i] = 0
    return r


@inner
def release_wide(M: Ptr[g.GroupMemory], e: int, at: int, now: bool) -> None:
    """Give the accumulator back if nothing is in it, or `now`."""
    group, wides, scalars = g.cells(M), g.wides(M), g.scalars(M)
    r = group[e, at + g.WIDE]
    if r > 0 and (now or (wides[r, g.FLOATS] == 0 and wides[r, g.DOUBLES] == 0)):
        group[e, at + g.WIDE] = 0
        wides[r, 0] = scalars[g.WIDE_FREE]
        scalars[g.WIDE_FREE] = r
        scalars[g.WIDE_LIVE] -= 1


@inner
def add_scaled(M: Ptr[g.GroupMemory], r: int, high: np.uint64, low: np.uint64, shift: int, negative: bool) -> None:
    """Add ± a magnitude of two words, shifted by so many bits."""
    at = g.FIRST + (shift >> 6)
    bits = u64(shift & 63)
    word0, word1, word2 = low, high, ZERO
    if bits != ZERO:
        back = u64(64) - bits
        word0, word1, word2 = low << bits, (high << bits) | (low >> back), high >> back
    _add_words(g.wides(M), r, at, g.END, word0, word1, word2, negative)


@inner
def rounded_sum(M: Ptr[g.GroupMemory], r: int, floats: bool) -> float:
    """The double, or float, nearest to what an accumulator holds."""
    wides = g.wides(M)
    lowest, top = g.FIRST, g.END - 1
    while lowest < g.END and wides[r, lowest] == 0:
        lowest += 1
    if lowest == g.END:
        return 0.0
    negative = wides[r, g.END - 1] < 0
    while _magnitude_word(M, r, top, lowest, negative) == ZERO:
        top -= 1
    window = _magnitude_word(M, r, top, lowest, negative)
    zeros, rest = leading_zeros(window), lowest < top - 1
    if top > lowest:
        following = _magnitude_word(M, r, top - 1, lowest, negative)
        if zeros > 0:
            window = (window << u64(zeros)) | (following >> u64(64 - zeros))
            following <<= u64(zeros)
        rest = rest or following != ZERO
    else:
        window <<= u64(zeros)
    first = 64 * (top - g.FIRST) + 63 - zeros + DOUBLE_LOWEST
    if floats:
        c, e, _ = rounded(window, rest, first, FLOAT_DIGITS, FLOAT_LOWEST)
        return made_double(negative, c, e, FLOAT_HIGHEST)
    c, e, _ = rounded(window, rest, first, DOUBLE_DIGITS, DOUBLE_LOWEST)
    return made_double(negative, c, e, DOUBLE_HIGHEST)


@inner
def _magnitude_word(M: Ptr[g.GroupMemory], r: int, at: int, lowest: int, negative: bool) -> np.uint64:
    """A word of |what an accumulator holds|; `lowest`: the first one that is not 0."""
    word = u64(g.wides(M)[r, at])
    if not negative or at < lowest:
        return word
    return ZERO - word if at == lowest else ~word
