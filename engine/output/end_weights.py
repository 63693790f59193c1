"""Weights of what ends at events → rows, a batch at a time (semantics.md 2.6b).

In the flow: weights of ends (cea/composed.py) → **keys and times of ends** → rows (weight_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.listed import EventReader
from oxiseq.engine.matches.composed import Ended
from oxiseq.engine.matches.events import MeasuredEvents
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.end_plan import EndPlan, counts_only, least_of
from oxiseq.engine.output.weight_rows import WeightRows
from oxiseq.engine.terms.dictionary import TermDictionary

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
