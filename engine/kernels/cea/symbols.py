"""Symbols are numbered, and the automaton's steps found again: two hash tables.

The kernel looks moves up by (state, number of the symbol). A symbol that is new has no moves there, but most of its
bits do not matter to a state: what the state does on those that do is probably known.
"""

from __future__ import annotations

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
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import put_slot, slot_of_row


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
    sizes, slots, symbols = v.sizes(A), v.symbol_slots(A), v.symbols(A)
    words = sizes[WORDS]
    tag = row_tag(bits, row, 0, words)
    slot = slot_of_row(slots, tag, symbols, 0, bits, row, words)
    if slot >= 0:
        return i64(slots[slot].number) - 1
    number = sizes[SYMBOLS]
    if number == sizes[STRIDE]:
        return i64(-1)
    slots[-1 - slot].tag, slots[-1 - slot].number = tag, number + 1
    for w in range(words):
        symbols[number, w] = bits[row, w]
    sizes[SYMBOLS] = number + 1
    return number


@kernel
def enter_symbols(A: Ptr[Cache]) -> None:
    """Enter all symbols into the table, which is empty."""
    for number in range(v.sizes(A)[SYMBOLS]):
        put_slot(v.symbol_slots(A), row_tag(v.symbols(A), number, 0, v.sizes(A)[WORDS]), number)


@inner
def recall(A: Ptr[Cache], state: int, symbol: int) -> bool:
    """Whether the state's move on the symbol is known from another one; then it is entered for this one too."""
    sizes, key, slots = v.sizes(A), v.key(A), v.step_slots(A)
    words = sizes[WORDS]
    key[0, 0] = state
    for w in range(words):
        key[0, 1 + w] = v.symbols(A)[symbol, w] & v.relevant(A)[state, w]
    slot = slot_of_row(slots, row_tag(key, 0, 0, 1 + words), v.step_key(A), 0, key, 0, 1 + words)
    if slot < 0:
        return False
    move, there = v.step_move(A)[i64(slots[slot].number) - 1], v.moves(A)[state * sizes[STRIDE] + symbol]
    there.marked = move.marked
    there.place = move.place
    there.other = move.other
    there.flags = move.flags
    return True


@kernel
def enter_steps(A: Ptr[Cache], first: int, end: int) -> None:
    """Enter the steps first..end into their table."""
    for step in range(first, end):
        put_slot(v.step_slots(A), row_tag(v.step_key(A), step, 0, 1 + v.sizes(A)[WORDS]), step)


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
