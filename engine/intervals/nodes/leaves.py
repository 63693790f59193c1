"""Operators that look at what comes: triple patterns, and rows without a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.intervals.nodes.node import Arrived, Node
from oxiseq.engine.intervals.plan import TimelessPlan, TriplePlan
from oxiseq.engine.intervals.rows import NEVER, Rows, timeless
from oxiseq.engine.terms.dictionary import TermDictionary


class Leaf(Node):
    def __init__(self, plan: TriplePlan, terms: TermDictionary) -> None:
        super().__init__(plan.columns, ())
        self._plan = plan
        self._constants = [(i, terms.constant(p)) for i, p in enumerate(plan.places)
                           if isinstance(p, NamedNode | Literal)]  # fmt: skip
        self._but = [terms.constant(p) for p in plan.but]
        self._places = [3 if c == plan.use else plan.places.index(c) for c in plan.columns]
        self._same = [
            (plan.places.index(p), i) for i, p in enumerate(plan.places)
            if not isinstance(p, NamedNode | Literal) and plan.places.index(p) != i
        ]

    def step(self, arrived: Arrived) -> Rows:
        if arrived.knowledge is not None:
            known = arrived.knowledge.triples(self._plan.places)
            return self._of(known if self._plan.use is None else with_use(known, np.zeros(len(known), np.uint32)))
        rows = self._of(arrived.triples)
        if self._plan.limit == NEVER or not len(rows):
            return rows
        return rows.take(rows.end - rows.start <= self._plan.limit)

    def _of(self, triples: Rows) -> Rows:
        if not len(triples):
            return self.nothing
        keep: NDArray[np.bool_] | None = None
        for place, constant in self._constants:
            here = triples.values[:, place] == constant
            keep = here if keep is None else keep & here
        for first, second in self._same:
            here = triples.values[:, first] == triples.values[:, second]
            keep = here if keep is None else keep & here
        if self._but:
            here = ~np.isin(triples.values[:, 1], self._but)
            keep = here if keep is None else keep & here
        if keep is not None:
            triples = triples.take(np.flatnonzero(keep))
        return triples.columns(self._places)


def with_use(triples: Rows, use: NDArray[np.uint32]) -> Rows:
    """Triples, each with the id that tells it from all others; 0 for those that are never used up."""
    return Rows(np.column_stack([triples.values, use]), triples.start, triples.end)


class Timeless(Node):
    def __init__(self, plan: TimelessPlan, terms: TermDictionary) -> None:
        super().__init__(plan.columns, ())
        self._asked = plan.asked
        ids = [[0 if t is None else terms.constant(t) for t in row] for row in plan.rows]
        self._rows = np.array(ids, np.uint32).reshape(len(plan.rows), len(plan.columns))

    def step(self, arrived: Arrived) -> Rows:
        if arrived.knowledge is None:
            return self.nothing
        if self._asked:
            return timeless(arrived.knowledge.answer(self._asked, self.columns))
        return timeless(self._rows)
