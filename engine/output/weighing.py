"""The matches that end at each instant, or in each window, → totals of groups, from weights of nodes: none is listed,
and Python sees a batch at a time (engine/plan/folding.py, kernels/matches/weighing.py).

In the flow: finals of a batch → weights → **totals** → groups (summaries.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.totals import TOO_MANY, Total
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.events import MeasuredEvents, OfEvents
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.measures import Weight
from oxiseq.engine.matches.weighing import NodeWeigher, Rows
from oxiseq.engine.output.entries import Weighed
from oxiseq.engine.output.folding import Folded
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.plan.folding import Folding
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.grammar.algebra import Aggregate

I64 = NDArray[np.int64]


class MatchWeigher(Stateful):
    """Weighs for one query. `rows`: those that nodes refer to."""

    made_of = (unsaved("_nodes"),)

    def __init__(self, plan: QueryPlan, folding: Folding, rows: RowStore, terms: TermDictionary) -> None:
        assert plan.summary is not None
        self._summary, self._folding, self._rows, self._terms = plan.summary, folding, rows, terms
        named = [(m.aggregate.name, of) for m, of in zip(plan.summary.measures, folding.measures, strict=True)]
        self._measured = MeasuredEvents(named, terms, counted=True)
        self._measures = self._measured.measures
        self._columns = [plan.runner.stored.index(variable) for variable in self._measured.attributes]
        held = self._measured.held([letter.letter for letter in plan.letters])
        self._nodes = NodeWeigher(self._measures, held, self._read)
        self.moved = self._nodes.moved
        self._folded: list[Folded] = []
        self.origin = 0
        """The clock at which the first window begins."""

    def take(self) -> list[Folded]:
        """The folds since the last call."""
        folded, self._folded = self._folded, []
        return folded

    def weigh(self, S: Memory, found: Found, clock: I64, time: I64) -> None:
        """Fold the matches of these finals: nodes, in `found.rows`, that ended at instants of these clocks and times
        (µs). Raises LimitError."""
        window = self._summary.window
        key = clock
        if self._summary.by_window and window is not None:
            key = (clock - self.origin) // window.size
        starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        line = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(key))))
        weights = self._nodes.weigh(S, found.rows, found.marks[:, 1], found.marks[:, 0], line)
        ends = time[np.append(starts[1:], len(key)) - 1]
        huge = None
        for end, words in zip(ends.tolist(), weights, strict=True):
            try:
                self._fold(end, Weight.of(words, self._nodes.form))
            except LimitError as error:
                huge = huge or error
        if huge is not None:
            raise huge

    def _read(self, first: int) -> Rows:
        rows, block = self._rows, self._rows.block
        new = slice(min(max(first, rows.base), rows.end) - rows.base, None)
        return Rows(rows.base, block.stored[new, self._columns].astype(np.int64), block.letter[new])

    def _fold(self, time: int, weight: Weight) -> None:
        """The matches of one end, or window."""
        if not weight.count:
            return
        if weight.count >= TOO_MANY and any(self._folding.measures):
            raise LimitError(4097, 4096, "binary digits of the number of matches that are summed")
        key = tuple(self._terms.intern(to_literal(time)) for _ in self._folding.keys)
        each = zip(self._summary.aggregates, self._folding.measures, self._measured.numbers, strict=True)
        totals = tuple(self._total(aggregate, of, m, weight) for aggregate, of, m in each)
        self._folded.append(Folded(time, Weighed(key, totals, weight.count)))

    def _total(self, aggregate: Aggregate, of: OfEvents | None, m: int | None, weight: Weight) -> Total:
        made = self._measures.total(aggregate, m, weight)
        if of is None or m is None:
            return made
        if of.single and aggregate.name != "COUNT" and self._measures.events(m, weight) < weight.count:
            made.add(0, 1)  # a match without such an event has an error
        return made
