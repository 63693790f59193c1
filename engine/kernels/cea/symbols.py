"""Symbols are numbered: a hash table from the bits of an event to a small number."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.cea import views as v
from oxiseq.engine.kernels.cea.records import WORDS
from oxiseq.engine.kernels.compiling.options import inner, kernel

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@inner
def _hash(bits: Any, row: int, words: int) -> int:
    h = np.uint64(0)
    for w in range(words):
        h = (h ^ bits[row, w]) * _MULTIPLIER
        h ^= h >> _HALF
    return np.int64(h >> np.uint64(1))


@inner
def find_symbol(A: Any, bits: Any, row: int) -> int:
    """The number of the symbol in a row of bits; -1: it has none yet."""
    words = v.sizes(A)[WORDS]
    table, symbols = v.table(A), v.symbols(A)
    mask = table.shape[0] - 1
    at = _hash(bits, row, words) & mask
    while table[at] >= 0:
        number = np.int64(table[at])
        same = True
        for w in range(words):
            if symbols[number, w] != bits[row, w]:
                same = False
                break
        if same:
            return number
        at = (at + 1) & mask
    return np.int64(-1)


@kernel
def enter_symbols(A: Any, first: int, end: int) -> None:
    """Enter the symbols first..end into the table, which has room for twice as many as there are."""
    table, symbols = v.table(A), v.symbols(A)
    mask = table.shape[0] - 1
    for number in range(first, end):
        at = _hash(symbols, number, v.sizes(A)[WORDS]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = number
