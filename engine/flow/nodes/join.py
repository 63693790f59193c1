"""The pairs of two arrangements that agree (operators.md, 3.2)."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.node import Call, KernelNode
from oxiseq.engine.kernels.flow.joining import PLACES, SIDE, Joining, join
from oxiseq.engine.kernels.flow.walking import ENTRY_AT
from oxiseq.engine.kernels.memory.pointers import Replaceable


class Join(KernelNode):
    """It keeps no rows: it joins the arrangements, which have been stepped before."""

    def __init__(self, left: Arrange, right: Arrange) -> None:
        super().__init__(left.inputs[0].width + right.inputs[0].width, (left.inputs[0], right.inputs[0]))
        self._sides = left, right
        places = np.zeros(PLACES, np.int64)
        places[[SIDE, ENTRY_AT]] = -1
        self._memory = Replaceable(Joining(places))

    def call(self) -> Call:
        (left, right), (a, b) = self._sides, self.inputs
        return Call(join, (self._memory, left, a, right, b, self.out))

    def provide(self, answer: int) -> None:
        for side in self._sides:
            side.make_room()
