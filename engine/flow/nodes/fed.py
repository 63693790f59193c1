"""Sources of rows that the plan's caller supplies."""

from __future__ import annotations

from oxiseq.engine.flow.nodes.node import Node


class Fed(Node):
    """`Flow.feed` puts a delta into `out`."""

    def step(self) -> None:
        """There is nothing to be done."""
