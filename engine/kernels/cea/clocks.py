"""The window's attribute as integers in its order, and what is within the window of each (engine/cea/windows.py)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.cea.records import CANNOT_END, NEVER
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.pointers import Array

_REST: Final = (1 << 63) - 1


@kernel
def attribute_clocks(values: Array, size: float, double: Array, word: Array, clocks: Array, cuts: Array) -> None:
    """values: f64[n] → clocks, cuts: i64[n]. `double`: f64[1], and `word` the same memory as i64[1]: scratch.

    A difference is computed as one of doubles: first is within the window of last if last - first <= size.
    """
    for row in range(len(values)):
        value = values[row]
        if np.isnan(value):
            clocks[row] = NEVER
            cuts[row] = CANNOT_END
            continue
        clocks[row] = NEVER if value == -np.inf else _sortable(value, double, word)
        if value == np.inf:
            cuts[row] = CANNOT_END
            continue
        cut = _sortable(value - size, double, word)
        if not _within(value, cut, size, double, word) or _within(value, cut - 1, size, double, word):
            cut = _search(value, size, double, word)
        cuts[row] = cut


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
