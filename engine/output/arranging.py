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
from oxiseq.engine.output.parts import integer
from oxiseq.engine.output.suppression import Suppressor, texts_of
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder
from oxiseq.grammar.algebra import SUPPRESSED

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
        self._keys = 0
        """Where group keys begin, which only SUPPRESS compares."""
        self.suppressor = None
        if plan.suppression is not None:
            self.suppressor = Suppressor(plan.suppression, len(plan.suppressed_by), plan.limit, plan.columns)
            self._keys = len(columns)
            columns += plan.keys
            names += (Variable(f"__key{place}") for place in range(len(plan.keys)))
            self._apart = [self._keys + plan.keys.index(key) for key in plan.suppressed_by]
        self.wide = replace(plan, columns=tuple(columns), names=tuple(names), order_by=())

    @property
    def is_order(self) -> bool:
        """Whether rows are emitted as they come."""
        plan = self._plan
        return not (self._compared or plan.distinct or plan.offset or plan.suppression) and plan.limit is None

    def of(self, time: I64, rows: Ids, at: I64 | None = None) -> MatchBatch:
        """The rows of some reports, each of its time (µs), one report after the other: those that are emitted, in
        order. `at`: when they are decided, None: at their times."""
        if self.suppressor is not None:
            return self._unsuppressed(self.suppressor, time, rows, time if at is None else at)
        if at is not None and np.array_equal(at, time):
            at = None
        plan, shown = self._plan, rows[:, : self.shown]
        new = np.ones(len(time), np.bool_)
        new[1:] = time[1:] != time[:-1]
        if new.all() and not plan.offset:
            return MatchBatch.of_groups(time, np.ascontiguousarray(shown), at)
        report = np.cumsum(new) - 1
        order = np.lexsort((*self._by_keys(rows), report)) if self._compared else np.arange(len(time))
        if plan.distinct:
            order = order[_first(report[order], shown[order])]
        if plan.offset or plan.limit is not None:
            of = report[order]
            place = np.arange(len(of)) - np.searchsorted(of, of)
            end = len(of) if plan.limit is None else plan.offset + plan.limit
            order = order[(place >= plan.offset) & (place < end)]
        decided = None if at is None else at[order]
        return MatchBatch.of_groups(time[order], np.ascontiguousarray(shown[order]), decided)

    def _by_keys(self, rows: Ids) -> list[I64]:
        """What ORDER BY compares, as `lexsort` takes it."""
        by = self._order = self._order or TermOrder(self._terms)
        ranks = [by.ranks(rows[:, place]) for place, _ in self._compared]
        return [-rank if down else rank for rank, (_, down) in zip(ranks, self._compared, strict=True)][::-1]

    def _unsuppressed(self, suppressor: Suppressor, time: I64, rows: Ids, at: I64) -> MatchBatch:
        """The same of a query with SUPPRESS, which needs each report in order: ORDER BY, then the texts of the keys."""
        texts = texts_of(rows[:, self._keys :], self._terms)
        places = {text: place for place, text in enumerate(sorted({text for row in texts for text in row}))}
        named = np.array([[places[text] for text in row] for row in texts], np.int64)
        named = named.reshape(len(rows), len(self.wide.keys))
        order = np.lexsort((*named.T[::-1], *self._by_keys(rows), time, at))
        share = np.unique(time[order], return_inverse=True)[1].astype(np.int64)
        emitted = suppressor.emitted(at[order], rows[order][:, self._apart], share)
        order = order[emitted.rows]
        shown = np.ascontiguousarray(rows[order][:, : self.shown])
        for place, column in enumerate(self._plan.columns):
            if column == SUPPRESSED:
                shown[:, place] = self._terms.intern_all(map(integer, emitted.dropped.tolist()))
        if self._plan.distinct:
            kept = _first(time[order], shown)
            order, shown = order[kept], shown[kept]
        decided = at[order]
        same = np.array_equal(decided, time[order])
        return MatchBatch.of_groups(time[order], shown, None if same else decided)


def _first(report: I64, shown: Ids) -> I64:
    """The places of the first of equal rows of each report."""
    lines = np.column_stack([report, shown.astype(np.int64)])
    return np.sort(np.unique(lines, axis=0, return_index=True)[1])
