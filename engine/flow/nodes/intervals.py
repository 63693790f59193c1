"""Intervals of rows: their hulls (plan.Hull)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.nodes.node import Node
from oxiseq.engine.flow.times import halves_of, times_at


class Hull(Node):
    def __init__(self, form: p.Hull, child: Buffer) -> None:
        super().__init__(child.width + 4, (child,))
        self._starts, self._ends = form.starts, form.ends

    def step(self) -> None:
        delta = self.inputs[0].delta
        start = _folded(delta.rows, self._starts, np.minimum)
        end = _folded(delta.rows, self._ends, np.maximum)
        rows = np.concatenate([delta.rows, halves_of(start), halves_of(end)], axis=1)
        self.out.put(Delta(delta.at, delta.weight, rows))


def _folded(rows: Ids, places: tuple[int, ...], fold: Callable[[I64, I64], I64]) -> I64:
    found = times_at(rows, places[0])
    for place in places[1:]:
        found = fold(found, times_at(rows, place))
    return found
