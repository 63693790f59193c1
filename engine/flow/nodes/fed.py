"""Sources of rows that the plan's caller supplies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Ids
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.node import Node

_ROOM: Final = 16


class Fed(Node):
    """`Flow.feed` puts a delta into `out`."""

    def step(self) -> None:
        """There is nothing to be done."""


class Windowed(Fed):
    """The rows of a triple pattern, which the caller keeps as well (engine/flow/leaves.py), by whatever joins ask
    for."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.rows = Arrange(p.Arrange(0, (), tuple(range(width))), self.out, _ROOM, listed=True)

    @property
    def bytes(self) -> int:
        return self.rows.bytes

    def held_ids(self) -> Iterable[Ids]:
        return self.rows.held_ids()
