"""Operators that take row by row: UNION, FILTER, BIND, projections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyoxigraph import Literal

from oxiseq.engine.intervals.conditions import RowConditions, RowExpression
from oxiseq.engine.intervals.nodes.node import Arrived, Node
from oxiseq.engine.intervals.plan import ExtendPlan, FilterPlan, ProjectPlan, UnionPlan
from oxiseq.engine.intervals.rows import Rows, concat
from oxiseq.engine.terms.dictionary import TermDictionary


class Union(Node):
    def __init__(self, plan: UnionPlan, branches: Sequence[Node], terms: TermDictionary) -> None:
        super().__init__(plan.columns, branches)
        self._numbers = [terms.constant(Literal(n)) for n in range(len(branches))]
        self._places = [[self.columns.index(c) for c in branch.columns] for branch in branches]

    def step(self, arrived: Arrived) -> Rows:
        parts = []
        for branch, places, number in zip(self.children, self._places, self._numbers, strict=True):
            rows = branch.step(arrived)
            if len(rows):
                values = np.zeros((len(rows), len(self.columns)), np.uint32)
                values[:, places] = rows.values
                values[:, -1] = number
                parts.append(Rows(values, rows.start, rows.end))
        return concat(parts, len(self.columns))


class Filter(Node):
    def __init__(self, plan: FilterPlan, child: Node, terms: TermDictionary) -> None:
        super().__init__(plan.columns, (child,))
        self._conditions = RowConditions(plan.conditions, plan.columns, terms)

    def step(self, arrived: Arrived) -> Rows:
        return self._conditions.passing(self.children[0].step(arrived))


class Extend(Node):
    def __init__(self, plan: ExtendPlan, child: Node, terms: TermDictionary) -> None:
        super().__init__(plan.columns, (child,))
        self._expression = RowExpression(plan.expression, child.columns, terms)

    def step(self, arrived: Arrived) -> Rows:
        rows = self.children[0].step(arrived)
        if not len(rows):
            return self.nothing
        computed = self._expression.values(rows)
        return Rows(np.concatenate([rows.values, computed[:, None]], axis=1), rows.start, rows.end)


class Project(Node):
    def __init__(self, plan: ProjectPlan, child: Node) -> None:
        super().__init__(plan.columns, (child,))
        self._places, self._distinct, self._same = plan.places, plan.distinct, plan.same

    def step(self, arrived: Arrived) -> Rows:
        rows = self.children[0].step(arrived)
        if not len(rows):
            return self.nothing
        if self._same:
            rows = rows.take(np.flatnonzero(rows.values[:, 0] == rows.values[:, 1]))
        rows = rows.columns(self._places)
        return rows.distinct() if self._distinct else rows
