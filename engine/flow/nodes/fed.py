"""Sources of rows that the plan's caller supplies."""

from __future__ import annotations

from typing import Final

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.node import Node
from oxiseq.engine.terms.saved import unsaved

_ROOM: Final = 16


class Fed(Node):
    """`Flow.feed` puts a delta into `out`."""

    def step(self) -> None:
        """There is nothing to be done."""


class Windowed(Fed):
    """The rows of a triple pattern, which the caller keeps as well (engine/flow/leaves.py), by whatever joins ask
    for."""

    made_of = (unsaved("rows"),)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.rows = Arrange(p.Arrange(0, (), tuple(range(width))), self.out, _ROOM, listed=True)
