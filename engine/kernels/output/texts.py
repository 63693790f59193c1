"""Answers as text: columns of plain values, rows of SPARQL JSON, straight from the term table.

In the flow: ids of a match batch → **UTF-8** → Arrow, JSON. Each function either measures (`out` 0) or writes
from the address `out` on, and returns the number of bytes. `D` is the pointer table of the term table. The escapes of
N-Triples in the table's texts are escapes of JSON as well, so JSON takes them as they are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import byte, move, set_byte
from oxiseq.engine.kernels.terms.table import Terms, kind_of, serial_of, text_of
from oxiseq.engine.kernels.terms.texts import digits, label_length, write_digits, write_label

_ESCAPES: Final = np.zeros(256, np.uint8)
for _escape, _meant in ((b"t", 9), (b"b", 8), (b"n", 10), (b"r", 13), (b"f", 12)):
    _ESCAPES[_escape[0]] = _meant
_PIECES: Final = (
    b'{"type": "uri", "value": "',
    b'{"type": "literal", "value": "',
    b'{"type": "bnode", "value": "b',
    b'", "xml:lang": "',
    b'", "datatype": "',
    b'"}',
    b", ",
    b'", "its:dir": "',
)
_URI, _LITERAL, _BNODE, _LANG, _DATATYPE, _END, _COMMA, _DIRECTION = range(8)
_PIECE_ENDS: Final = np.cumsum([0, *map(len, _PIECES)])
_PIECE_BYTES: Final = np.frombuffer(b"".join(_PIECES), np.uint8)


@kernel
def plain_texts(D: Terms, ids: Array, ends: Array, out: int) -> int:
    """IRIs without brackets, literals' lexical forms, blank nodes with their labels, nothing for 0.

    ids: i64[n]; `ends` i64[n + 1] is filled when measuring and read when writing.
    """
    ends[0] = 0
    for i in range(ids.shape[0]):
        if out == 0:
            ends[i + 1] = ends[i] + _plain(D, ids[i], 0)
        else:
            _plain(D, ids[i], out + ends[i])
    return ends[ids.shape[0]]


@kernel
def json_rows(D: Terms, values: Array, names: Array, name_ends: Array, out: int) -> int:
    """The rows of u32[n, c] term ids as JSON objects, each after a comma and a line break.

    names u8: the columns' names as `"name": `, up to `name_ends` i64[c + 1]. No triple terms.
    """
    size = 0
    for row in range(values.shape[0]):
        size += _put(44, out, size)  # ,
        size += _put(10, out, size)
        size += _put(123, out, size)  # {
        first = True
        for c in range(values.shape[1]):
            if values[row, c] == 0:
                continue
            if not first:
                size += _piece(_COMMA, out, size)
            first = False
            for i in range(name_ends[c], name_ends[c + 1]):
                size += _put(names[i], out, size)
            size += _json_term(D, i64(values[row, c]), out, size)
        size += _put(125, out, size)
    return size


@inner
def _put(value: int, out: int, size: int) -> int:
    if out != 0:
        set_byte(out + size, i64(value))
    return 1


@inner
def _piece(number: int, out: int, size: int) -> int:
    low, high = _PIECE_ENDS[number], _PIECE_ENDS[number + 1]
    if out != 0:
        for i in range(low, high):
            set_byte(out + size + i - low, i64(_PIECE_BYTES[i]))
    return high - low


@inner
def _copy(source: int, count: int, out: int, size: int) -> int:
    if out != 0:
        move(out + size, source, count)
    return count


@inner
def _closing(text: int, length: int) -> int:
    """The place of the quotation mark that closes a literal."""
    at = length - 1
    while byte(text + at) != 34:
        at -= 1
    return at


@inner
def _plain(D: Terms, term: int, out: int) -> int:
    kind = kind_of(D, term)
    if kind == kinds.NONE:
        return 0
    if kind == kinds.BLANK:
        length = label_length(serial_of(D, term))
        if out != 0:
            write_label(serial_of(D, term), out, out + length)
        return length
    text, length = text_of(D, term)
    if kind == kinds.IRI:
        return _copy(text + 1, length - 2, out, 0)
    if byte(text) != 34:  # a triple term
        return _copy(text, length, out, 0)
    return _unescaped(text + 1, text + _closing(text, length), out)


@inner
def _unescaped(at: int, end: int, out: int) -> int:
    size = 0
    while at < end:
        value = byte(at)
        at += 1
        if value == 92:
            value = byte(at)
            at += 1
            if value == 117:  # \\uXXXX; never one of the surrogate pairs of larger characters
                value = 0
                for i in range(4):
                    value = 16 * value + _hexadecimal(byte(at + i))
                at += 4
                if value >= 128:  # U+FFFE and U+FFFF
                    size += _put(224 | value >> 12, out, size)
                    size += _put(128 | (value >> 6 & 63), out, size)
                    value = 128 | (value & 63)
            elif _ESCAPES[value] != 0:
                value = i64(_ESCAPES[value])
        size += _put(value, out, size)
    return size


@inner
def _hexadecimal(digit: int) -> int:
    return digit - 48 if digit < 58 else (digit & 15) + 9


@inner
def _json_term(D: Terms, term: int, out: int, size: int) -> int:
    begin = size
    kind = kind_of(D, term)
    if kind == kinds.BLANK:
        serial = serial_of(D, term)
        size += _piece(_BNODE, out, size)
        size += digits(serial)
        if out != 0:
            write_digits(serial, out + size)
        return size + _piece(_END, out, size) - begin
    text, length = text_of(D, term)
    if kind == kinds.IRI:
        size += _piece(_URI, out, size)
        size += _copy(text + 1, length - 2, out, size)
        return size + _piece(_END, out, size) - begin
    closing = _closing(text, length)
    size += _piece(_LITERAL, out, size)
    size += _copy(text + 1, closing - 1, out, size)
    if kind == kinds.LANGSTRING:
        size += _piece(_LANG, out, size)
        end = _tag_end(text, closing + 2, length)
        size += _copy(text + closing + 2, end - closing - 2, out, size)
        if end < length:
            size += _piece(_DIRECTION, out, size)
            size += _copy(text + end + 2, length - end - 2, out, size)
    elif closing + 1 < length:
        size += _piece(_DATATYPE, out, size)
        size += _copy(text + closing + 4, length - closing - 5, out, size)
    return size + _piece(_END, out, size) - begin


@inner
def _tag_end(text: int, at: int, length: int) -> int:
    """Where a language tag ends: at the end, or before `--` and a base direction."""
    while at < length and not (byte(text + at) == 45 and at + 1 < length and byte(text + at + 1) == 45):
        at += 1
    return at
