"""A run's counts → rows of groups, a batch at a time, where a group is of one instant; for several queries at once.

In the flow: counts of a run → weights of groups → **rows**. These are the usual alerts, `GROUP BY (ENDTIME()) ?k HAVING
(COUNT(*) > 9)`, and COUNT, SUM, AVG, MIN and MAX of what a run carries; what else groups may need is computed one by
one (counted.py, summaries.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

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
from oxiseq.engine.sequence.counts import ANY_LENGTH, Case, Counts, lengths_of
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
_AT_ONCE: Final = 1 << 20
"""Numbers that are looked at together."""


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


class _Groups(NamedTuple):
    """Sets of matches by groups. `order` i64[n]: their numbers; from `first` i64[g] on those of a group, whose end and
    keys are `keys`; `values`, `flags`: of what measures run over, in that order."""

    order: I64
    first: I64
    keys: I64
    values: I64
    flags: U64


class CountedRows:
    """Makes the rows of queries, whose plan is `in_columns`, but for its window. `keys`: by edge what counts are apart
    by."""

    def __init__(self, plan: SummaryPlan, keys: Sequence[Sequence[Value]], terms: TermDictionary) -> None:
        self.plan, self._apart = plan, keys
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

    def rows(self, found: Sequence[Counts], cases: Sequence[Case], times: dict[int, int]) -> list[MatchBatch] | None:
        """For each case the rows of what has been counted, by the instant of their end; None where a number is too
        large for it, or where there are so few that one by one is faster. `times`: the ids of times as terms, as far
        as they are known; more are added."""
        count = sum(map(len, found))
        if 0 < count * len(cases) < FEW:
            return None
        if not count:
            return [MatchBatch.of_groups(np.zeros(0, np.int64), np.zeros((0, self._columns), np.uint32)) for _ in cases]
        groups = self._groups(found, times)
        made: list[MatchBatch] = []
        some = max(1, _AT_ONCE // count)
        for low in range(0, len(cases), some):
            few = cases[low : low + some]
            numbers = self._numbers(found, few)
            rows = None if numbers is None else self._rows_of(groups, numbers[groups.order], len(few))
            if rows is None:
                break
            made += rows
        self._forget()
        return made if len(made) == len(cases) else None

    def _groups(self, found: Sequence[Counts], times: dict[int, int]) -> _Groups:
        written = np.concatenate([self._written(counts, times) for counts in found])
        keys = written[:, : 1 + self._keys]
        order = np.lexsort(keys.T[::-1])
        ordered = keys[order]
        new = np.ones(len(keys), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        values, flags = self._measures.of(written[order, 1 + self._keys :])
        return _Groups(order, first, ordered[first], values, flags)

    def _numbers(self, found: Sequence[Counts], cases: Sequence[Case]) -> I64 | None:
        """Of each set of matches and case; None where sums may be too large."""
        whole = np.concatenate([counts.numbers for counts in found])
        if whole.dtype == object:
            if whole.max() >= _MOST:
                return None
            whole = whole.astype(np.int64)
        numbers = whole[:, [case.member for case in cases]]
        if numbers.astype(np.float64).sum(axis=0).max() >= _MOST / 2:
            return None
        numbers = numbers.astype(np.int64)
        if any(case.size < ANY_LENGTH for case in cases):
            lengths = np.concatenate([lengths_of(counts, self._apart) for counts in found])
            numbers[lengths[:, None] > np.array([case.size for case in cases], np.int64)] = 0
        return numbers

    def _rows_of(self, groups: _Groups, count: I64, cases: int) -> list[MatchBatch] | None:
        """`count`: of each set of matches, in the groups' order, and case."""
        first, totals = groups.first, np.add.reduceat(count, groups.first)
        case, group = np.nonzero(totals.T)  # what HAVING and columns are asked of: the groups that a case has
        come = np.minimum.reduceat(np.where(count > 0, groups.order[:, None], len(count)), first)[group, case]
        shown = np.lexsort((come, groups.keys[group, 0], case))  # those of an instant as they have come
        case, group = case[shown], group[shown]
        weights = self._weights(groups, count, totals, group, case)
        if weights is None:
            return None
        keys = groups.keys[group]
        kept, values = self._rows.of(
            keys[:, 1:].astype(np.uint32), weights, new_form(1, self._measures), self._measures
        )
        every = MatchBatch.of_groups(keys[kept, 0], values)
        return list(every.cut(np.searchsorted(case[kept], np.arange(cases + 1)).tolist()))

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

    def _weights(self, groups: _Groups, count: I64, totals: I64, group: I64, case: I64) -> U64 | None:
        """Of these groups in these cases: u64[n, words]; None where a number is too large."""
        measures, first, values = self._measures, groups.first, groups.values
        sums, form = measures.sums, new_form(1, measures)
        largest = np.abs(values[:, :sums].astype(np.float64)).max(initial=0)
        if sums >= _MOST_SUMS or largest * float(totals.sum(axis=0).max(initial=0)) >= _MOST:
            return None
        weights = np.zeros((len(group), words_of(form)), np.uint64)
        weights[:, 0], weights[:, 1] = np.uint64(w.PRESENT), totals[group, case]
        if measures.measures:
            there = count > 0
            flags = np.where(there, groups.flags[:, None], np.uint64(0))
            weights[:, 0] |= np.bitwise_or.reduceat(flags, first)[group, case]
        for column in range(values.shape[1]):
            if column < sums:
                found = np.add.reduceat(values[:, column, None] * count, first)
            else:
                found = np.minimum.reduceat(np.where(there, values[:, column, None], w.NO_VALUE), first)
            weights[:, 2 + column] = found[group, case].view(np.uint64)
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
