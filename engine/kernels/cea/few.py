"""A batch of few events of the only partition that were marked where the automaton reads them: all else that there is
to note of them, in one call."""

from __future__ import annotations

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.clocks import place
from oxiseq.engine.kernels.cea.held import Letters, enter
from oxiseq.engine.kernels.cea.records import AT, Few, Memory
from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


@kernel
def enter_few(S: Ptr[Memory], F: Ptr[Few], time: Array, log: Array, low: int, L: Ptr[Letters], held: int) -> None:
    """n events at `time`, i64[n], µs. They get clocks and cuts in `F`, their times go to `log` from place `low` on, and
    if `held` is not negative they are entered into the history `L` from that place on (held.py). The runner of `S` is
    to begin at the first. There is room for all that."""
    count = len(time)
    place(F, time, count)
    v.scalars(S)[AT] = 0
    for row in range(count):
        log[low + row] = time[row]
    if held >= 0:
        enter(L, v.symbol(F), v.partition(F), count, held)
