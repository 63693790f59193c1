"""Results of aggregates → ids of terms in the store's normal form.

In the flow: exact sums → **terms** → rows. The text is written to scratch memory, and looked up or added in the
dictionary (`D`, kernels/terms/table.py). An id of -1: the dictionary has no room.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow.shortest import shortest
from oxiseq.engine.kernels.flow.wide import (
    BILLION,
    DOUBLE_DIGITS,
    DOUBLE_HIGHEST,
    DOUBLE_LOWEST,
    FLOAT_DIGITS,
    FLOAT_LOWEST,
    ONE,
    ZERO,
    bits,
    divided,
    leading_zeros,
    made_double,
    magnitude,
    rounded,
    taken_apart,
)
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import byte, set_byte
from oxiseq.engine.kernels.terms.table import Terms, add, find, hashed

SCRATCH: Final = 640
"""Bytes of scratch memory: a double has up to 343 characters, its datatype 46; behind them digits are made."""
_DIGITS_AT: Final = 512
FULL: Final = -1

_XSD: Final = b'"^^<http://www.w3.org/2001/XMLSchema#'
_SUFFIXES: Final = np.zeros((4, 64), np.uint8)
_SIZES: Final = np.zeros(4, np.int64)
for _row, _name in enumerate((b"integer>", b"decimal>", b"float>", b"double>")):  # in the order of kinds
    _SIZES[_row] = len(_XSD + _name)
    _SUFFIXES[_row, : len(_XSD + _name)] = np.frombuffer(_XSD + _name, np.uint8)

_QUOTE: Final = ord('"')
_DASH: Final = ord("-")
_DOT: Final = ord(".")
_NOUGHT: Final = ord("0")
_TEN: Final = np.uint64(10)
_MAX_INT: Final = np.uint64(2**63 - 1)
_FRACTION: Final = 18
"""Digits of a decimal's fraction."""
_CHUNKS: Final = 5
"""Of nine digits: a magnitude of 128 bits has 39."""


@inner
def _written(D: Terms, scratch: int, at: int, kind: int, number: float, exact: int, quality: int) -> int:
    """The id of the literal whose quote and digits are from `scratch` to `at`."""
    row = kind - kinds.INTEGER
    for i in range(_SIZES[row]):
        set_byte(at + i, i64(_SUFFIXES[row, i]))
    size = at + _SIZES[row] - scratch
    h = hashed(scratch, 0, size)
    known = find(D, scratch, 0, size, h)
    if known == 0:
        known = add(D, scratch, 0, size, h, kind, number, exact, quality)
    return known if known != 0 else i64(FULL)


@inner
def _begun(scratch: int, negative: bool) -> int:
    """The place behind the quote and the sign."""
    set_byte(scratch, _QUOTE)
    if negative:
        set_byte(scratch + 1, _DASH)
        return scratch + 2
    return scratch + 1


@inner
def _put_digits(at: int, word: np.uint64) -> int:
    """Write a whole number; the place behind it."""
    size, rest = 1, word
    while rest >= _TEN:
        rest //= _TEN
        size += 1
    for i in range(size - 1, -1, -1):
        following = word // _TEN
        set_byte(at + i, _NOUGHT + i64(word - following * _TEN))
        word = following
    return at + size


@inner
def integer_term(D: Terms, scratch: int, number: int) -> int:
    """xsd:integer."""
    nearest = np.float64(number)
    quality = kinds.ROUNDED | kinds.EXACT_INTEGER
    c = magnitude(number)
    if leading_zeros(c) >= 11 or c & ((ONE << u64(11 - leading_zeros(c))) - ONE) == ZERO:
        quality |= kinds.EXACT_NUMBER
    at = _put_digits(_begun(scratch, number < 0), c)
    return _written(D, scratch, at, kinds.INTEGER, nearest, number, quality)


# --- decimals ---------------------------------------------------------------------------------------


