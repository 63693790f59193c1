"""The table of terms: texts ↔ ids, with the values of terms beside them.

Where it stands: bytes of a term in N-Triples form → **id** → columns. `D` is the pointer table of a `TermArrays`.
A term has one id; its *own* entry holds the text in the store's normal form, and other entries (aliases) may hold
other ways to write it. Texts are compared byte by byte, the hash only finds the candidates. Ids are freed by
`sweep` alone, which keeps the ids it is told to keep and whose numbers are then given again.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # Numba does not list it

from oxiseq.engine import kinds
from oxiseq.engine.kernels import records as k
from oxiseq.engine.kernels.options import inner, kernel
from oxiseq.engine.kernels.raw import byte, move, same, word
from oxiseq.engine.kernels.views import _pointer, _word

ENTRY: Final = np.dtype([("hash", "u8"), ("start", "i8"), ("length", "i4"), ("term", "u4")], align=True)
"""A text: where it lies in the arena, and whose it is."""

ENTRIES, TEXT, IDS, FREE, BLANKS, ADDED = range(6)
"""Places in `counts`: entries used (from 1 on), arena bytes used, ids ever given (0 is unbound), height of the
stack of free ids, blank nodes ever made, ids given since the last sweep."""
COUNTS: Final = 6
PADDING: Final = 8
"""Bytes of the arena that stay unused, so that a word can be read at the end of any text."""


class TermArrays(NamedTuple):
    """What `D` points to."""

    slots: k.Array
    """i32[2^b] open addressing with linear probing, at most half full: entry numbers, 0 empty."""
    entries: k.Array
    """ENTRY[e]; number 0 is not used."""
    text: k.Array
    """u8[bytes], the arena."""
    own: k.Array
    """i32[ids]: the entry with the term's normal form; 0 for a blank node and a free id."""
    kind: k.Array
    """u8[ids]; 0 for a free id."""
    number: k.Array
    exact: k.Array
    """i64[ids]; for a blank node its serial number, which is never given again."""
    quality: k.Array
    free: k.Array
    """u32[ids]: a stack."""
    counts: k.Array
    """i64[COUNTS]."""


@inner
def _slots(D: Any) -> Any:
    return carray(_pointer(_word(D, 0)), (_word(D, 1),), np.int32)


@inner
def _entries(D: Any) -> Any:
    return carray(_pointer(_word(D, 3)), (_word(D, 4),), ENTRY)


@inner
def _counts(D: Any) -> Any:
    return carray(_pointer(_word(D, 27)), (COUNTS,), np.int64)


@inner
def hashed(data: int, start: int, stop: int) -> int:
    """A hash of data[start:stop], u64; `data` is an address."""
    h = np.uint64(stop - start) * np.uint64(0x9E3779B97F4A7C15)
    at = data + start
    end = data + stop
    while at + 8 <= end:
        h = (h ^ word(at)) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
        at += 8
    tail = np.uint64(0)
    while at < end:
        tail = (tail << np.uint64(8)) | np.uint64(byte(at))
        at += 1
    h = (h ^ tail) * np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(29))


@inner
def find(D: int, data: int, start: int, stop: int, h: int) -> int:
    """The id (i64) of the term that is written data[start:stop], 0 if that text is not known."""
    slots, entries = _slots(D), _entries(D)
    text = _word(D, 6)
    mask = slots.shape[0] - 1
    at = np.int64(h & np.uint64(mask))
    while slots[at] != 0:
        e = slots[at]
        if entries[e].hash == h and entries[e].length == stop - start:
            if same(text + entries[e].start, data + start, stop - start):
                return np.int64(entries[e].term)
        at = (at + 1) & mask
    return np.int64(0)


@inner
def alias(D: int, data: int, start: int, stop: int, h: int, term: int) -> bool:
    """Note that data[start:stop], which is not known, is a way to write `term`; False: there is no room."""
    slots, entries, counts = _slots(D), _entries(D), _counts(D)
    e = counts[ENTRIES]
    at = counts[TEXT]
    if e >= entries.shape[0] or 2 * e > slots.shape[0] or at + (stop - start) + PADDING > _word(D, 7):
        return False
    move(_word(D, 6) + at, data + start, stop - start)
    entries[e].hash = h
    entries[e].start = at
    entries[e].length = stop - start
    entries[e].term = term
    counts[ENTRIES] = e + 1
    counts[TEXT] = at + (stop - start)
    _place(slots, h, e)
    return True


@inner
def _place(slots: Any, h: int, e: int) -> None:
    mask = slots.shape[0] - 1
    at = np.int64(h & np.uint64(mask))
    while slots[at] != 0:
        at = (at + 1) & mask
    slots[at] = e


