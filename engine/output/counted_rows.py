"""A run's counts → rows of groups, a batch at a time, where a group is of one instant.

In the flow: counts of a run → weights of groups → **rows**. These are the usual alerts, `GROUP BY (ENDTIME()) ?k HAVING
(COUNT(*) > 9)`, and COUNT, SUM, AVG, MIN and MAX of what a run carries; what else groups may need is computed one by
one (counted.py, summaries.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.kernels.matches import weights as w
from oxiseq.engine.matches.measures import MOST_MEASURES, WEIGHED, Measure, Measures, new_form, words_of
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.composing import ids_of_times, keys_read
from oxiseq.engine.output.weight_rows import WeightRows
from oxiseq.engine.plan import composing
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.sequence.states import Value
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
_MOST: Final = 1 << 62
"""Counts and sums are added in 64 bits."""
_MOST_SUMS: Final = 256
"""Columns of sums beyond which they are given up: most are of values that do not come any more."""
FEW: Final = 8
"""Counts of a batch below which columns cost more than they save."""
_ENDTIME: Final = -1


def in_columns(plan: SummaryPlan) -> bool:
    """Whether rows need counts and sums alone."""
    few = len(plan.written) - len(plan.keys) <= MOST_MEASURES
    written = all(e == MatchFunction("ENDTIME") or _variable_of(e) is not None for e in plan.written)
    totals = all(a.name in WEIGHED and not a.distinct for a in plan.aggregates)
    return composing.in_columns(plan) and few and written and totals


def _variable_of(e: Expression) -> Variable | None:
    """Of which variable the innermost value is written, if so."""
    match e:
        case (Variable() as variable) | Aggregate("LAST", Variable() as variable):
            return variable
    return None


class CountedRows:
    """Makes the rows of one query, whose plan is `in_columns`. `keys`: by edge what counts are apart by."""

    def __init__(self, plan: SummaryPlan, keys: Sequence[Sequence[Value]], terms: TermDictionary) -> None:
        self._terms, self._keys, self._width = terms, len(plan.keys), 1 + len(plan.written)
        self._places = [[_place_of(e, key) for e in plan.written] for key in keys]
        """By edge, of each value written, the column of a count's key; `_ENDTIME`, or None for a variable that no match
        has."""
        self._columns = len(plan.columns)
        self._read = keys_read(plan)
        measured = [None if m.column is None else m.column - self._keys for m in plan.measures]
        names: list[set[str]] = [set() for _ in plan.written[self._keys :]]
        for aggregate, m in zip(plan.aggregates, measured, strict=True):
            if m is not None:
                names[m].add(aggregate.name)
        self._measures = Measures([Measure.of(m, each) for m, each in enumerate(names)], terms)
        self._rows = WeightRows(plan, measured, plan.having, terms)

    def rows(self, found: Sequence[Counts], times: dict[int, int]) -> MatchBatch | None:
        """The rows of what has been counted, by the instant of their end; None where a number is too large for it, or
        where there are so few that one by one is faster. `times`: the ids of times as terms, as far
        as they are known; more are added."""
        number = [n for counts in found for n in counts.times]
        most = sum(number)
        if 0 < len(number) < FEW or most >= _MOST:
            return None
        if not number:
            return MatchBatch.of_groups(np.zeros(0, np.int64), np.zeros((0, self._columns), np.uint32))
        rows = np.concatenate([self._written(counts, times) for counts in found])
        count = np.array(number, np.int64)
        if not count.all():
            rows, count = rows[count > 0], count[count > 0]
        groups = rows[:, : 1 + self._keys]
        order = np.lexsort(groups.T[::-1])
        ordered = groups[order]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        weights = self._weights(rows[order, 1 + self._keys :], count[order], first, most)
        if weights is None:
            return None
        shown = np.lexsort((order[first], ordered[first, 0]))  # those of an instant as they have come
        keys = ordered[first][shown]
        kept, values = self._rows.of(
            keys[:, 1:].astype(np.uint32), weights[shown], new_form(1, self._measures), self._measures
        )
        self._forget()
        return MatchBatch.of_groups(keys[kept, 0], values)

    def _written(self, counts: Counts, times: dict[int, int]) -> I64:
        """i64[n, 1 + written]: the ends of counts, and the ids of the values written for them."""
        found = np.zeros((len(counts.bucket), self._width), np.int64)
        found[:, 0] = counts.bucket
        for edge in np.unique(counts.edge).tolist():
            rows = np.flatnonzero(counts.edge == edge)
            for column, place in enumerate(self._places[edge], 1):
                if place == _ENDTIME and (column > self._keys or self._read[column - 1]):
                    found[rows, column] = ids_of_times(counts.bucket[rows], times, self._terms)
                elif place is not None and place != _ENDTIME:
                    found[rows, column] = counts.key[rows, place]
        return found

    def _weights(self, ids: I64, count: I64, first: I64, most: int) -> U64 | None:
        """Of each group, whose counts begin at `first`: u64[groups, words]; None where a number is too large. There are
        `most` matches."""
        measures = self._measures
        values, flags = measures.of(ids)
        sums, form = measures.sums, new_form(1, measures)
        largest = np.abs(values[:, :sums].astype(np.float64)).max(initial=0)
        if sums >= _MOST_SUMS or largest * most >= _MOST:
            self._forget()
            return None
        weights = np.zeros((len(first), words_of(form)), np.uint64)
        if len(first):
            weights[:, 0] = np.bitwise_or.reduceat(flags, first) | np.uint64(w.PRESENT)
            weights[:, 1] = np.add.reduceat(count, first)
            weights[:, 2 : 2 + sums] = np.add.reduceat(values[:, :sums] * count[:, None], first).view(np.uint64)
            weights[:, 2 + sums :] = np.minimum.reduceat(values[:, sums:], first).view(np.uint64)
        return weights

    def _forget(self) -> None:
        """No weight is kept."""
        if self._measures.measures:
            self._measures.keep(np.zeros(self._measures.sums, np.bool_))
            self._measures.begin()


def _place_of(e: Expression, key: Sequence[Value]) -> int | None:
    """Where a key has what is written; the innermost value of a variable comes last, and counts."""
    if isinstance(e, MatchFunction):
        return _ENDTIME
    variable = _variable_of(e)
    return next((at for at in range(len(key) - 1, -1, -1) if key[at].variable == variable), None)
