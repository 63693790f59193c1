"""Many terms at a time: texts → ids, ids → texts. `D` is the pointer table of the term table."""

from __future__ import annotations

from typing import Final

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import byte, move, set_byte
from oxiseq.engine.kernels.terms.numerals import NORMALISED, UNUSUAL
from oxiseq.engine.kernels.terms.plain import plain_iri, plain_literal
from oxiseq.engine.kernels.terms.table import Terms, add, find, hashed, kind_of, serial_of, text_of

_LABEL: Final = 3
"""Bytes of `_:b`, which comes before the serial number of a blank node."""


NO_ROOM: Final = -1


@kernel
def intern_text(D: Terms, data: int, length: int, scratch: int) -> int:
    """The id of a text, which is added if it is new and plain; 0 if it is new and unusual, or NO_ROOM.

    `scratch`: the address of SCRATCH_SPARE bytes more than the text has.
    """
    return intern_plain(D, data, length, scratch)


@kernel
def intern_texts(D: Terms, data: int, ends: Array, first: int, ids: Array, scratch: int) -> int:
    """Find or add the ids (u32[n]) of texts `first`, first + 1...; the number of the first that is left, or n.

    Text i is data[ends[i]:ends[i + 1]]; ends i64[n + 1]. That it is left may be for want of room.
    """
    for i in range(first, ids.shape[0]):
        term = intern_plain(D, data + ends[i], ends[i + 1] - ends[i], scratch)
        if term <= 0:
            return i
        ids[i] = term
    return ids.shape[0]


@inner
def intern_plain(D: Terms, text: int, size: int, scratch: int) -> int:
    """The id of the text at an address, as `intern_text` gives it."""
    h = hashed(text, 0, size)
    known = find(D, text, 0, size, h)
    if known != 0:
        return known
    kind, number, exact, quality = i64(kinds.IRI), 0.0, i64(0), i64(0)
    first = byte(text)
    if first == ord('"'):
        form, kind, number, exact, quality, length = plain_literal(text, text + size, scratch)
        if form == UNUSUAL:
            return i64(0)
        if form == NORMALISED:
            text, size = scratch, length
            h = hashed(text, 0, size)
            known = find(D, text, 0, size, h)
            if known != 0:
                return known
    elif first != ord("<") or not plain_iri(text, text + size):
        return i64(0)
    known = add(D, text, 0, size, h, kind, number, exact, quality)
    return known if known != 0 else i64(NO_ROOM)


@kernel
def measure_texts(D: Terms, ids: Array, ends: Array) -> None:
    """Fill `ends` i64[n + 1] with where the text of each id ends; 0, unbound, has an empty text."""
    ends[0] = 0
    for i in range(ids.shape[0]):
        ends[i + 1] = ends[i] + _length(D, ids[i])


@kernel
def write_texts(D: Terms, ids: Array, ends: Array, out: int) -> None:
    """Write the texts of the ids one after the other, each up to its end, from the address `out` on."""
    for i in range(ids.shape[0]):
        term, at = ids[i], out + ends[i]
        kind = kind_of(D, term)
        if kind == kinds.BLANK:
            write_label(serial_of(D, term), at, out + ends[i + 1])
        elif kind != kinds.NONE:
            text, length = text_of(D, term)
            move(at, text, length)


@inner
def _length(D: Terms, term: int) -> int:
    kind = kind_of(D, term)
    if kind == kinds.NONE:
        return 0
    if kind == kinds.BLANK:
        return label_length(serial_of(D, term))
    _, length = text_of(D, term)
    return length


@inner
def label_length(serial: int) -> int:
    """The length of a blank node's text, `_:b` and its serial number."""
    return _LABEL + digits(serial)


@inner
def write_label(serial: int, at: int, end: int) -> None:
    """Write a blank node's text between two addresses."""
    set_byte(at, ord("_"))
    set_byte(at + 1, ord(":"))
    set_byte(at + 2, ord("b"))
    write_digits(serial, end)


@inner
def digits(number: int) -> int:
    """How many digits a number has that is not negative."""
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


@inner
def write_digits(number: int, end: int) -> None:
    """The digits of a number, the last one before the address `end`."""
    while True:
        end -= 1
        set_byte(end, ord("0") + number % 10)
        number //= 10
        if number == 0:
            return
