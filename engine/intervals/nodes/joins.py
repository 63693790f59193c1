"""Joins, and paths of many steps, which are joins of steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oxiseq.engine.intervals.nodes.node import Arrived, Late, Node, only_timeless
from oxiseq.engine.intervals.nodes.sides import NO_LOOSE, Shared
from oxiseq.engine.intervals.plan import ClosurePlan, JoinPlan, is_timeless
from oxiseq.engine.intervals.rows import Column, Rows, concat
from oxiseq.engine.intervals.table import Table
from oxiseq.engine.kernels.intervals.joining import ANY, COME_FIRST, KEPT_FIRST, SAME
from oxiseq.grammar.algebra import TimeOp


class Join(Node):
    """Both sides are kept, as far as the other side may still need them: of SEQ only the first, of EQUALS for the
    instant, of a join with what has no time nothing but that."""

    def __init__(self, plan: JoinPlan, left: Node, right: Node) -> None:
        shared = Shared.of(plan.left, plan.right)
        self._left = Table(len(left.columns), shared.left_key.tolist(), plan.limit)
        self._right = Table(len(right.columns), shared.right_key.tolist(), plan.limit)
        super().__init__(plan.columns, (left, right), (self._left, self._right))
        self._shared, self._limit, self._op = shared, plan.limit, plan.op
        self._first = Late(left, plan.late)
        self._keeps_left = plan.op is not None or not is_timeless(plan.right)
        self._keeps_right = plan.op is TimeOp.EQUALS or (plan.op is None and not is_timeless(plan.left))
        self._modes = {None: (ANY, ANY), TimeOp.SEQ: (COME_FIRST, KEPT_FIRST), TimeOp.EQUALS: (SAME, SAME)}[plan.op]

    @property
    def parts(self) -> Iterator[tuple[Table, tuple[Column, ...]]]:
        left, right = self.children
        yield self._left, left.columns
        yield self._right, right.columns

    def begin(self) -> None:
        self._left.add(self._first.rest().timed())
        if self._op is TimeOp.EQUALS:
            self._left.clear()
            self._right.clear()

    def step(self, arrived: Arrived) -> Rows:
        left, right = self._first.step(arrived), self.children[1].step(arrived)
        if self._op is not None:
            left, right = left.timed(), right.timed()
        parts = []
        if len(left) and len(self._right):
            i, j = self._right.probe(left, self._shared.left_key, self._shared.loose, self._modes[0], self._limit)
            parts.append(self._shared.pairs(left.take(i), self._right.rows.take(j)))
        dropped = arrived.timeless or self._keeps_left
        if len(left) and (dropped or len(right)):
            self._left.add(left)
        if len(right) and len(self._left):
            i, j = self._left.probe(right, self._shared.right_key, self._shared.turned, self._modes[1], self._limit)
            parts.append(self._shared.pairs(self._left.rows.take(j), right.take(i)))
        if not dropped:
            self._left.clear()
        if self._keeps_right or (arrived.timeless and self._op is None):
            self._right.add(right)
        return only_timeless(concat(parts, len(self.columns)), arrived).distinct()


class Closure(Node):
    """Paths of one step or more: what has come goes on from paths that are kept, then on along kept steps."""

    def __init__(self, plan: ClosurePlan, step: Node) -> None:
        self._paths, self._steps = Table(2, (1,), plan.limit), Table(2, (0,), plan.limit)
        super().__init__(plan.columns, (step,), (self._paths, self._steps))
        self._limit = plan.limit
        self._begin, self._end = np.zeros(1, np.int64), np.ones(1, np.int64)

    def step(self, arrived: Arrived) -> Rows:
        steps = self.children[0].step(arrived)
        if not len(steps):
            return self.nothing
        i, j = self._paths.probe(steps, self._begin, NO_LOOSE, ANY, self._limit)
        found = concat([steps, _on(self._paths.rows.take(j), steps.take(i))], 2)
        found = only_timeless(found, arrived).distinct()
        self._steps.add(steps)
        new = found
        while len(new):
            i, j = self._steps.probe(new, self._end, NO_LOOSE, ANY, self._limit)
            more = only_timeless(_on(new.take(i), self._steps.rows.take(j)), arrived)
            new = concat([found, more], 2).distinct(len(found))
            found = concat([found, new], 2)
        self._paths.add(found)
        return found


def _on(first: Rows, second: Rows) -> Rows:
    """Paths, each with one that begins where it ends."""
    values = np.stack([first.values[:, 0], second.values[:, 1]], axis=1)
    return Rows(values, np.minimum(first.start, second.start), np.maximum(first.end, second.end))
