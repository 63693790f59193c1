"""Weights of what ends at events → rows, a batch at a time (semantics.md 2.6b).

In the flow: weights of ends, of composed windows (cea/composed.py) or of nodes (matches/weighing.py) → **keys and times
of ends** → rows (weight_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.listed import EventReader
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.subsets import variables_at
from oxiseq.engine.kernels.cea.records import Memory
from oxiseq.engine.kernels.matches.weights import HUGE
from oxiseq.engine.matches.composed import Ended
from oxiseq.engine.matches.events import MeasuredEvents
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.measures import number_of
from oxiseq.engine.matches.weighing import NodeWeigher, Rows
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.end_plan import EndPlan, counts_only, least_of
from oxiseq.engine.output.weight_rows import WeightRows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.grammar.ceql_algebra import AttributeWindow

I64 = NDArray[np.int64]


class EndWeights:
    """The rows of one query. `times`: of events by position, i64[n] µs."""

    def __init__(self, plan: EndPlan, reader: EventReader, terms: TermDictionary, times: Callable[[I64], I64]) -> None:
        self._plan, self._reader, self._terms, self._times = plan, reader, terms, times
        named = [(a.name, of) for a, of in zip(plan.aggregates, plan.measured, strict=True)]
        self.measured = MeasuredEvents(named, terms, reader.attributes)
        self.least = max([1, *map(least_of, plan.having)])
        having = [e for e in plan.having if not counts_only(e)]
        self._rows = WeightRows(plan, self.measured.numbers, having, terms)

    def rows(self, found: list[Ended]) -> MatchBatch | None:
        """Of what ends; None: there are none."""
        times, values = [np.zeros(0, np.int64)], [np.zeros((0, len(self._plan.columns)), np.uint32)]
        for at, weights, form, _ in found:
            keys = self._reader.values(at)[:, list(self._plan.key_columns)].astype(np.uint32)
            kept, rows = self._rows.of(keys, weights, form, self.measured.measures)
            times.append(self._times(at[kept]))
            values.append(rows)
        made = MatchBatch.of_groups(np.concatenate(times), np.concatenate(values))
        self._terms.hold(made.values)
        return made if len(made) else None


class EndWeigher(Stateful):
    """Weighs what ends at events. `rows`: of the weights; `oldest`: no event before this position is needed."""

    made_of = (unsaved("_nodes"),)

    def __init__(self, plan: CeaPlan, rows: EndWeights, reader: EventReader, oldest: Callable[[], int]) -> None:
        self._rows, self._reader, self._oldest = rows, reader, oldest
        measured, rises = rows.measured, not isinstance(plan.query.window, AttributeWindow)
        held = measured.held(variables_at(plan.runner))
        self._nodes = NodeWeigher(measured.measures, held, self._read, rises=rises)
        self.moved = self._nodes.moved
        self._next = 0
        """Behind the last event at which something ends."""
        self._made: list[MatchBatch] = []

    def _read(self, first: int) -> Rows:
        base = self._oldest()
        return Rows(base, self._reader.values(np.arange(max(first, base), self._next)), None)

    def weigh(self, S: Memory, found: Found, position: I64, _time: I64) -> None:
        """The nodes in `found.rows` are finals of the events at these positions."""
        self._next = int(position[-1]) + 1
        new = np.diff(position, prepend=-1) > 0
        at, line = position[new], np.cumsum(new) - 1
        weights = self._nodes.weigh(S, found.rows, found.marks[:, 1], position, line)
        form = self._nodes.form
        number, small = number_of(0, weights, form)
        told = np.flatnonzero(~small | (number >= self._rows.least) | (weights[:, 0] & np.uint64(HUGE) != 0))
        if (made := self._rows.rows([Ended(at[told], weights[told], form, at)])) is not None:
            self._made.append(made)

    def take(self) -> MatchBatch | None:
        """The rows since the last time; None: there are none."""
        made, self._made = self._made, []
        return MatchBatch.concat(made, 0) if made else None
