"""Rows in the order of their terms' texts, N-Triples as they are in the dictionary."""

from __future__ import annotations

from typing import Final

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array
from oxiseq.engine.kernels.memory.raw import byte, get, word
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import TermArrays, Terms

_TEXT: Final = WORDS * TermArrays._fields.index("text")


@kernel
def sort_rows(D: Terms, event: Array, rows: Array, numbers: Array, spare: Array) -> None:
    """Sort the numbers of rows (i64[n]; spare: as many) stably by event, then by terms from the first column on.

    event: i64[n]; rows: u32[n, columns], ids, 0 first. Blank nodes come last, as they came to be. D: the dictionary.
    """
    n, run = numbers.shape[0], i64(1)
    while run < n:
        for low in range(0, n, 2 * run):
            _merge(D, event, rows, numbers, spare, low, min(low + run, n), min(low + 2 * run, n))
        for i in range(n):
            numbers[i] = spare[i]
        run *= 2


@inner
def _merge(D: Terms, event: Array, rows: Array, numbers: Array, spare: Array, low: int, middle: int, high: int) -> None:
    i, j = low, middle
    for k in range(low, high):
        if i < middle and (j >= high or _compare(D, event, rows, numbers[i], numbers[j]) <= 0):
            spare[k] = numbers[i]
            i += 1
        else:
            spare[k] = numbers[j]
            j += 1


@inner
def _compare(D: Terms, event: Array, rows: Array, one: int, other: int) -> int:
    """Below 0, 0, or above 0: how two rows compare."""
    if event[one] != event[other]:
        return event[one] - event[other]
    for c in range(rows.shape[1]):
        a, b = i64(rows[one, c]), i64(rows[other, c])
        if a != b:
            return _compare_terms(D, a, b)
    return i64(0)


@inner
def _compare_terms(D: Terms, a: int, b: int) -> int:
    """The same of two terms, which are not the same."""
    if a == 0 or b == 0:
        return i64(-1) if a == 0 else i64(1)
    kind = worth.kind(D)
    blanks = i64(kind[a] == kinds.BLANK), i64(kind[b] == kinds.BLANK)
    if blanks[0] != blanks[1]:
        return blanks[0] - blanks[1]
    if blanks[0] == 1:
        return i64(-1) if worth.exact(D)[a] < worth.exact(D)[b] else i64(1)
    return _compare_texts(D, a, b)


@inner
def _compare_texts(D: Terms, a: int, b: int) -> int:
    """Byte by byte, which is character by character."""
    entries, own, text = worth.entries(D), worth.own(D), get(D, _TEXT)
    one, other = entries[own[a]], entries[own[b]]
    at, to = text + one.start, text + other.start
    sizes = i64(one.length), i64(other.length)
    size, i = min(sizes[0], sizes[1]), i64(0)
    while i + 8 <= size and word(at + i) == word(to + i):
        i += 8
    while i < size:
        if byte(at + i) != byte(to + i):
            return byte(at + i) - byte(to + i)
        i += 1
    return sizes[0] - sizes[1]
