"""What events' windows hold: clocks and cuts (engine/cea/events.py); a window's attribute as integers in its order."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.held import Letters, enter
from oxiseq.engine.kernels.cea.records import AT, BY_ATTRIBUTE, CANNOT_END, NEVER, Cache, Events, Few, Memory
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.raw import put

_REST: Final = (1 << 63) - 1
_ARRAYS: Final = len(Events._fields)


@inner
def query_of(A: Ptr[Cache], p: int) -> int:
    """The query that partition `p` is of."""
    return p if v.queries(A).shape[0] > 1 else i64(0)


@kernel
def attribute_clocks(F: Ptr[Few], values: Array, clocks: Array, cuts: Array) -> None:
    """values: f64[n] → clocks, cuts: i64[n], in the window of `F`."""
    for row in range(len(values)):
        clocks[row], cuts[row] = _clock_and_cut(F, values[row])


@kernel
def place_few(F: Ptr[Few], time: Array, count: int) -> None:
    """Have `F` be as many events, at these times (µs), i64[>= count]: their clocks, and cuts by an attribute."""
    _place(F, time, count)


@kernel
def enter_few(S: Ptr[Memory], F: Ptr[Few], time: Array, log: Array, low: int, L: Ptr[Letters], held: int) -> None:
    """`place_few` for n events at `time`, i64[n], of the only partition, marked where the automaton reads them, and all
    else that there is to note of them: their times go to `log` from place `low` on, and if `held` is not negative they
    are entered into the history `L` from that place on (held.py). The runner of `S` is to begin at the first. There is
    room for all that."""
    count = len(time)
    _place(F, time, count)
    v.scalars(S)[AT] = 0
    for row in range(count):
        log[low + row] = time[row]
    if held >= 0:
        enter(L, v.symbol(F), v.partition(F), count, held)


@inner
def _place(F: Ptr[Few], time: Array, count: int) -> None:
    for number in range(_ARRAYS):
        put(F, WORDS * number + 1, count)
    clocks, cuts, attribute = v.clock(F), v.cut(F), v.attribute(F)
    if v.kind(F)[0] == BY_ATTRIBUTE:
        for row in range(count):
            clocks[row], cuts[row] = _clock_and_cut(F, attribute[row])
    else:
        for row in range(count):
            clocks[row] = time[row]


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
