"""A run's counts → rows of groups, a batch at a time, where a group is of one instant; for several queries at once.

In the flow: counts of a run → weights of groups → **rows**. These are the usual alerts, `GROUP BY (ENDTIME()) ?k HAVING
(COUNT(*) > 9)`, and COUNT, SUM, AVG, MIN and MAX of what a run carries; what else groups may need is computed one by
one (counted.py, summaries.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

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
_ENDTIME, _UNBOUND = -1, -2


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
    """Makes the rows of queries, whose plan is `in_columns`. `keys`: by edge what counts are apart by. `form`: the same
    for queries whose rows one makes for all of them."""

    def __init__(self, plan: SummaryPlan, keys: Sequence[Sequence[Value]], terms: TermDictionary) -> None:
        self._terms, self._keys, self._columns = terms, len(plan.keys), len(plan.columns)
        places = tuple(tuple(_place_of(e, key) for e in plan.written) for key in keys)
        self._places = np.array(places, np.int64).reshape(len(keys), len(plan.written))
        """By edge, of each value written, the column of a count's key; `_ENDTIME`, or `_UNBOUND`."""
        self.form: Hashable = replace(plan, window=None), places
        self._read = [*keys_read(plan), *[True] * (len(plan.written) - self._keys)]
        measured = [None if m.column is None else m.column - self._keys for m in plan.measures]
        names: list[set[str]] = [set() for _ in plan.written[self._keys :]]
        for aggregate, m in zip(plan.aggregates, measured, strict=True):
            if m is not None:
                names[m].add(aggregate.name)
        self._measures = Measures([Measure.of(m, each) for m, each in enumerate(names)], terms)
        self._rows = WeightRows(plan, measured, plan.having, terms)

    def rows(self, found: Counts, bounds: Sequence[int]) -> list[MatchBatch] | None:
        """For each of some queries the rows of what has been counted, by the instant of their end: of the i-th what
        lies between the bounds i and i + 1. None where a number is too large for it, or where there are so few that one
        by one is faster."""
        if 0 < len(found) < FEW:
            return None
        numbers = _small(found.numbers)
        made = None if numbers is None else self._made(found, numbers, np.array(bounds, np.int64))
        self._forget()
        return None if made is None else [*made]

    def _made(self, found: Counts, numbers: I64, bounds: I64) -> Iterator[MatchBatch] | None:
        if not len(found):
            return MatchBatch.of_groups(numbers, np.zeros((0, self._columns), np.uint32)).cut([0] * len(bounds))
        written = self._written(found)
        owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        keys = np.column_stack([owner, found.bucket, written[:, : self._keys]])
        order = np.lexsort(keys.T[::-1])
        keys, numbers = keys[order], numbers[order]
        new = np.ones(len(keys), np.bool_)
        new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        weights = self._weights(written[order, self._keys :], numbers, first)
        if weights is None:
            return None
        come = np.minimum.reduceat(order, first)
        shown = np.lexsort((come, keys[first, 1], keys[first, 0]))  # those of an instant as they have come
        keys, weights = keys[first[shown]], weights[shown]
        kept, values = self._rows.of(
            keys[:, 2:].astype(np.uint32), weights, new_form(1, self._measures), self._measures
        )
        every = MatchBatch.of_groups(keys[kept, 1], values)
        return every.cut(np.searchsorted(keys[kept, 0], np.arange(len(bounds))).tolist())

    def _written(self, found: Counts) -> I64:
        """i64[n, written]: the ids of the values written for counts."""
        places = self._places[found.edge]
        written = np.zeros_like(places)
        row, column = np.nonzero(places >= 0)
        written[row, column] = found.key[row, places[row, column]]
        ends = (places == _ENDTIME) & self._read
        if ends.any():
            row, _ = np.nonzero(ends)
            written[ends] = ids_of_times(found.bucket[row], {}, self._terms)
        return written

    def _weights(self, written: I64, numbers: I64, first: I64) -> U64 | None:
        """u64[groups, words]: of groups, whose first set of matches each is; None where a number is too large."""
        values, flags = self._measures.of(written)
        measures, most = self._measures, np.add.reduceat(numbers.astype(np.float64), first).max()
        sums, form = measures.sums, new_form(1, measures)
        largest = np.abs(values[:, :sums].astype(np.float64)).max(initial=1)
        if sums >= _MOST_SUMS or largest * most >= _MOST / 2:
            return None
        weights = np.zeros((len(first), words_of(form)), np.uint64)
        weights[:, 0] = np.uint64(w.PRESENT) | np.bitwise_or.reduceat(flags, first)
        weights[:, 1] = np.add.reduceat(numbers, first)
        for column in range(values.shape[1]):
            if column < sums:
                added = np.add.reduceat(values[:, column] * numbers, first)
            else:
                added = np.minimum.reduceat(values[:, column], first)
            weights[:, 2 + column] = added.view(np.uint64)
        return weights

    def _forget(self) -> None:
        """No weight is kept."""
        if self._measures.measures:
            self._measures.keep(np.zeros(self._measures.sums, np.bool_))
            self._measures.begin()


def _small(numbers: NDArray[Any]) -> I64 | None:
    """The numbers in 64 bits; None if some are too large."""
    return None if len(numbers) and numbers.max() >= _MOST else numbers.astype(np.int64)


def _place_of(e: Expression, key: Sequence[Value]) -> int:
    """Where a key has what is written; the innermost value of a variable comes last, and counts."""
    if isinstance(e, MatchFunction):
        return _ENDTIME
    variable = _variable_of(e)
    return next((at for at in range(len(key) - 1, -1, -1) if key[at].variable == variable), _UNBOUND)
