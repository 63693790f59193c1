"""Weights of what ends at events → rows, a batch at a time (semantics.md 2.6b).

In the flow: weights of ends (cea/composed.py) → **keys and times of ends** → rows (weight_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.matches.composed import Ended
from oxiseq.engine.matches.measures import Measure, Measures
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.end_plan import EndPlan, counts_only, least_of
from oxiseq.engine.output.weight_rows import WeightRows
from oxiseq.engine.terms.dictionary import TermDictionary

I64 = NDArray[np.int64]


class EndWeights:
    """The rows of one query. Of events by position: `values`, the ids of their attributes' terms, and `times`, µs."""

    def __init__(
        self, plan: EndPlan, terms: TermDictionary, values: Callable[[I64], I64], times: Callable[[I64], I64]
    ) -> None:
        self._plan, self._terms, self._values, self._times = plan, terms, values, times
        of: dict[tuple[int, int | None], list[str]] = {}
        for aggregate, (variable, attribute) in zip(plan.aggregates, plan.measured, strict=True):
            if variable is not None:
                of.setdefault((variable, attribute), []).append(aggregate.name)
        self.variables = tuple(variable for variable, _ in of)
        """Of each measure."""
        self.measures = Measures([Measure.of(attribute, names) for (_, attribute), names in of.items()], terms)
        numbers = {key: m for m, key in enumerate(of)}
        measured = [None if v is None else numbers[v, a] for v, a in plan.measured]
        self.least = max([1, *map(least_of, plan.having)])
        having = [e for e in plan.having if not counts_only(e)]
        self._rows = WeightRows(plan, measured, having, terms)

    def rows(self, found: list[Ended]) -> MatchBatch | None:
        """Of what ends; None: there are none."""
        times, values = [np.zeros(0, np.int64)], [np.zeros((0, len(self._plan.columns)), np.uint32)]
        for at, weights, form, _ in found:
            keys = self._values(at)[:, list(self._plan.key_columns)].astype(np.uint32)
            kept, rows = self._rows.of(keys, weights, form, self.measures)
            times.append(self._times(at[kept]))
            values.append(rows)
        made = MatchBatch.of_groups(np.concatenate(times), np.concatenate(values))
        self._terms.hold(made.values)
        return made if len(made) else None
