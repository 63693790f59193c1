"""Terms whose text alone, byte by byte, shows that they are valid and what their values are.

In the flow: token of N-Quads → **plain or not** → term table. A token is *plain* when pyoxigraph's strict
parser certainly takes it and the store certainly writes it unchanged; *normalised* when the store writes it
in another way that is known here (prices with trailing zeros, doubles with an exponent). Everything else is
*unusual*, which says nothing about it: Python asks pyoxigraph. The twin of `plain_literal` is term_value of
normalise, in engine/terms; tests compare them.

A normal form is written to scratch memory, and its length returned. All places are addresses; tokens end before `end`,
and PADDING bytes are readable behind it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.raw import byte, move, set_byte, set_word, word
from oxiseq.engine.kernels.memory.scan import every, find_byte, find_special
from oxiseq.engine.kernels.terms.numerals import (
    ALL_EXACT,
    NORMALISED,
    PLAIN,
    UNUSUAL,
    is_digit,
    number_value,
    read_date,
    read_number,
    read_zone,
    write_number,
)

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
_DASH: Final = ord("-")
_HASH: Final = ord("#")
_LETTER_Z: Final = ord("Z")
_PERCENT: Final = ord("%")
_QUESTION: Final = ord("?")
_QUOTE: Final = ord('"')
_SLASH: Final = ord("/")
_AT: Final = ord("@")
_CARET: Final = ord("^")
_LESS: Final = ord("<")
_UNDERSCORE: Final = ord("_")
_QUOTES: Final = every(_QUOTE)


@inner
def has_class(c: int, classes: int) -> bool:
    """Whether a byte is in one of the classes."""
    return (_CLASSES[u64(c)] & classes) != 0


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
    """Whether it is UTF-8 that is written in quotes unchanged."""
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
"""A datatype without a special meaning."""
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
                return name & ((u64(1) << u64(8 * size)) - u64(1))
            if size == 8:
                return name
            if size == 13 and name == _N_STAMP and word(at + 8) & u64(0xFFFFFFFFFF) == _N_STAMP_END:
                return _STAMP
            return _RESERVED
    if size > 19 and word(at) == _XSD_0 and word(at + 11) == _W3C_END:
        return _RESERVED
    return _FOREIGN


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
    form, negative, mantissa, scale = read_number(at + 1, quote, kind)
    if form == UNUSUAL:
        return UNUSUAL, 0, 0.0, 0, 0, 0
    number, exact, quality = number_value(kind, negative, mantissa, scale)
    if kind == kinds.INTEGER and name != _N_INTEGER:  # a derived type: the store knows integers only
        head = quote - at + 3 + _XSD_SIZE
        move(scratch, at, head)
        set_word(scratch + head, _INTEGER_END)
        return NORMALISED, kind, number, exact, quality, head + 8
    if form == PLAIN:
        return PLAIN, kind, number, exact, quality, 0
    set_byte(scratch, _QUOTE)
    stop = write_number(scratch + 1, negative, mantissa, scale)
    move(stop, quote, end - quote)
    return NORMALISED, kind, number, exact, quality, stop + (end - quote) - scratch


@inner
def _date_literal(at: int, quote: int, end: int, scratch: int) -> tuple[int, int, float, int, int, int]:
    form, micros, zoned, kept, zone = read_date(at + 1, quote)
    if form == UNUSUAL:
        return UNUSUAL, 0, 0.0, 0, 0, 0
    quality = kinds.EXACT_INTEGER | (kinds.ZONED if zoned else 0)
    if form == PLAIN:
        return PLAIN, kinds.DATETIME, np.float64(micros), micros, quality, 0
    size = kept - at
    move(scratch, at, size)
    if zoned and (byte(zone) == _LETTER_Z or read_zone(zone, quote) == 0):
        set_byte(scratch + size, _LETTER_Z)
        size += 1
        zone = quote
    move(scratch + size, zone, end - zone)
    return NORMALISED, kinds.DATETIME, np.float64(micros), micros, quality, size + (end - zone)


@inner
def _other_literal(
    at: int, quote: int, end: int, name: np.uint64, scratch: int
) -> tuple[int, int, float, int, int, int]:
    """Booleans, strings that say so, and literals of datatypes without a special meaning."""
    if name == _N_BOOLEAN:
        size = quote - (at + 1)
        text = word(at + 1)
        if size == 4 and text & u64(0xFFFFFFFF) == _N_TRUE:
            return PLAIN, kinds.BOOLEAN, 1.0, 1, ALL_EXACT, 0
        if size == 5 and text & u64(0xFFFFFFFFFF) == _N_FALSE:
            return PLAIN, kinds.BOOLEAN, 0.0, 0, ALL_EXACT, 0
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
    """(known, microseconds since 1970) of a literal that says when: a plain dateTime (no zone: UTC) or integer, of the
    years 1 to 9999."""
    if byte(at) != _QUOTE:
        return False, i64(0)
    quote = find_byte(at + 1, end, _QUOTES)
    if end - quote < 4 or byte(quote + 1) != _CARET or byte(quote + 3) != _LESS:
        return False, i64(0)
    name = _datatype(quote + 3, end)
    if name == _N_DATETIME or name == _STAMP:
        form, micros, _, _, _ = read_date(at + 1, quote)
        return form != UNUSUAL and kinds.FIRST_TIME <= micros <= kinds.LAST_TIME, micros
    if name == _N_INTEGER or name == _N_LONG:
        form, negative, mantissa, _ = read_number(at + 1, quote, kinds.INTEGER)
        micros = -mantissa if negative else mantissa
        return form != UNUSUAL and kinds.FIRST_TIME <= micros <= kinds.LAST_TIME, micros
    return False, i64(0)
