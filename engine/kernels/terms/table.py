"""The table of terms: texts ↔ ids, with the values of terms beside them.

In the flow: bytes of a term in N-Triples form → **id** → columns. `D` is the pointer table of a `TermArrays`.
A term has one id; its *own* entry holds the text in the store's normal form, and other entries (aliases) may hold
other ways to write it. Texts are compared byte by byte, the hash only finds the candidates. Ids are freed by
`sweep` alone, which keeps the marked ids and gives the numbers of the others again.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.hashing import SPREAD
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.raw import byte, get, half, move, put, put_half, put_number, same, set_byte, word

ENTRY: Final = np.dtype([("hash", "u8"), ("start", "i8"), ("length", "i4"), ("term", "u4")], align=True)
"""A text: where it lies in the arena, and whose it is."""

ENTRIES, TEXT, IDS, FREE, BLANKS, ADDED = range(6)
"""Places in `counts`: entries used (from 1 on), arena bytes used, ids ever given (0 is unbound), height of the
stack of free ids, blank nodes ever made, ids given since the last sweep."""
COUNTS: Final = 6
PADDING: Final = 8
"""Bytes of the arena that stay unused, so that a word can be read at the end of any text."""


def table_size(entries: int) -> int:
    """Slots for so many entries."""
    return 1 << (2 * entries).bit_length()


class TermArrays(Arrays):
    """What `D` points to."""


array(TermArrays, "slots", np.int32, rows="entries", slots=table_size)
"""Open addressing with linear probing, at most half full: entry numbers, 0 empty."""
entries = array(TermArrays, "entries", ENTRY, rows="entries")  # number 0 is not used
array(TermArrays, "text", np.uint8, rows="text")  # the arena
own = array(TermArrays, "own", np.int32, rows="ids")
"""The entry with the term's normal form; 0 for a blank node and a free id."""
kind = array(TermArrays, "kind", np.uint8, rows="ids")  # 0 for a free id
number = array(TermArrays, "number", np.float64, rows="ids")
exact = array(TermArrays, "exact", np.int64, rows="ids")
"""For a blank node its serial number, which is never given again."""
quality = array(TermArrays, "quality", np.uint8, rows="ids")
array(TermArrays, "free", np.uint32, rows="ids")  # a stack
array(TermArrays, "counts", np.int64, rows=COUNTS)

Terms: TypeAlias = Ptr[TermArrays]
"""`D` of kernels: the dictionary."""

# places in the pointer table: (address, rows, columns) of each array
_SLOTS, _ENTRIES, _TEXT, _OWN, _KIND, _NUMBER, _EXACT, _QUALITY, _FREE, _COUNTS = range(0, 30, 3)
_ENTRY_BYTES: Final = ENTRY.itemsize
_HASH, _START = 0, 1  # words of an entry
_LENGTH, _TERM = 4, 5  # halves of it


@inner
def _entry(D: Terms, e: int) -> int:
    """The address of an entry."""
    return get(D, _ENTRIES) + e * _ENTRY_BYTES


@inner
def hashed(data: int, start: int, stop: int) -> np.uint64:
    """A hash of data[start:stop], u64; `data` is an address."""
    h = u64(stop - start) * SPREAD
    at = data + start
    last = data + stop - 8
    while at < last:
        h = (h ^ word(at)) * u64(0xFF51AFD7ED558CCD)
        h ^= h >> u64(32)
        at += 8
    if stop - start >= 8:
        h ^= word(last)  # it overlaps the word before
    else:
        while at < data + stop:
            h = (h << u64(8)) ^ u64(byte(at))
            at += 1
    h ^= h >> u64(32)  # the last bytes of a text are the highest of a word: bring them down to the slots
    h *= u64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> u64(29))


@inner
def find(D: Terms, data: int, start: int, stop: int, h: np.uint64) -> int:
    """The id (i64) of the term that is written data[start:stop], 0 if that text is not known."""
    slots, mask, text = get(D, _SLOTS), get(D, _SLOTS + 1) - 1, get(D, _TEXT)
    wanted = i64(h)
    at = wanted & mask
    e = half(slots, at)
    while e != 0:
        entry = _entry(D, e)
        if get(entry, _HASH) == wanted and half(entry, _LENGTH) == stop - start:
            if same(text + get(entry, _START), data + start, stop - start):
                return half(entry, _TERM)
        at = (at + 1) & mask
        e = half(slots, at)
    return i64(0)


@inner
def alias(D: Terms, data: int, start: int, stop: int, h: np.uint64, term: int) -> bool:
    """Note that data[start:stop], which is not known, is a way to write `term`; False: there is no room."""
    counts = get(D, _COUNTS)
    e, at = get(counts, ENTRIES), get(counts, TEXT)
    if e >= get(D, _ENTRIES + 1) or 2 * e > get(D, _SLOTS + 1) or at + (stop - start) + PADDING > get(D, _TEXT + 1):
        return False
    move(get(D, _TEXT) + at, data + start, stop - start)
    entry = _entry(D, e)
    put(entry, _HASH, i64(h))
    put(entry, _START, at)
    put_half(entry, _LENGTH, stop - start)
    put_half(entry, _TERM, term)
    put(counts, ENTRIES, e + 1)
    put(counts, TEXT, at + (stop - start))
    _place(D, i64(h), e)
    return True


@inner
def _place(D: Terms, h: int, e: int) -> None:
    slots, mask = get(D, _SLOTS), get(D, _SLOTS + 1) - 1
    at = h & mask
    while half(slots, at) != 0:
        at = (at + 1) & mask
    put_half(slots, at, e)


