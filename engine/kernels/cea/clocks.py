"""What events' windows hold: clocks and cuts (engine/cea/windows.py); a window's attribute as integers in its order."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.records import BY_ATTRIBUTE, BY_TIME, CANNOT_END, NEVER, Events, Few
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.raw import put

_REST: Final = (1 << 63) - 1
_ARRAYS: Final = len(Events._fields)


@kernel
def attribute_clocks(F: Ptr[Few], values: Array, clocks: Array, cuts: Array) -> None:
    """values: f64[n] → clocks, cuts: i64[n], in the window of `F`."""
    for row in range(len(values)):
        clocks[row], cuts[row] = _clock_and_cut(F, values[row])


@kernel
def place_few(F: Ptr[Few], time: Array, count: int) -> None:
    """Have `F` be as many events, at these times (µs), i64[>= count]: their clocks and cuts."""
    place(F, time, count)


@inner
def place(F: Ptr[Few], time: Array, count: int) -> None:
    """As `place_few`."""
    for number in range(_ARRAYS):
        put(F, WORDS * number + 1, count)
    clocks, cuts, attribute = v.clock(F), v.cut(F), v.attribute(F)
    kind, back = v.numbers(F)[0], v.numbers(F)[1]
    for row in range(count):
        if kind == BY_ATTRIBUTE:
            clocks[row], cuts[row] = _clock_and_cut(F, attribute[row])
        else:
            clocks[row] = time[row]
            cuts[row] = window_start(time[row], back, 1, 0) if kind == BY_TIME else time[row]


@inner
def _clock_and_cut(F: Ptr[Few], value: float) -> tuple[int, int]:
    """A difference is computed as one of doubles: first is within the window of last if last - first <= size."""
    size = v.size(F)[0]
    if np.isnan(value):
        return NEVER, CANNOT_END
    clock = NEVER if value == -np.inf else _sortable(F, value)
    if value == np.inf:
        return clock, CANNOT_END
    # rounding lets a difference half a step above the size be within: the boundary is a step or two from this
    cut = _sortable(F, value - size - v.size(F)[1])
    while not _within(F, value, cut):
        cut += 1
    while _within(F, value, cut - 1):
        cut -= 1
    return clock, cut


@inner
def _within(F: Ptr[Few], last: float, clock: int) -> bool:
    v.word(F)[0] = clock ^ ((clock >> 63) & _REST)
    return last - v.double(F)[0] <= v.size(F)[0]


@inner
def _sortable(F: Ptr[Few], value: float) -> int:
    """Integers in the order of the values; -0.0 is 0.0."""
    v.double(F)[0] = value + 0.0
    word = v.word(F)[0]
    return word ^ ((word >> 63) & _REST)