@inner
def decimal_term(D: Terms, scratch: int, negative: bool, high: np.uint64, low: np.uint64) -> int:
    """xsd:decimal of a magnitude in units of 10^-18."""
    if high == ZERO and low == ZERO:
        set_byte(_begun(scratch, False), _NOUGHT)
        return _written(D, scratch, scratch + 2, kinds.DECIMAL, 0.0, 0, kinds.ROUNDED | _WHOLE)
    digits = scratch + _DIGITS_AT
    _make_digits(digits, high, low)
    point, end, first = digits + 9 * _CHUNKS - _FRACTION, digits + 9 * _CHUNKS, digits
    while end > point and byte(end - 1) == _NOUGHT:
        end -= 1
    while first < point - 1 and byte(first) == _NOUGHT:
        first += 1
    at = _begun(scratch, negative)
    for place in range(first, end):
        if place == point:
            set_byte(at, _DOT)
            at += 1
        set_byte(at, byte(place))
        at += 1
    number, whole = _nearest(negative, high, low)
    quality = kinds.ROUNDED | (kinds.EXACT_NUMBER if whole else 0)
    exact, mantissa = _mantissa(first, end, negative)
    scale = max(end - point, 0)
    if not exact or scale > kinds.MAX_SCALE:
        return _written(D, scratch, at, kinds.DECIMAL, number, 0, quality)
    quality |= kinds.EXACT_INTEGER | scale << kinds.SCALE_SHIFT
    return _written(D, scratch, at, kinds.DECIMAL, number, mantissa, quality)


_WHOLE: Final = kinds.EXACT_INTEGER | kinds.EXACT_NUMBER


@inner
def _make_digits(at: int, high: np.uint64, low: np.uint64) -> None:
    """Write the 45 last digits of a magnitude."""
    for chunk in range(_CHUNKS - 1, -1, -1):
        high, rest = divided(ZERO, high, BILLION)
        low, rest = divided(rest, low, BILLION)
        for i in range(8, -1, -1):
            following = rest // _TEN
            set_byte(at + 9 * chunk + i, _NOUGHT + i64(rest - following * _TEN))
            rest = following


@inner
def _mantissa(first: int, end: int, negative: bool) -> tuple[bool, int]:
    """The number that digits write, with a sign, if it has 64 bits."""
    while first < end and byte(first) == _NOUGHT:
        first += 1
    if end - first > 19:
        return False, i64(0)
    value = ZERO
    for place in range(first, end):
        value = value * _TEN + u64(byte(place) - _NOUGHT)
    if negative:
        return value <= _MAX_INT + ONE, i64(ZERO - value)
    return value <= _MAX_INT, i64(value)


@inner
def _nearest(negative: bool, high: np.uint64, low: np.uint64) -> tuple[float, bool]:
    """The double nearest to a magnitude > 0 in units of 10^-18, and whether it is just that."""
    shift = i64(0)
    if high == ZERO:
        high, low = low, ZERO
        shift = i64(64)
    zeros = leading_zeros(high)
    shift += zeros
    if zeros > 0:
        high = (high << u64(zeros)) | (low >> u64(64 - zeros))
        low <<= u64(zeros)
    high, rest = divided(ZERO, high, BILLION)  # high · 2^64 + low has its first digit at 2^127 now
    low, rest = divided(rest, low, BILLION)
    high, more = divided(ZERO, high, BILLION)
    low, more = divided(more, low, BILLION)
    zeros = leading_zeros(high)  # 2^127 / 10^18 > 2^64, so it is below 64
    window = (high << u64(zeros)) | (low >> u64(64 - zeros))
    below = (low << u64(zeros)) != ZERO or rest != ZERO or more != ZERO
    c, e, exact = rounded(window, below, 127 - zeros - shift, DOUBLE_DIGITS, DOUBLE_LOWEST)
    return made_double(negative, c, e, DOUBLE_HIGHEST), exact


# --- doubles and floats -----------------------------------------------------------------------------


