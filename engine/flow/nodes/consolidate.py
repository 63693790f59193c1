"""The same rows, what comes and goes within a tick left out (operators.md, 3.4)."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.nodes.node import Node
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT
from oxiseq.engine.kernels.flow.counting import (
    FIRST,
    PLACES,
    SLOTS_WANTED,
    Cancelling,
    consolidate,
    fill_found,
)
from oxiseq.engine.kernels.flow.slots import SLOT, slots_for
from oxiseq.engine.kernels.flow.stepping import CONSOLIDATE
from oxiseq.engine.kernels.memory.pointers import Replaceable


class Consolidate(Node):
    """It keeps nothing between ticks. slots: of its hash table, to begin with; a power of two."""

    def __init__(self, child: Buffer, slots: int = 16) -> None:
        super().__init__(child.width, (child,))
        places = np.zeros(PLACES, np.int64)
        places[FIRST] = -1
        self._memory = Replaceable(Cancelling(places, np.zeros(slots, SLOT)))

    def step(self) -> None:
        memory, delta, out = self._memory, self.inputs[0], self.out
        while (answer := consolidate(memory.address, delta.address, out.address)) != DONE:
            if answer == NEED_OUT:
                out.grow()
                continue
            slots = slots_for(int(memory.arrays.places[SLOTS_WANTED]) // 2)
            memory.set(memory.arrays._replace(slots=np.zeros(slots, SLOT)))
            fill_found(memory.address, out.address)

    @property
    def kernel_call(self) -> tuple[int, ...]:
        return CONSOLIDATE, self._memory.address, self.inputs[0].address, self.out.address

    @property
    def bytes(self) -> int:
        return int(self._memory.arrays.slots.nbytes)