@inner
def _give(D: Terms, kind: int, number: float, exact: int, quality: int) -> int:
    """A fresh id (i64) with these columns; there is room."""
    counts = get(D, _COUNTS)
    height = get(counts, FREE) - 1
    if height >= 0:
        put(counts, FREE, height)
        term = half(get(D, _FREE), height)
    else:
        term = get(counts, IDS)
        put(counts, IDS, term + 1)
    put(counts, ADDED, get(counts, ADDED) + 1)
    set_byte(get(D, _KIND) + term, kind)
    put_number(get(D, _NUMBER), term, number)
    put(get(D, _EXACT), term, exact)
    set_byte(get(D, _QUALITY) + term, quality)
    return term


@inner
def _has_id(D: Terms) -> bool:
    counts = get(D, _COUNTS)
    return get(counts, FREE) > 0 or get(counts, IDS) < get(D, _OWN + 1)


@inner
def add(
    D: Terms, data: int, start: int, stop: int, h: np.uint64, kind: int, number: float, exact: int, quality: int
) -> int:
    """The id (i64) of a new term whose text in normal form is data[start:stop]; 0: there is no room."""
    entry = get(get(D, _COUNTS), ENTRIES)
    if not (_has_id(D) and alias(D, data, start, stop, h, 0)):
        return i64(0)
    term = _give(D, kind, number, exact, quality)
    put_half(_entry(D, entry), _TERM, term)
    put_half(get(D, _OWN), term, entry)
    return term


@inner
def fresh_blank(D: Terms) -> int:
    """The id (i64) of a new blank node; 0: there is no room."""
    if not _has_id(D):
        return i64(0)
    counts = get(D, _COUNTS)
    serial = get(counts, BLANKS) + 1
    put(counts, BLANKS, serial)
    return _give(D, kinds.BLANK, 0.0, serial, 0)


@inner
def text_of(D: Terms, term: int) -> tuple[int, int]:
    """The address of a term's own text, and its length; for a term that has one."""
    entry = _entry(D, half(get(D, _OWN), term))
    return get(D, _TEXT) + get(entry, _START), half(entry, _LENGTH)


@inner
def kind_of(D: Terms, term: int) -> int:
    """The kind of a term, which is NONE for 0 and for a free id."""
    return byte(get(D, _KIND) + term)


@inner
def serial_of(D: Terms, term: int) -> int:
    """The serial number of a blank node."""
    return get(get(D, _EXACT), term)


# --- what Python calls ------------------------------------------------------------------------------


@kernel
def find_text(D: Terms, data: int, length: int) -> int:
    """`find` for one text."""
    return find(D, data, 0, length, hashed(data, 0, length))


@kernel
def add_text(D: Terms, data: int, length: int, kind: int, number: float, exact: int, quality: int) -> int:
    """`add` for one text that is not known."""
    return add(D, data, 0, length, hashed(data, 0, length), kind, number, exact, quality)


@kernel
def alias_text(D: Terms, data: int, length: int, term: int) -> bool:
    """`alias` for one text that is not known."""
    return alias(D, data, 0, length, hashed(data, 0, length), term)


@kernel
def make_blank(D: Terms) -> int:
    """`fresh_blank` for one."""
    return fresh_blank(D)


@kernel
def make_blanks(D: Terms, ids: Array) -> None:
    """Fill u32[n] with new blank nodes, for which there is room."""
    for i in range(ids.shape[0]):
        ids[i] = fresh_blank(D)


@kernel
def mark(marks: Array, ids: Array) -> None:
    """Set `marks` u8[n] at those of `ids` (i64[k]) that lie within."""
    for i in range(ids.shape[0]):
        if 0 <= ids[i] < marks.shape[0]:
            marks[ids[i]] = 1


@kernel
def rebuild(D: Terms) -> None:
    """Fill empty slots from the entries."""
    for e in range(1, get(get(D, _COUNTS), ENTRIES)):
        _place(D, get(_entry(D, e), _HASH), e)


@kernel
def sweep(D: Terms, marks: Array) -> int:
    """Free every id that is not marked (`marks` u8[ids]), and all aliases; how many ids that freed.

    Entries and texts slide together in the order in which they came. Linear in ids, entries and slots.
    """
    _slide(D, marks)
    own, kind, free, counts = get(D, _OWN), get(D, _KIND), get(D, _FREE), get(D, _COUNTS)
    height = get(counts, FREE)
    freed = 0
    for term in range(get(counts, IDS) - 1, 0, -1):  # so that the smallest are given first again
        if byte(kind + term) != kinds.NONE and not marks[term]:
            set_byte(kind + term, kinds.NONE)
            put_half(own, term, 0)
            put_half(free, height, term)
            height += 1
            freed += 1
    put(counts, FREE, height)
    put(counts, ADDED, 0)
    return freed


@inner
def _slide(D: Terms, marks: Array) -> None:
    """Keep the entries with the normal forms of marked terms, and place them again."""
    counts, own, text, slots = get(D, _COUNTS), get(D, _OWN), get(D, _TEXT), get(D, _SLOTS)
    top, at = 1, 0
    for slot in range(get(D, _SLOTS + 1)):
        put_half(slots, slot, 0)
    for e in range(1, get(counts, ENTRIES)):
        entry, kept = _entry(D, e), _entry(D, top)
        term, length = half(entry, _TERM), half(entry, _LENGTH)
        if half(own, term) == e and marks[term]:
            h = get(entry, _HASH)
            move(text + at, text + get(entry, _START), length)
            put(kept, _HASH, h)
            put(kept, _START, at)
            put_half(kept, _LENGTH, length)
            put_half(kept, _TERM, term)
            put_half(own, term, top)
            _place(D, h, top)
            at += length
            top += 1
    put(counts, ENTRIES, top)
    put(counts, TEXT, at)