@inner
def _give(D: int, kind: int, number: float, exact: int, quality: int) -> int:
    """A fresh id (i64) with these columns; 0: there is no room."""
    counts = _counts(D)
    if counts[FREE] > 0:
        counts[FREE] -= 1
        term = np.int64(carray(_pointer(_word(D, 24)), (_word(D, 25),), np.uint32)[counts[FREE]])
    else:
        term = counts[IDS]
        if term >= _word(D, 10):
            return np.int64(0)
        counts[IDS] = term + 1
    counts[ADDED] += 1
    carray(_pointer(_word(D, 12)), (_word(D, 13),), np.uint8)[term] = kind
    carray(_pointer(_word(D, 15)), (_word(D, 16),), np.float64)[term] = number
    carray(_pointer(_word(D, 18)), (_word(D, 19),), np.int64)[term] = exact
    carray(_pointer(_word(D, 21)), (_word(D, 22),), np.uint8)[term] = quality
    return term


@inner
def add(
    D: int, data: int, start: int, stop: int, h: int, kind: int, number: float, exact: int, quality: int
) -> int:
    """The id (i64) of a new term whose text in normal form is data[start:stop]; 0: there is no room."""
    counts = _counts(D)
    entry = counts[ENTRIES]
    if not alias(D, data, start, stop, h, 0):
        return np.int64(0)
    term = _give(D, kind, number, exact, quality)
    if term != 0:
        _entries(D)[entry].term = term
        carray(_pointer(_word(D, 9)), (_word(D, 10),), np.int32)[term] = entry
    return term


@inner
def fresh_blank(D: int) -> int:
    """The id (i64) of a new blank node; 0: there is no room."""
    counts = _counts(D)
    counts[BLANKS] += 1
    return _give(D, kinds.BLANK, 0.0, counts[BLANKS], 0)


# --- what Python calls ------------------------------------------------------------------------------


@kernel
def find_text(D: int, data: int, length: int) -> int:
    """`find` for one text."""
    return find(D, data, 0, length, hashed(data, 0, length))


@kernel
def add_text(
    D: int, data: int, length: int, kind: int, number: float, exact: int, quality: int
) -> int:
    """`add` for one text that is not known."""
    return add(D, data, 0, length, hashed(data, 0, length), kind, number, exact, quality)


@kernel
def alias_text(D: int, data: int, length: int, term: int) -> bool:
    """`alias` for one text that is not known."""
    return alias(D, data, 0, length, hashed(data, 0, length), term)


@kernel
def make_blanks(D: int, ids: Any) -> None:
    """Fill u32[n] with new blank nodes, for which there is room."""
    for i in range(ids.shape[0]):
        ids[i] = fresh_blank(D)


@kernel
def mark(marks: Any, ids: Any) -> None:
    """Set `marks` u8[n] at those of `ids` (i64[k]) that lie within."""
    for i in range(ids.shape[0]):
        if 0 <= ids[i] < marks.shape[0]:
            marks[ids[i]] = 1


@kernel
def rebuild(D: int) -> None:
    """Fill empty slots from the entries."""
    slots, entries = _slots(D), _entries(D)
    for e in range(1, _counts(D)[ENTRIES]):
        _place(slots, entries[e].hash, e)


@kernel
def sweep(D: int, marks: Any) -> int:
    """Free every id that is not marked (`marks` u8[ids]), and all aliases; how many ids that freed.

    Entries and texts slide together in the order in which they came. Linear in ids, entries and slots.
    """
    slots, entries, counts = _slots(D), _entries(D), _counts(D)
    own = carray(_pointer(_word(D, 9)), (_word(D, 10),), np.int32)
    kind = carray(_pointer(_word(D, 12)), (_word(D, 13),), np.uint8)
    free = carray(_pointer(_word(D, 24)), (_word(D, 25),), np.uint32)
    text = _word(D, 6)
    top, at = 1, 0
    for e in range(1, counts[ENTRIES]):
        term = np.int64(entries[e].term)
        if own[term] == e and marks[term]:
            move(text + at, text + entries[e].start, entries[e].length)
            entries[top].hash = entries[e].hash
            entries[top].start = at
            entries[top].length = entries[e].length
            entries[top].term = term
            own[term] = top
            at += np.int64(entries[top].length)
            top += 1
    counts[ENTRIES], counts[TEXT] = top, at
    freed = 0
    for term in range(counts[IDS] - 1, 0, -1):  # so that the smallest are given first again
        if kind[term] != kinds.NONE and not marks[term]:
            kind[term] = kinds.NONE
            own[term] = 0
            free[counts[FREE]] = term
            counts[FREE] += 1
            freed += 1
    counts[ADDED] = 0
    slots[:] = 0
    for e in range(1, top):
        _place(slots, entries[e].hash, e)
    return freed
