"""The same rows, what comes and goes within a tick left out (operators.md, 3.4)."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.nodes.node import Call, KernelNode
from oxiseq.engine.kernels.flow.counting import (
    FIRST,
    PLACES,
    SLOTS_WANTED,
    Cancelling,
    consolidate,
    fill_found,
)
from oxiseq.engine.kernels.flow.slots import SLOT, slots_for
from oxiseq.engine.kernels.memory.pointers import Replaceable


class Consolidate(KernelNode):
    """It keeps nothing between ticks. slots: of its hash table, to begin with; a power of two."""

    def __init__(self, child: Buffer, slots: int = 16) -> None:
        super().__init__(child.width, (child,))
        places = np.zeros(PLACES, np.int64)
        places[FIRST] = -1
        self._memory = Replaceable(Cancelling(places, np.zeros(slots, SLOT)))

    def call(self) -> Call:
        return Call(consolidate, (self._memory.address, self.inputs[0].address, self.out.address))

    def provide(self, answer: int) -> None:
        memory = self._memory
        slots = slots_for(int(memory.arrays.places[SLOTS_WANTED]) // 2)
        memory.set(memory.arrays._replace(slots=np.zeros(slots, SLOT)))
        fill_found(memory.address, self.out.address)

    @property
    def bytes(self) -> int:
        return int(self._memory.arrays.slots.nbytes)
