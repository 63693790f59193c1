"""Rows of groups → those of each report in order: ORDER BY, DISTINCT, LIMIT and OFFSET as columns (semantics.md 2.6b).

In the flow: rows of groups, with what ORDER BY compares → **arranged** → answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder

I64 = NDArray[np.int64]
Ids = NDArray[np.uint32]


class Arrangement:
    """Of the rows of one query. `wide`: its plan with rows that also have what ORDER BY compares, behind the columns
    that are shown."""

    def __init__(self, plan: SummaryPlan, terms: TermDictionary) -> None:
        self._plan, self._terms = plan, terms
        self._order: TermOrder | None = None
        self.shown = len(plan.columns)
        columns, names = [*plan.columns], [*plan.names]
        self._compared: list[tuple[int, bool]] = []
        """Of ORDER BY: the column of a row, and whether it descends."""
        for expression, descending in plan.order_by:
            if isinstance(expression, Variable) and expression in plan.names:
                place = plan.names.index(expression)
            elif expression in columns and is_pure(expression):
                place = columns.index(expression)
            else:
                place = len(columns)
                columns.append(expression)
                names.append(Variable(f"__order{place}"))
            self._compared.append((place, descending))
        self.wide = replace(plan, columns=tuple(columns), names=tuple(names), order_by=())

    @property
    def is_order(self) -> bool:
        """Whether rows are emitted as they come."""
        plan = self._plan
        return not (self._compared or plan.distinct or plan.offset) and plan.limit is None

    def of(self, time: I64, rows: Ids, at: I64 | None = None) -> MatchBatch:
        """The rows of some reports, each of its time (µs), one report after the other: those that are emitted, in
        order. `at`: when they are decided, None: at their times."""
        if at is not None and np.array_equal(at, time):
            at = None
        plan, shown = self._plan, rows[:, : self.shown]
        new = np.ones(len(time), np.bool_)
        new[1:] = time[1:] != time[:-1]
        if new.all() and not plan.offset:
            return MatchBatch.of_groups(time, np.ascontiguousarray(shown), at)
        report = np.cumsum(new) - 1
        order = np.arange(len(time))
        if self._compared:
            by = self._order = self._order or TermOrder(self._terms)
            ranks = [by.ranks(rows[:, place]) for place, _ in self._compared]
            keys = [-rank if down else rank for rank, (_, down) in zip(ranks, self._compared, strict=True)]
            order = np.lexsort((*reversed(keys), report))
        if plan.distinct:
            lines = np.column_stack([report[order], shown[order].astype(np.int64)])
            order = order[np.sort(np.unique(lines, axis=0, return_index=True)[1])]
        if plan.offset or plan.limit is not None:
            of = report[order]
            place = np.arange(len(of)) - np.searchsorted(of, of)
            end = len(of) if plan.limit is None else plan.offset + plan.limit
            order = order[(place >= plan.offset) & (place < end)]
        decided = None if at is None else at[order]
        return MatchBatch.of_groups(time[order], np.ascontiguousarray(shown[order]), decided)