@inner
def double_term(D: Terms, scratch: int, number: float, kind: int) -> int:
    """xsd:double, or xsd:float of a double that is one."""
    quality = kinds.ROUNDED | kinds.EXACT_NUMBER
    if number != number:
        at = _put_letters(_begun(scratch, False), ord("N"), ord("a"), ord("N"))
        return _written(D, scratch, at, kind, number, 0, quality)
    at = _begun(scratch, bits(number) < 0)
    c, e = taken_apart(number)
    if number - number != 0:
        at = _put_letters(at, ord("I"), ord("N"), ord("F"))
    elif c == ZERO:
        at = _put_digits(at, ZERO)
    elif kind == kinds.FLOAT:
        drop = max(DOUBLE_DIGITS - FLOAT_DIGITS, FLOAT_LOWEST - e)
        d, k = shortest(c >> u64(drop), e + drop, FLOAT_DIGITS, FLOAT_LOWEST)
        at = _put_decimal(at, d, k)
    else:
        d, k = shortest(c, e, DOUBLE_DIGITS, DOUBLE_LOWEST)
        at = _put_decimal(at, d, k)
    return _written(D, scratch, at, kind, number, 0, quality)


@inner
def _put_letters(at: int, a: int, b: int, c: int) -> int:
    set_byte(at, a)
    set_byte(at + 1, b)
    set_byte(at + 2, c)
    return at + 3


@inner
def _put_decimal(at: int, d: np.uint64, k: int) -> int:
    """Write d · 10^k without an exponent; the place behind it."""
    if k >= 0:
        at = _put_digits(at, d)
        for i in range(k):
            set_byte(at + i, _NOUGHT)
        return at + k
    size, rest = 1, d
    while rest >= _TEN:
        rest //= _TEN
        size += 1
    size = max(size, 1 - k)
    for i in range(size, -1, -1):
        if i == size + k:
            set_byte(at + i, _DOT)
        else:
            following = d // _TEN
            set_byte(at + i, _NOUGHT + i64(d - following * _TEN))
            d = following
    return at + size + 1


@kernel
def integer_terms(D: Terms, scratch: int, numbers: Array, ids: Array, done: int) -> int:
    """Write the ids of these i64 from number `done` on as xsd:integer to `ids` (u32); how many are done when the
    dictionary has no room."""
    for i in range(done, numbers.shape[0]):
        known = integer_term(D, scratch, numbers[i])
        if known == FULL:
            return i
        ids[i] = known
    return i64(numbers.shape[0])


@kernel
def large_terms(D: Terms, texts: int, ends: Array, numbers: Array, qualities: Array, ids: Array, done: int) -> int:
    """As `integer_terms`, of integers beyond 64 bits: their texts are texts[ends[i]:ends[i + 1]], `numbers` (f64) are
    the nearest doubles and `qualities` (u8) say whether those are exact."""
    for i in range(done, ids.shape[0]):
        start, size = texts + ends[i], ends[i + 1] - ends[i]
        h = hashed(start, 0, size)
        known = find(D, start, 0, size, h)
        if known == 0:
            known = add(D, start, 0, size, h, kinds.INTEGER, numbers[i], 0, i64(qualities[i]))
        if known == 0:
            return i
        ids[i] = known
    return i64(ids.shape[0])


@kernel
def number_terms(
    D: Terms, scratch: int, kind: Array, numbers: Array, high: Array, low: Array, ids: Array, done: int
) -> int:
    """As `integer_terms`, of decimals, floats and doubles: `kind` (i64; others are passed over), `numbers` (f64; of a
    decimal only the sign counts), and of decimals the magnitude in units of 10^-18, two u64."""
    for i in range(done, kind.shape[0]):
        if kind[i] == kinds.DECIMAL:
            known = decimal_term(D, scratch, numbers[i] < 0, high[i], low[i])
        elif kind[i] == kinds.FLOAT or kind[i] == kinds.DOUBLE:
            known = double_term(D, scratch, numbers[i], i64(kind[i]))
        else:
            continue
        if known == FULL:
            return i
        ids[i] = known
    return i64(kind.shape[0])
