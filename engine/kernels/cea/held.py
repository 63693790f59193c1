"""Which variables hold each position of a match, where that depends on the rest of the match.

A match's events are read again through the position automaton: forwards, which letters each can be, then one path
backwards. Takes a look at each position of D and, if some letters are silent, at the events between.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


class Letters(Arrays):
    """The position automaton and what has happened."""


_atom = array(Letters, "atom", np.int64)  # i64[letters]
_mask = array(Letters, "mask", np.uint64, 2)  # u64[letters, words of variables]
_kinds = array(Letters, "kinds", np.uint8, 2)  # u8[letters, 3]: KEPT, FIRST, LAST
_at_once = array(Letters, "at_once", np.uint8, 2)  # u8[letters, letters]
_later = array(Letters, "later", np.uint8, 2)  # u8[letters, letters]
_symbol = array(Letters, "symbol", np.uint64, 2, rows="events", columns="words")
_before = array(Letters, "before", np.int64, rows="events")  # the position before in its partition
_sizes = array(Letters, "sizes", np.int64)
"""OLDEST, the position of the first event here; SILENT, whether some letter is silent."""
_last = array(Letters, "last", np.int64, rows="partitions", fill=-1)
"""The last position in each so far, -1 if there is none."""


class Scratch(Arrays):
    """Room for the events of one match."""


_chain = array(Scratch, "chain", np.int64, rows="events")  # positions
_flags = array(Scratch, "flags", np.uint8, 2, rows="events", columns=3)
"""IN_D, MUST be read, ADJACENT to the one before."""
_reach = array(Scratch, "reach", np.uint8, 2, rows="events", columns="letters")
_wait = array(Scratch, "wait", np.uint8, rows="letters")


class Matches(Arrays):
    """As in FoundEvents."""


_start = array(Matches, "start", np.int64)
_end = array(Matches, "end", np.int64)
_positions = array(Matches, "positions", np.int64)
_offsets = array(Matches, "offsets", np.int64)
_held = array(Matches, "held", np.uint64, 2)


KEPT, FIRST, LAST = range(3)
IN_D, MUST, ADJACENT = range(3)
OLDEST, SILENT = range(2)


@kernel
def append(L: Ptr[Letters], symbol: Array, partition: Array, count: int, low: int) -> None:
    """`enter` from Python."""
    enter(L, symbol, partition, count, low)


@inner
def enter(L: Ptr[Letters], symbol: Array, partition: Array, count: int, low: int) -> None:
    """Enter the first `count` events from place `low` on; there is room."""
    symbols, before, last, base = _symbol(L), _before(L), _last(L), _sizes(L)[OLDEST] + low
    for i in range(count):
        for w in range(symbol.shape[1]):
            symbols[low + i, w] = symbol[i, w]
        p = partition[i]
        before[low + i] = -1
        if p >= 0:
            before[low + i] = last[p]
            last[p] = base + i


@kernel
def resolve(L: Ptr[Letters], X: Ptr[Scratch], M: Ptr[Matches], matches: Array, done: int) -> int:
    """Write `held` for the positions of some matches (their numbers in `offsets`), from the number `done` of them on.

    Returns how many are done: less than all if the scratch has no room for the next.
    """
    offsets, positions = _offsets(M), _positions(M)
    while done < matches.shape[0]:
        match = matches[done]
        low, high = offsets[match], offsets[match + 1]
        if _sizes(L)[SILENT]:
            count = _between(L, X, _start(M)[match], _end(M)[match], positions, low, high)
        else:
            count = _only(L, X, positions, low, high)
        if count < 0:
            return done
        for i in range(count):
            _forward(L, X, i)
        _backward(L, X, count, _held(M), high)
        done += 1
    return done


@inner
def _between(L: Ptr[Letters], X: Ptr[Scratch], start: int, end: int, positions: Array, low: int, high: int) -> int:
    """The chain of all events of the partition from start to end; its length, -1 without room."""
    chain, flags, before, oldest = _chain(X), _flags(X), _before(L), _sizes(L)[OLDEST]
    count = i64(0)
    at = end
    while at >= start and at >= 0:
        count += 1
        at = before[at - oldest]
    if count > chain.shape[0]:
        return i64(-1)
    at = end
    d = high - 1
    for i in range(count - 1, -1, -1):
        chain[i] = at
        is_in = d >= low and positions[d] == at
        flags[i, IN_D] = is_in
        flags[i, MUST] = is_in or i == 0 or i == count - 1
        flags[i, ADJACENT] = i > 0
        if is_in:
            d -= 1
        at = before[at - oldest]
    return count


@inner
def _only(L: Ptr[Letters], X: Ptr[Scratch], positions: Array, low: int, high: int) -> int:
    """The chain of the positions of D, all of which are read."""
    chain, flags, before, oldest = _chain(X), _flags(X), _before(L), _sizes(L)[OLDEST]
    if high - low > chain.shape[0]:
        return i64(-1)
    for i in range(high - low):
        at = positions[low + i]
        chain[i] = at
        flags[i, IN_D] = 1
        flags[i, MUST] = 1
        flags[i, ADJACENT] = i > 0 and before[at - oldest] == chain[max(i - 1, 0)]
    return high - low


@inner
def _reads(L: Ptr[Letters], X: Ptr[Scratch], i: int, letter: int) -> bool:
    """Whether event number i of the chain can be the letter, by itself."""
    if _kinds(L)[letter, KEPT] != _flags(X)[i, IN_D]:
        return False
    atom = _atom(L)[letter]
    word = _symbol(L)[_chain(X)[i] - _sizes(L)[OLDEST], atom >> 6]
    return (word >> u64(atom & 63)) & u64(1) != u64(0)


@inner
def _forward(L: Ptr[Letters], X: Ptr[Scratch], i: int) -> None:
    """Which letters event number i of the chain can be, after those before it."""
    reach, wait, flags, at_once, later = _reach(X), _wait(X), _flags(X), _at_once(L), _later(L)
    letters = wait.shape[0]
    for m in range(letters):
        reach[i, m] = 0
        if not _reads(L, X, i, m):
            continue
        if i == 0:
            reach[i, m] = _kinds(L)[m, FIRST]
            continue
        possible = wait[m] != 0
        if not possible and flags[i, ADJACENT]:
            for n in range(letters):
                if reach[i - 1, n] and at_once[n, m]:
                    possible = True
                    break
        reach[i, m] = possible
    if flags[i, MUST]:
        for m in range(letters):
            wait[m] = 0
    for n in range(letters):
        if reach[i, n]:
            for m in range(letters):
                wait[m] |= later[n, m]


@inner
def _backward(L: Ptr[Letters], X: Ptr[Scratch], count: int, held: Array, high: int) -> None:
    """One path from the last event of the chain to the first; the masks of its letters."""
    reach, flags, mask = _reach(X), _flags(X), _mask(L)
    letters = _wait(X).shape[0]
    letter, i, d = i64(0), count - 1, high - 1
    while letter < letters and not (reach[i, letter] and _kinds(L)[letter, LAST]):
        letter += 1
    while True:
        if flags[i, IN_D]:
            for w in range(mask.shape[1]):
                held[d, w] = mask[letter, w]
            d -= 1
        if i == 0:
            return
        j = i - 1
        found = _predecessor(L, X, j, letter, flags[i, ADJACENT] != 0)
        while found < 0:  # there is one at or after the last event that must be read
            j -= 1
            found = _predecessor(L, X, j, letter, False)
        i, letter = j, found


@inner
def _predecessor(L: Ptr[Letters], X: Ptr[Scratch], i: int, letter: int, adjacent: bool) -> int:
    """A letter that event number i can be and that `letter` may follow; -1: none."""
    reach = _reach(X)
    for n in range(_wait(X).shape[0]):
        if reach[i, n] and (_later(L)[n, letter] or (adjacent and _at_once(L)[n, letter])):
            return n
    return i64(-1)
