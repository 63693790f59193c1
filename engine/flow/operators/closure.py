"""Paths of one step or more in time."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.arrange import Arrange, ArrangeNode
from oxiseq.engine.flow.operators.distinct import DistinctNode
from oxiseq.engine.flow.operators.in_time import Cover, cover
from oxiseq.engine.flow.operators.join import JoinNode
from oxiseq.engine.flow.operators.node import Chosen, Lifetime, Node
from oxiseq.engine.flow.times import times_at
from oxiseq.engine.kernels.flow.buffers import OVER
from oxiseq.engine.kernels.flow.moments import NO_END
from oxiseq.engine.terms.saved import part, value
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Closure:
    """Paths of one step or more, each with the least interval that holds its steps, if that lasts `limit` at most;
    steps and paths are two columns behind their interval, each once."""

    child: int
    limit: int | None = None


_END: Final = 2
_FROM, _TO = 4, 5
_WIDTH: Final = 6


class ClosureNode(Node):
    """Round by round: new paths continue along steps, and paths that there are along new steps. All of a batch are
    computed together; each belongs to the instant at which it ends."""

    made_of = value("_tick"), part("_all", "parts")

    def __init__(self, form: Closure, child: Buffer, clock: I64) -> None:
        super().__init__(_WIDTH, (child,))
        self._plan_clock = clock
        self._clock = clock = clock.copy()
        """Its own: rows of the instants in work stay through all rounds."""
        lifetime = None if form.limit is None else Lifetime(0, form.limit)
        self._new_paths, self._new_steps, self._found = (Buffer(_WIDTH) for _ in range(3))
        for buffer in (self._new_paths, self._new_steps, self._found):
            buffer.raw = (0, 1, 2, 3)
        self._paths = ArrangeNode(Arrange(0, (_TO,), lifetime=lifetime, coming=True), self._new_paths, clock=clock)
        self._steps = ArrangeNode(Arrange(0, (_FROM,), lifetime=lifetime, coming=True), self._new_steps, clock=clock)
        self._join = JoinNode(self._paths, self._steps)
        hull = Cover(0, 0, _WIDTH, ((_FROM,), (_WIDTH + _TO,)), form.limit)
        self._longer = cover(hull, self._join.out, clock)
        self._once = DistinctNode(self._found, lifetime=Lifetime(0), clock=clock)
        self._all = (self._paths, self._steps, self._once)
        self._tick = 0

    def step(self) -> None:
        delta = self.inputs[0].delta
        self._clock[:] = self._plan_clock
        found = [self._first(delta)]
        while len(found[-1]) or self._new_steps:
            self._tick += 1
            self._new_paths.put(_at(self._tick, found[-1]))
            self._paths.step()
            self._clock[OVER] = NO_END
            found.append(self._further())
            self._new_steps.clear()
        rows = np.concatenate(found)
        at = delta.at[times_at(delta.rows, _END).searchsorted(times_at(rows, _END))]
        order = np.argsort(at, kind="stable")
        self.out.put(Delta(at[order], np.ones(len(at), np.int64), rows[order]))

    def _first(self, delta: Delta) -> Ids:
        """The new steps, as paths."""
        self._tick += 1
        self._new_steps.put(_at(self._tick + 1, delta.rows.copy()))
        self._steps.step()
        return self._distinct(delta.rows)

    def _further(self) -> Ids:
        """One step more, from the end of all that is new."""
        for node in (self._join, self._longer):
            node.out.clear()
            node.step()
        return self._distinct(self._longer.out.delta.rows)

    def _distinct(self, rows: Ids) -> Ids:
        """Those that are not known, each once."""
        self._found.put(_at(self._tick, rows))
        self._once.out.clear()
        self._once.step()
        return self._once.out.delta.rows.copy()

    # --- its saved state --------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        return sum(node.records for node in self._all)

    def forget(self, *, now: bool = False) -> None:
        self._clock[:] = self._plan_clock
        for node in self._all:
            node.forget(now=now)

    def keep(self, chosen: Chosen) -> None:
        for node in self._all:
            node.keep(chosen)


def _at(tick: int, rows: Ids) -> Delta:
    """Rows that come at a tick."""
    return Delta(np.full(len(rows), tick), np.ones(len(rows), np.int64), rows)
