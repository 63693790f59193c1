"""The matches that end at each instant, or in each window, → totals of groups, from weights of nodes: none is listed,
and Python sees a batch at a time (engine/plan/folding.py, kernels/matches/weighing.py).

In the flow: finals of a batch → weights → **totals** → groups (summaries.py).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.totals import TOO_MANY, Total
from oxiseq.engine.kernels.matches import weighing as w
from oxiseq.engine.kernels.matches import weights as numbers
from oxiseq.engine.kernels.matches.records import NODE_TOP
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.events import MeasuredEvents, OfEvents
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.measures import (
    MOST_LIMBS,
    Columns,
    Weight,
    new_form,
    reformed,
    words_of,
)
from oxiseq.engine.output.entries import Weighed
from oxiseq.engine.output.folding import Folded
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.plan.folding import Folding
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.grammar.algebra import Aggregate

_MANY: Final = 1 << 12
"""Labels of least values, beyond which those that nothing has are forgotten."""
I64 = NDArray[np.int64]


class MatchWeigher(Stateful):
    """Weighs for one query. `rows`: those that nodes refer to."""

    made_of = (unsaved("_measures"),)

    def __init__(self, plan: QueryPlan, folding: Folding, rows: RowStore, terms: TermDictionary) -> None:
        assert plan.summary is not None
        self._summary, self._folding, self._rows, self._terms = plan.summary, folding, rows, terms
        named = [(m.aggregate.name, of) for m, of in zip(plan.summary.measures, folding.measures, strict=True)]
        self._measured = MeasuredEvents(named, terms, counted=True)
        self._measures = self._measured.measures
        self._columns = [plan.runner.stored.index(variable) for variable in self._measured.attributes]
        self._held = self._measured.held([letter.letter for letter in plan.letters])
        self._form = new_form(1, self._measures)
        self._weights = np.zeros((0, words_of(self._form)), np.uint64)
        self._known = self._covered = 0
        """Nodes that have a weight; rows before this one were there when they got it."""
        self._folded: list[Folded] = []
        self.origin = 0
        """The clock at which the first window begins."""

    def moved(self, oldest_row: int) -> None:
        """Nodes have other numbers now; none refers to an earlier row, nor will one."""
        self._known, self._covered = 0, oldest_row

    def take(self) -> list[Folded]:
        """The folds since the last call."""
        folded, self._folded = self._folded, []
        return folded

    def weigh(self, S: Memory, found: Found, clock: I64, time: I64) -> None:
        """Fold the matches of these finals: nodes, in `found.rows`, that ended at instants of these clocks and times
        (µs). Raises LimitError."""
        first, letter, columns = self._new_rows()
        window = self._summary.window
        key = clock
        if self._summary.by_window and window is not None:
            key = (clock - self.origin) // window.size
        starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        line = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(key))))
        weights = self._weighed(S, first, found.rows, line, letter, columns)
        self._covered = self._rows.end
        ends = time[np.append(starts[1:], len(key)) - 1]
        huge = None
        for end, words in zip(ends.tolist(), weights, strict=True):
            try:
                self._fold(end, Weight.of(words, self._form))
            except LimitError as error:
                huge = huge or error
        if huge is not None:
            raise huge

    def _new_rows(self) -> tuple[int, NDArray[np.int32], Columns]:
        """The id of the first row whose columns are needed, and the letters and columns from it on."""
        while True:
            if self._known == 0 and self._measures.labels > _MANY:
                self._measures.begin()
            first = min(max(self._covered, self._rows.base), self._rows.end)
            block = self._rows.block
            new = slice(first - self._rows.base, None)
            columns = self._measures.of(block.stored[new, self._columns].astype(np.int64))
            if not self._measures.relabelled() or self._known == 0:
                return first, block.letter[new], columns
            self._known, self._covered = 0, 0  # the labels that weights have are others now

    def _weighed(
        self, S: Memory, first: int, finals: I64, line: I64, letter: NDArray[np.int32], columns: Columns
    ) -> NDArray[np.uint64]:
        """The weights of finals, those of a line together."""
        limbs = int(self._form[numbers.LIMBS])
        state = np.array([self._known, first], np.int64)
        while True:
            form = new_form(limbs, self._measures)
            words = words_of(form)
            weights = self._weights
            if not np.array_equal(form, self._form):
                weights = reformed(weights, self._form, form, np.arange(self._form[numbers.SUMS]))
            if len(weights) < len(S.nodes):
                weights = np.concatenate([weights, np.zeros((len(S.nodes) - len(weights), words), np.uint64)])
            one = np.zeros((1, words), np.uint64)
            one[0, :2] = 1
            one[0, words - self._measures.leasts :] = numbers.NO_VALUE
            held, masks = self._measures.masks(self._held)
            out = np.zeros((int(line[-1]) + 1, words), np.uint64)
            arrays = w.Weighing(state, form, weights, one, *columns, letter, held, masks, finals, line, out)
            done = call(w.weigh, Pointers(S), Pointers(arrays))
            self._form, self._weights = form, weights
            if done:
                self._known = int(S.scalars[NODE_TOP])
                return out
            limbs = min(2 * limbs, MOST_LIMBS)

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
