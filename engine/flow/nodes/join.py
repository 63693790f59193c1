"""The pairs of two arrangements that agree (operators.md, 3.2)."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.node import Node
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT
from oxiseq.engine.kernels.flow.joining import ENTRY_AT, PLACES, SIDE, Joining, join
from oxiseq.engine.kernels.flow.stepping import JOIN
from oxiseq.engine.kernels.memory.pointers import Replaceable


class Join(Node):
    """It keeps nothing: what it joins stands in the arrangements, which have been stepped before."""

    def __init__(self, left: Arrange, right: Arrange) -> None:
        super().__init__(left.inputs[0].width + right.inputs[0].width, (left.inputs[0], right.inputs[0]))
        self._sides = left, right
        places = np.zeros(PLACES, np.int64)
        places[[SIDE, ENTRY_AT]] = -1
        self._memory = Replaceable(Joining(places))

    def step(self) -> None:
        left, right = self._sides
        a, b = self.inputs
        while True:
            answer = join(self._memory.address, left.address, a.address, right.address, b.address, self.out.address)
            if answer == DONE:
                return
            if answer == NEED_OUT:
                self.out.grow()
            else:
                left.make_room()
                right.make_room()

    @property
    def kernel_call(self) -> tuple[int, ...]:
        (left, right), (a, b) = self._sides, self.inputs
        return JOIN, self._memory.address, left.address, a.address, right.address, b.address, self.out.address
