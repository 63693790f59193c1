"""What events' windows hold: clocks and cuts (engine/cea/windows.py); a window's attribute as integers in its order."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.cea import views as v
from oxiseq.engine.kernels.cea.records import BY_ATTRIBUTE, BY_TIME, CANNOT_END, NEVER, Events
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.raw import put

_REST: Final = (1 << 63) - 1
_ARRAYS: Final = len(Events._fields)


@kernel
def attribute_clocks(values: Array, size: float, double: Array, word: Array, clocks: Array, cuts: Array) -> None:
    """values: f64[n] → clocks, cuts: i64[n]. `double`: f64[1], and `word` the same memory as i64[1]: scratch."""
    for row in range(len(values)):
        clocks[row], cuts[row] = _clock_and_cut(values[row], size, double, word)


@kernel
def place_few(
    E: Ptr[Events],
    symbol: Array,
    partition: Array,
    time: Array,
    attribute: Array,
    kind: int,
    back: int,
    size: float,
    double: Array,
    word: Array,
) -> None:
    """Copy a few events to where `E` points, which has room for them, with their clocks and cuts.

    `kind`: of the window; of one of time `back` is the size in microseconds, of one of an attribute `size`. `double`,
    `word`: as above.
    """
    count = len(partition)
    for number in range(_ARRAYS):
        put(E, WORDS * number + 1, count)
    symbols, partitions, clocks, cuts = v.symbol(E), v.partition(E), v.clock(E), v.cut(E)
    for row in range(count):
        partitions[row] = partition[row]
        for w in range(symbol.shape[1]):
            symbols[row, w] = symbol[row, w]
        if kind == BY_ATTRIBUTE:
            clocks[row], cuts[row] = _clock_and_cut(attribute[row], size, double, word)
        else:
            clocks[row] = time[row]
            cuts[row] = window_start(time[row], back, 1, 0) if kind == BY_TIME else time[row]


@inner
def _clock_and_cut(value: float, size: float, double: Array, word: Array) -> tuple[int, int]:
    """A difference is computed as one of doubles: first is within the window of last if last - first <= size."""
    if np.isnan(value):
        return NEVER, CANNOT_END
    clock = NEVER if value == -np.inf else _sortable(value, double, word)
    if value == np.inf:
        return clock, CANNOT_END
    cut = _sortable(value - size, double, word)
    if not _within(value, cut, size, double, word) or _within(value, cut - 1, size, double, word):
        cut = _search(value, size, double, word)
    return clock, cut


@inner
def _search(last: float, size: float, double: Array, word: Array) -> int:
    """The smallest clock that is within the window of `last`, by bisection."""
    low, high = _sortable(-np.finfo(np.float64).max, double, word), _sortable(np.inf, double, word)
    while low < high:
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        if _within(last, middle, size, double, word):
            high = middle
        else:
            low = middle + 1
    return low


@inner
def _within(last: float, clock: int, size: float, double: Array, word: Array) -> bool:
    word[0] = clock ^ ((clock >> 63) & _REST)
    return last - double[0] <= size


@inner
def _sortable(value: float, double: Array, word: Array) -> int:
    """Integers in the order of the values; -0.0 is 0.0."""
    double[0] = value + 0.0
    return word[0] ^ ((word[0] >> 63) & _REST)
