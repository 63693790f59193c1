"""Numbers and dates as literals write them: text → value, and the store's way to write it.

In the flow: plain.py's literals. Only shapes are read whose value and normal form are certain: few enough digits
that a mantissa is exact and one division rounds it, the years 1 to 9999. Places are addresses.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.raw import byte, set_byte

UNUSUAL: Final = 0
"""Nothing is known."""
PLAIN: Final = 1
"""The store writes it unchanged."""
NORMALISED: Final = 2
"""The store writes it in another way, which is known."""

_COLON: Final = ord(":")
_DOT: Final = ord(".")
_DASH: Final = ord("-")
_LETTER_E: Final = ord("e")
_LETTER_T: Final = ord("T")
_LETTER_Z: Final = ord("Z")
_PLUS: Final = ord("+")
_ZERO: Final = ord("0")
_CASE: Final = 0x20
"""The bit that makes a letter a small one."""


@inner
def is_digit(c: int) -> bool:
    return _ZERO <= c <= _ZERO + 9


# --- numbers ----------------------------------------------------------------------------------------

_POWERS = np.array([10**k for k in range(19)], np.int64)
_FIVES = np.array([5**k for k in range(19)], np.int64)
ALL_EXACT: Final = kinds.ROUNDED | kinds.EXACT_INTEGER | kinds.EXACT_NUMBER
_MAX_INTEGER_DIGITS: Final = 18
_MAX_DIGITS: Final = 15
"""Decimals of so many digits are written back by doubles unchanged, and are exact as a mantissa."""
_FLOAT_DIGITS: Final = 6
_FLOAT_SCALE: Final = 3


@inner
def _digits(at: int, end: int, limit: int) -> tuple[int, int]:
    """(value, place behind) of at most `limit` digits."""
    value = i64(0)
    end = min(end, at + limit)
    while at < end and is_digit(byte(at)):
        value = value * 10 + (byte(at) - _ZERO)
        at += 1
    return value, at


@inner
def _exponent(at: int, end: int) -> tuple[bool, int]:
    """The exponent behind an `e`: at most two digits."""
    negative = byte(at) == _DASH
    if negative or byte(at) == _PLUS:
        at += 1
    value, stop = _digits(at, end, 2)
    return stop > at and stop == end, -value if negative else value


@inner
def read_number(at: int, end: int, kind: int) -> tuple[int, bool, int, int]:
    """(form, negative, mantissa, scale) of a number with at least a digit on each side of its dot, if any.

    The scale is the smallest possible one. A leading zero or `+` is unusual, and so is minus zero.
    """
    limit = _MAX_INTEGER_DIGITS if kind == kinds.INTEGER else _MAX_DIGITS
    negative = byte(at) == _DASH
    if negative:
        at += 1
    mantissa, stop = _digits(at, end, limit)
    if stop == at or (byte(at) == _ZERO and stop > at + 1):
        return UNUSUAL, False, 0, 0
    scale, form = i64(0), PLAIN
    at = stop
    if at < end and byte(at) == _DOT and kind != kinds.INTEGER:
        fraction, stop = _digits(at + 1, end, limit)
        scale = stop - (at + 1)
        if scale == 0 or mantissa >= _POWERS[_MAX_DIGITS - scale]:
            return UNUSUAL, False, 0, 0
        mantissa = mantissa * _POWERS[scale] + fraction
        at = stop
    if at < end and byte(at) | _CASE == _LETTER_E and kind >= kinds.FLOAT:
        found, exponent = _exponent(at + 1, end)
        if not found:
            return UNUSUAL, False, 0, 0
        scale -= exponent
        form = NORMALISED
        at = end
    if at != end or (negative and mantissa == 0):
        return UNUSUAL, False, 0, 0
    return _reduced(form, negative, mantissa, scale, kind)


@inner
def _reduced(form: int, negative: bool, mantissa: int, scale: int, kind: int) -> tuple[int, bool, int, int]:
    """The same number with the smallest scale, which is not negative; UNUSUAL for too many digits."""
    if mantissa == 0:
        return (NORMALISED if scale != 0 else form), negative, 0, 0
    while scale > 0 and mantissa % 10 == 0:
        mantissa //= 10
        scale -= 1
        form = NORMALISED
    digits, most = _MAX_DIGITS, _MAX_DIGITS
    if kind == kinds.INTEGER:
        digits = _MAX_INTEGER_DIGITS
    elif kind == kinds.FLOAT:
        digits, most = _FLOAT_DIGITS, _FLOAT_SCALE
    while scale < 0 and mantissa < _POWERS[digits]:
        mantissa *= 10
        scale += 1
    if scale < 0 or scale > most or mantissa >= _POWERS[digits]:
        return UNUSUAL, False, 0, 0
    return form, negative, mantissa, scale


@inner
def number_value(kind: int, negative: bool, mantissa: int, scale: int) -> tuple[float, int, int]:
    """(number, exact, quality): one division of exact operands, rounded once."""
    signed = -mantissa if negative else mantissa
    number = np.float64(signed)
    if scale > 0:
        number /= np.float64(_POWERS[scale])
    if kind == kinds.FLOAT:
        number = np.float64(np.float32(number))
    if kind >= kinds.FLOAT:
        return number, i64(0), kinds.ROUNDED | kinds.EXACT_NUMBER
    if scale > 0:
        whole = kinds.EXACT_NUMBER if mantissa % _FIVES[scale] == 0 else 0
        return number, signed, kinds.ROUNDED | kinds.EXACT_INTEGER | whole | scale << kinds.SCALE_SHIFT
    if i64(number) == signed:
        return number, signed, ALL_EXACT
    return number, signed, kinds.ROUNDED | kinds.EXACT_INTEGER


@inner
def write_number(at: int, negative: bool, mantissa: int, scale: int) -> int:
    """Write a number without an exponent; the place behind it."""
    if negative:
        set_byte(at, _DASH)
        at += 1
    size = 1
    while size < 19 and mantissa >= _POWERS[size]:
        size += 1
    size = max(size, scale + 1)
    stop = at + size + (1 if scale > 0 else 0)
    to = stop
    for k in range(size):
        to -= 1
        set_byte(to, _ZERO + mantissa % 10)
        mantissa //= 10
        if k + 1 == scale:
            to -= 1
            set_byte(to, _DOT)
    return stop


# --- dates ------------------------------------------------------------------------------------------

_SHAPE: Final = 19
"""Characters of `YYYY-MM-DDThh:mm:ss`."""


@inner
def _two(at: int) -> int:
    """The number that two digits write; 100 if they are none."""
    if is_digit(byte(at)) and is_digit(byte(at + 1)):
        return (byte(at) - _ZERO) * 10 + (byte(at + 1) - _ZERO)
    return 100


@inner
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date after the year 0 (Hinnant's algorithm); -1_000_000 if there is none."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 2:
        last = 29 if leap else 28
    else:
        last = 30 + ((month + (month >> 3)) & 1)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > last:
        return -1_000_000
    if month <= 2:
        year -= 1
        month += 12
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@inner
def read_date(at: int, end: int) -> tuple[int, int, bool, int, int]:
    """(form, microseconds, zoned, place behind the fraction without its last zeros, place of the zone).

    Form UNUSUAL for what is no dateTime of the years 1 to 9999 in whole microseconds.
    """
    bad = UNUSUAL, i64(0), False, i64(0), i64(0)
    if end - at < _SHAPE or byte(at + 4) != _DASH or byte(at + 7) != _DASH or byte(at + 10) != _LETTER_T:
        return bad
    high, low, hour, minute, second = _two(at), _two(at + 2), _two(at + 11), _two(at + 14), _two(at + 17)
    if high > 99 or low > 99 or hour > 23 or minute > 59 or second > 59:
        return bad
    if byte(at + 13) != _COLON or byte(at + 16) != _COLON:
        return bad
    days = _days(high * 100 + low, _two(at + 5), _two(at + 8))
    if days == -1_000_000:
        return bad
    micros = ((days * 24 + hour) * 60 + minute) * 60 + second
    at += _SHAPE
    kept, form = at, PLAIN
    fraction = i64(0)
    if at < end and byte(at) == _DOT:
        value, stop = _digits(at + 1, end, 9)
        size = stop - (at + 1)
        if size == 0:
            return bad
        while size > 0 and value % 10 == 0:
            value //= 10
            size -= 1
            form = NORMALISED
        if size > 6:
            return bad
        fraction = value * _POWERS[6 - size]
        kept = at + 1 + size if size > 0 else at
        at = stop
    if at == end:
        return form, micros * 1_000_000 + fraction, False, kept, at
    if byte(at) == _LETTER_Z and at + 1 == end:
        return form, micros * 1_000_000 + fraction, True, kept, at
    offset = read_zone(at, end)
    if offset == 100_000:
        return bad
    form = NORMALISED if offset == 0 else form
    return form, (micros - offset * 60) * 1_000_000 + fraction, True, kept, at


@inner
def read_zone(at: int, end: int) -> int:
    """Minutes of `+hh:mm`, below 14 hours; 100_000 for anything else, and for -00:00."""
    if end - at != 6 or byte(at + 3) != _COLON or (byte(at) != _PLUS and byte(at) != _DASH):
        return 100_000
    hours, minutes = _two(at + 1), _two(at + 4)
    if hours > 13 or minutes > 59:
        return 100_000
    offset = hours * 60 + minutes
    if byte(at) == _DASH:
        return 100_000 if offset == 0 else -offset
    return offset
