"""Symbols are numbered, and the automaton's steps found again: two hash tables.

The kernel looks moves up by (state, number of the symbol). A symbol that is new has no moves there, but most of its
bits do not matter to a state: what the state does on those that do is probably known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.records import (
    KNOWN,
    NEED_STATE,
    NEED_SYMBOL,
    STRIDE,
    SYMBOLS,
    WORDS,
    Cache,
    Events,
)
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.records import DONE
from oxiseq.engine.kernels.memory.hashing import SPREAD
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

_HALF = np.uint64(32)


@inner
def _mixed(h: Any, word: Any) -> Any:
    h = (h ^ word) * SPREAD
    return h ^ (h >> _HALF)


@inner
def _hash(bits: Array, row: int, words: int) -> int:
    h = u64(0)
    for w in range(words):
        h = _mixed(h, bits[row, w])
    return i64(h >> u64(1))


@inner
def is_read(A: Ptr[Cache], E: Ptr[Events], at: int) -> bool:
    """Whether some letter reads an event of the batch."""
    bits = v.symbol(E)
    union = bits[at, 0]
    for w in range(1, v.sizes(A)[WORDS]):
        union |= bits[at, w]
    return union != u64(0)


@inner
def number_of(A: Ptr[Cache], bits: Array, row: int) -> int:
    """The number of the symbol in a row of bits, a new one if need be; -1: there is no room for another."""
    sizes, table, symbols = v.sizes(A), v.table(A), v.symbols(A)
    words = sizes[WORDS]
    mask = table.shape[0] - 1
    at = _hash(bits, row, words) & mask
    while table[at] >= 0:
        number = i64(table[at])
        same = True
        for w in range(words):
            if symbols[number, w] != bits[row, w]:
                same = False
                break
        if same:
            return number
        at = (at + 1) & mask
    number = sizes[SYMBOLS]
    if number == sizes[STRIDE]:
        return i64(-1)
    table[at] = number
    for w in range(words):
        symbols[number, w] = bits[row, w]
    sizes[SYMBOLS] = number + 1
    return number


@kernel
def enter_symbols(A: Ptr[Cache]) -> None:
    """Enter all symbols into the table, which is empty and has room for twice as many."""
    sizes, table, symbols = v.sizes(A), v.table(A), v.symbols(A)
    mask = table.shape[0] - 1
    for number in range(sizes[SYMBOLS]):
        at = _hash(symbols, number, sizes[WORDS]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = number


@inner
def recall(A: Ptr[Cache], state: int, symbol: int) -> bool:
    """Whether the state's move on the symbol is known from another one; then it is entered for this one too."""
    sizes, table, moves, known = v.sizes(A), v.step_table(A), v.moves(A), v.step_move(A)
    symbols, relevant, states, bits = v.symbols(A), v.relevant(A), v.step_state(A), v.step_bits(A)
    words = sizes[WORDS]
    h = u64(state)
    for w in range(words):
        h = _mixed(h, symbols[symbol, w] & relevant[state, w])
    mask = table.shape[0] - 1
    at = i64(h >> u64(1)) & mask
    while table[at] >= 0:
        step = i64(table[at])
        same = states[step] == state
        for w in range(words):
            same = same and bits[step, w] == symbols[symbol, w] & relevant[state, w]
        if same:
            move, there = known[step], moves[state * sizes[STRIDE] + symbol]
            there.marked = move.marked
            there.place = move.place
            there.other = move.other
            there.flags = move.flags
            return True
        at = (at + 1) & mask
    return False


@kernel
def enter_steps(A: Ptr[Cache], first: int, end: int) -> None:
    """Enter the steps first..end into their table, which has room for twice as many as there are."""
    table, states, bits = v.step_table(A), v.step_state(A), v.step_bits(A)
    words = v.sizes(A)[WORDS]
    mask = table.shape[0] - 1
    for step in range(first, end):
        h = u64(states[step])
        for w in range(words):
            h = _mixed(h, bits[step, w])
        at = i64(h >> u64(1)) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = step


@kernel
def number_events(A: Ptr[Cache], E: Ptr[Events], numbers: Array, known: Array, work: Array) -> int:
    """The number of each event's symbol from work[0] on, where the automaton rests also -1 for one that no letter
    reads. DONE, or what is needed: room for symbols, or to know what an event of symbol work[1] does in all states.

    numbers: i32[n]; known: i32[symbols]: in how many states that is known of each; work: i64: place, symbol, states,
    whether an event that no letter reads may change something.
    """
    count = v.partition(E).shape[0]
    while work[0] < count:
        at = work[0]
        number = i64(-1)
        if work[3] or is_read(A, E, at):
            number = number_of(A, v.symbol(E), at)
            if number < 0:
                return NEED_SYMBOL
            if number >= known.shape[0] or known[number] < work[2]:
                work[1] = number
                return NEED_STATE
        numbers[at] = number
        work[0] = at + 1
    return DONE


@kernel
def unknown_state(A: Ptr[Cache], symbol: int, states: int) -> int:
    """A state whose move on a symbol is not known; -1: there is none."""
    for state in range(states):
        if not v.moves(A)[state * v.sizes(A)[STRIDE] + symbol].flags & KNOWN and not recall(A, i64(state), symbol):
            return i64(state)
    return i64(-1)
