"""Terms whose text alone, byte by byte, tells that they are valid and what they are worth.

Where it stands: token of N-Quads → **plain or not** → term table. A token is *plain* when pyoxigraph's strict
parser certainly takes it and the store certainly writes it as it stands; *normalised* when the store writes it
in another way that is known here (prices with trailing zeros, doubles with an exponent). Everything else is
*unusual*, which says nothing about it: Python asks pyoxigraph. The twin of `plain_literal` is term_value of
normalise, in engine/terms; tests compare them.

All places are addresses; tokens end before `end`, and PADDING bytes are readable behind it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.options import inner
from oxiseq.engine.kernels.raw import byte, move, set_byte, set_word, word
from oxiseq.engine.kernels.scan import every, find_byte, find_special

UNUSUAL: Final = 0
PLAIN: Final = 1
NORMALISED: Final = 2
"""The normal form, of the length told, stands in the scratch memory."""

SCRATCH_SPARE: Final = 64
"""A normal form is at most so much longer than the token."""

# --- classes of bytes -------------------------------------------------------------------------------

_ALPHA: Final = 1
_DIGIT: Final = 2
_HEX: Final = 4
SCHEME: Final = 8
_HOST: Final = 16
_PATH: Final = 32
LABEL: Final = 64
"""In blank node labels and language tags, `-` too."""


def _classes() -> np.ndarray:
    table = np.zeros(256, np.uint8)
    lower, upper, digits = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
    for bit, members in (
        (_ALPHA, lower + upper),
        (_DIGIT, digits),
        (_HEX, digits + b"abcdefABCDEF"),
        (SCHEME, lower + upper + digits + b"+-."),
        (_HOST, lower + upper + digits + b"-."),
        (_PATH, lower + upper + digits + b"-._~!$&'()*+,;=:@/?"),
        (LABEL, lower + upper + digits + b"_-"),
    ):
        table[list(members)] |= bit
    return table


_CLASSES: Final = _classes()

_COLON: Final = ord(":")
_DOT: Final = ord(".")
_DASH: Final = ord("-")
_HASH: Final = ord("#")
_LETTER_E: Final = ord("e")
_LETTER_T: Final = ord("T")
_LETTER_Z: Final = ord("Z")
_PERCENT: Final = ord("%")
_PLUS: Final = ord("+")
_QUESTION: Final = ord("?")
_QUOTE: Final = ord('"')
_SLASH: Final = ord("/")
_ZERO: Final = ord("0")
_AT: Final = ord("@")
_CARET: Final = ord("^")
_LESS: Final = ord("<")
_UNDERSCORE: Final = ord("_")
_QUOTES: Final = every(_QUOTE)
_CASE: Final = 0x20
"""The bit that makes a letter a small one."""


@inner
def has_class(c: int, classes: int) -> bool:
    """Whether a byte is in one of the classes."""
    return (_CLASSES[np.uint64(c)] & classes) != 0


@inner
def is_digit(c: int) -> bool:
    return _ZERO <= c <= _ZERO + 9


# --- IRIs and blank nodes ---------------------------------------------------------------------------


@inner
def plain_iri(at: int, end: int) -> bool:
    """Whether `<...>` is an absolute ASCII IRI: host names (no user, no IP literal), %HH, one fragment."""
    at += 1
    end -= 1
    if at >= end or not has_class(byte(at), _ALPHA):
        return False
    while has_class(byte(at), SCHEME):
        at += 1
    if byte(at) != _COLON:
        return False
    at += 1
    if byte(at) == _SLASH and byte(at + 1) == _SLASH:
        at += 2
        while has_class(byte(at), _HOST):
            at += 1
        if byte(at) == _COLON:
            at += 1
            while is_digit(byte(at)):
                at += 1
        if at < end and byte(at) != _SLASH and byte(at) != _QUESTION and byte(at) != _HASH:
            return False
    return _plain_path(at, end)


@inner
def _plain_path(at: int, end: int) -> bool:
    fragment = False
    while at < end:
        c = byte(at)
        if has_class(c, _PATH):
            at += 1
        elif c == _PERCENT and at + 2 < end and has_class(byte(at + 1), _HEX) and has_class(byte(at + 2), _HEX):
            at += 3
        elif c == _HASH and not fragment:
            fragment = True
            at += 1
        else:
            return False
    return True


@inner
def plain_name(at: int, end: int) -> bool:
    """Whether a token that begins with `<` or `_` is a plain IRI or a blank node, whose tokens are all plain."""
    return byte(at) == _UNDERSCORE or plain_iri(at, end)


# --- strings ----------------------------------------------------------------------------------------


@inner
def plain_text(at: int, end: int) -> bool:
    """Whether it is UTF-8 that is written in quotes as it stands."""
    while True:
        at = find_special(at, end)
        if at >= end:
            return True
        if byte(at) < 0xC2:
            return False
        at = _after_character(at, end)
        if at == 0:
            return False


@inner
def _after_character(at: int, end: int) -> int:
    """The place behind a character of two to four bytes; 0 if it is none, or is one that `str` escapes."""
    c = byte(at)
    size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
    if c > 0xF4 or at + size > end:
        return 0
    code = c & (0x7F >> size)
    for i in range(1, size):
        c = byte(at + i)
        if c & 0xC0 != 0x80:
            return 0
        code = code << 6 | (c & 0x3F)
    if size == 3 and (code < 0x800 or 0xD800 <= code < 0xE000 or code >= 0xFFFE):
        return 0
    if size == 4 and (code < 0x10000 or code > 0x10FFFF):
        return 0
    return at + size


@inner
def _plain_tag(at: int, end: int) -> bool:
    """Whether it is a small-letter language of two or three letters, with a region of two or without."""
    size = end - at
    if size == 5 or size == 6:
        if byte(end - 3) != _DASH or not (_is_small(byte(end - 2)) and _is_small(byte(end - 1))):
            return False
        end -= 3
        size -= 3
    if size != 2 and size != 3:
        return False
    while at < end:
        if not _is_small(byte(at)):
            return False
        at += 1
    return True


@inner
def _is_small(c: int) -> bool:
    return 97 <= c <= 122


# --- datatypes --------------------------------------------------------------------------------------

XSD_IRI: Final = b"<http://www.w3.org/2001/XMLSchema#"
_XSD_SIZE: Final = len(XSD_IRI)
_XSD_0, _XSD_1, _XSD_2, _XSD_3 = (np.uint64(int.from_bytes(XSD_IRI[i : i + 8], "little")) for i in (0, 8, 16, 24))
_W3C: Final = b"<http://www.w3.org/"
_W3C_END: Final = np.uint64(int.from_bytes(_W3C[11:19], "little"))


def _name(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(name.encode(), "little"))


_N_INTEGER, _N_DECIMAL, _N_DOUBLE, _N_FLOAT = _name("integer"), _name("decimal"), _name("double"), _name("float")
_N_BOOLEAN, _N_DATETIME, _N_STRING = _name("boolean"), _name("dateTime"), _name("string")
_N_LONG, _N_INT, _N_SHORT, _N_BYTE = _name("long"), _name("int"), _name("short"), _name("byte")
_N_TRUE, _N_FALSE = _name("true"), _name("false")
_N_STAMP, _N_STAMP_END = _name("dateTime"), _name("Stamp")
_INTEGER_END: Final = _name("integer>")

_FOREIGN: Final = np.uint64(0)
"""A datatype of nobody in particular."""
_RESERVED: Final = np.uint64(1)
"""A datatype that is not looked at here."""
_STAMP: Final = np.uint64(2)


@inner
def _datatype(at: int, end: int) -> np.uint64:
    """The datatype `<...>`: its name in XSD as a word, or one of the three above."""
    size = end - at
    if size > _XSD_SIZE and word(at) == _XSD_0 and word(at + 8) == _XSD_1 and word(at + 16) == _XSD_2:
        if word(at + 24) == _XSD_3 and byte(at + 32) == 97 and byte(at + 33) == _HASH:
            at += _XSD_SIZE
            size = end - 1 - at
            name = word(at)
            if size < 8:
                return name & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
            if size == 8:
                return name
            if size == 13 and name == _N_STAMP and word(at + 8) & np.uint64(0xFFFFFFFFFF) == _N_STAMP_END:
                return _STAMP
            return _RESERVED
    if size > 19 and word(at) == _XSD_0 and word(at + 11) == _W3C_END:
        return _RESERVED
    return _FOREIGN


# --- numbers ----------------------------------------------------------------------------------------

_POWERS = np.array([10**k for k in range(19)], np.int64)
_FIVES = np.array([5**k for k in range(19)], np.int64)
_ALL_EXACT: Final = kinds.ROUNDED | kinds.EXACT_INTEGER | kinds.EXACT_NUMBER
_MAX_INTEGER_DIGITS: Final = 18
_MAX_DIGITS: Final = 15
"""Decimals of so many digits are written back by doubles as they stand, and are exact as a mantissa."""
_FLOAT_DIGITS: Final = 6
_FLOAT_SCALE: Final = 3


@inner
def _digits(at: int, end: int, limit: int) -> tuple[int, int]:
    """(value, place behind) of at most `limit` digits."""
    value = np.int64(0)
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
def _read_number(at: int, end: int, kind: int) -> tuple[int, bool, int, int]:
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
    scale, form = np.int64(0), PLAIN
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
def _number_value(kind: int, negative: bool, mantissa: int, scale: int) -> tuple[float, int, int]:
    """(number, exact, quality): one division of exact operands, rounded once."""
    signed = -mantissa if negative else mantissa
    number = np.float64(signed)
    if scale > 0:
        number /= np.float64(_POWERS[scale])
    if kind == kinds.FLOAT:
        number = np.float64(np.float32(number))
    if kind >= kinds.FLOAT:
        return number, np.int64(0), kinds.ROUNDED | kinds.EXACT_NUMBER
    if scale > 0:
        whole = kinds.EXACT_NUMBER if mantissa % _FIVES[scale] == 0 else 0
        return number, signed, kinds.ROUNDED | kinds.EXACT_INTEGER | whole | scale << kinds.SCALE_SHIFT
    if np.int64(number) == signed:
        return number, signed, _ALL_EXACT
    return number, signed, kinds.ROUNDED | kinds.EXACT_INTEGER


@inner
def _write_number(at: int, negative: bool, mantissa: int, scale: int) -> int:
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
def _read_date(at: int, end: int) -> tuple[int, int, bool, int, int]:
    """(form, microseconds, zoned, place behind the fraction without its last zeros, place of the zone).

    Form UNUSUAL for what is no dateTime of the years 1 to 9999 in whole microseconds.
    """
    bad = UNUSUAL, np.int64(0), False, np.int64(0), np.int64(0)
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
    fraction = np.int64(0)
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
    offset = _read_zone(at, end)
    if offset == 100_000:
        return bad
    form = NORMALISED if offset == 0 else form
    return form, (micros - offset * 60) * 1_000_000 + fraction, True, kept, at


@inner
def _read_zone(at: int, end: int) -> int:
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


# --- literals ---------------------------------------------------------------------------------------


@inner
def plain_literal(at: int, end: int, scratch: int) -> tuple[int, int, float, int, int, int]:
    """(form, kind, number, exact, quality, length of a normalised form) of a literal's token.

    `scratch`: the address of as many bytes as the token has, and SCRATCH_SPARE.
    """
    quote = find_byte(at + 1, end, _QUOTES)
    if quote + 1 == end:
        if not plain_text(at + 1, quote):
            return UNUSUAL, 0, 0.0, 0, 0, 0
        return PLAIN, kinds.STRING, 0.0, 0, kinds.EMPTY if quote == at + 1 else 0, 0
    c = byte(quote + 1)
    if c == _AT:
        if plain_text(at + 1, quote) and _plain_tag(quote + 2, end):
            return PLAIN, kinds.LANGSTRING, 0.0, 0, 0, 0
        return UNUSUAL, 0, 0.0, 0, 0, 0
    if c != _CARET or byte(quote + 3) != _LESS:
        return UNUSUAL, 0, 0.0, 0, 0, 0
    name = _datatype(quote + 3, end)
    if name == _N_DATETIME:
        return _date_literal(at, quote, end, scratch)
    kind = _numeric_kind(name)
    if kind != 0:
        return _number_literal(at, quote, end, kind, name, scratch)
    return _other_literal(at, quote, end, name, scratch)


@inner
def _numeric_kind(name: np.uint64) -> int:
    if name == _N_INTEGER or name == _N_LONG or name == _N_INT or name == _N_SHORT or name == _N_BYTE:
        return kinds.INTEGER
    if name == _N_DECIMAL:
        return kinds.DECIMAL
    if name == _N_DOUBLE:
        return kinds.DOUBLE
    if name == _N_FLOAT:
        return kinds.FLOAT
    return 0


@inner
def _number_literal(
    at: int, quote: int, end: int, kind: int, name: np.uint64, scratch: int
) -> tuple[int, int, float, int, int, int]:
    form, negative, mantissa, scale = _read_number(at + 1, quote, kind)
    if form == UNUSUAL:
        return UNUSUAL, 0, 0.0, 0, 0, 0
    number, exact, quality = _number_value(kind, negative, mantissa, scale)
    if kind == kinds.INTEGER and name != _N_INTEGER:  # a derived type: the store knows integers only
        head = quote - at + 3 + _XSD_SIZE
        move(scratch, at, head)
        set_word(scratch + head, _INTEGER_END)
        return NORMALISED, kind, number, exact, quality, head + 8
    if form == PLAIN:
        return PLAIN, kind, number, exact, quality, 0
    set_byte(scratch, _QUOTE)
    stop = _write_number(scratch + 1, negative, mantissa, scale)
    move(stop, quote, end - quote)
    return NORMALISED, kind, number, exact, quality, stop + (end - quote) - scratch


@inner
def _date_literal(at: int, quote: int, end: int, scratch: int) -> tuple[int, int, float, int, int, int]:
    form, micros, zoned, kept, zone = _read_date(at + 1, quote)
    if form == UNUSUAL:
        return UNUSUAL, 0, 0.0, 0, 0, 0
    quality = kinds.EXACT_INTEGER | (kinds.ZONED if zoned else 0)
    if form == PLAIN:
        return PLAIN, kinds.DATETIME, np.float64(micros), micros, quality, 0
    size = kept - at
    move(scratch, at, size)
    if zoned and (byte(zone) == _LETTER_Z or _read_zone(zone, quote) == 0):
        set_byte(scratch + size, _LETTER_Z)
        size += 1
        zone = quote
    move(scratch + size, zone, end - zone)
    return NORMALISED, kinds.DATETIME, np.float64(micros), micros, quality, size + (end - zone)


@inner
def _other_literal(
    at: int, quote: int, end: int, name: np.uint64, scratch: int
) -> tuple[int, int, float, int, int, int]:
    """Booleans, strings that say so, and literals of datatypes of nobody in particular."""
    if name == _N_BOOLEAN:
        size = quote - (at + 1)
        text = word(at + 1)
        if size == 4 and text & np.uint64(0xFFFFFFFF) == _N_TRUE:
            return PLAIN, kinds.BOOLEAN, 1.0, 1, _ALL_EXACT, 0
        if size == 5 and text & np.uint64(0xFFFFFFFFFF) == _N_FALSE:
            return PLAIN, kinds.BOOLEAN, 0.0, 0, _ALL_EXACT, 0
        return UNUSUAL, 0, 0.0, 0, 0, 0
    if name == _N_STRING and plain_text(at + 1, quote):
        size = quote + 1 - at
        move(scratch, at, size)
        return NORMALISED, kinds.STRING, 0.0, 0, kinds.EMPTY if size == 2 else 0, size
    if name == _FOREIGN and plain_text(at + 1, quote) and plain_iri(quote + 3, end):
        return PLAIN, kinds.UNKNOWN, 0.0, 0, 0, 0
    return UNUSUAL, 0, 0.0, 0, 0, 0


@inner
def plain_time(at: int, end: int) -> tuple[bool, int]:
    """(known, microseconds since 1970) of a literal that says when: a plain dateTime (no zone: UTC) or integer."""
    if byte(at) != _QUOTE:
        return False, np.int64(0)
    quote = find_byte(at + 1, end, _QUOTES)
    if end - quote < 4 or byte(quote + 1) != _CARET or byte(quote + 3) != _LESS:
        return False, np.int64(0)
    name = _datatype(quote + 3, end)
    if name == _N_DATETIME or name == _STAMP:
        form, micros, _, _, _ = _read_date(at + 1, quote)
        return form != UNUSUAL, micros
    if name == _N_INTEGER or name == _N_LONG:
        form, negative, mantissa, _ = _read_number(at + 1, quote, kinds.INTEGER)
        return form != UNUSUAL, -mantissa if negative else mantissa
    return False, np.int64(0)
