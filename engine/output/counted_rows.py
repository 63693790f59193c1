"""A run's counts → rows of groups, a batch at a time, where a group is of one instant and needs nothing but a count.

In the flow: counts of a run → **rows**. These are the usual alerts, `GROUP BY (ENDTIME()) ?k HAVING (COUNT(*) > 9)`;
what else groups may need is computed one by one (counted.py, summaries.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.exact import Leaf, holds
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.integers import integer_ids
from oxiseq.engine.plan.summary import SummaryPlan
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.sequence.states import Value
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Expression, MatchFunction, OnChange
from oxiseq.grammar.scope import expression_variables, subexpressions

I64 = NDArray[np.int64]
_MOST: Final = 1 << 62
"""Counts are added in 64 bits."""
_ENDTIME: Final = -1
_INTEGER: Final = NamedNode(XSD + "integer")


def in_columns(plan: SummaryPlan) -> bool:
    """Whether rows need counts alone."""
    plain = plan.instantly and isinstance(plan.report, OnChange) and not plan.order_by and not plan.distinct
    whole = plan.limit is None and not plan.offset and len(plan.written) == len(plan.keys)
    keys = all(isinstance(e, Variable) or (isinstance(e, MatchFunction) and e.name == "ENDTIME") for e in plan.written)
    columns = all(isinstance(e, Aggregate) or (isinstance(e, Variable) and e in plan.keys) for e in plan.columns)
    counts = all(a.name == "COUNT" and a.arg is None and not a.distinct for a in plan.aggregates)
    return plain and whole and keys and columns and counts and all(map(_counts_only, plan.having))


def _counts_only(condition: Expression) -> bool:
    parts = subexpressions(condition)
    return not expression_variables(condition) and not any(isinstance(part, MatchFunction) for part in parts)


class CountedRows:
    """Makes the rows of one query, whose plan is `in_columns`. `keys`: by edge what counts are apart by."""

    def __init__(self, plan: SummaryPlan, keys: Sequence[Sequence[Value]], terms: TermDictionary) -> None:
        self._plan, self._terms = plan, terms
        self._places = [[*map(_place_of(key).get, plan.written)] for key in keys]
        """By edge, of each key of a group, the column of a count's key; `_ENDTIME`, or None for a variable that no
        match has."""
        self._columns = [plan.keys.index(e) if isinstance(e, Variable) else None for e in plan.columns]

    def rows(self, found: Sequence[Counts], times: dict[int, int]) -> MatchBatch | None:
        """The rows of what has been counted, by the instant of their end; None where a number is too large for it.
        `times`: the ids of times as terms, as far as they are known; more are added."""
        number = [n for counts in found for n in counts.times]
        if sum(number) >= _MOST:
            return None
        parts = [self._keys(counts, times) for counts in found]
        if not number:
            return self._batch(np.zeros((0, 1 + len(self._plan.keys)), np.int64), np.zeros(0, np.int64))
        rows, count = np.concatenate(parts), np.array(number, np.int64)
        if not count.all():
            rows, count = rows[count > 0], count[count > 0]
        order = np.lexsort(rows.T[::-1])
        ordered = rows[order]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        totals = np.add.reduceat(count[order], first) if len(first) else count
        shown = np.lexsort((order[first], ordered[first, 0]))  # those of an instant as they have come
        return self._batch(ordered[first][shown], totals[shown])

    def _keys(self, counts: Counts, times: dict[int, int]) -> I64:
        """i64[n, 1 + keys]: the ends of counts, and the ids of their groups' keys."""
        found = np.zeros((len(counts.bucket), 1 + len(self._plan.keys)), np.int64)
        found[:, 0] = counts.bucket
        for edge in np.unique(counts.edge).tolist():
            rows = np.flatnonzero(counts.edge == edge)
            for column, place in enumerate(self._places[edge], 1):
                if place == _ENDTIME:
                    found[rows, column] = self._ids_of(counts.bucket[rows], times)
                elif place is not None:
                    found[rows, column] = counts.key[rows, place]
        return found

    def _ids_of(self, ends: I64, times: dict[int, int]) -> I64:
        distinct, place = np.unique(ends, return_inverse=True)
        every = distinct.tolist()
        for end in every:
            if end not in times:
                times[end] = self._terms.intern(to_literal(end))
        return np.array([times[end] for end in every], np.int64)[place]

    def _batch(self, rows: I64, totals: I64) -> MatchBatch:
        if self._plan.having:
            kept = self._kept(totals)
            rows, totals = rows[kept], totals[kept]
        values = np.zeros((len(rows), len(self._columns)), np.uint32)
        counted = integer_ids(totals, self._terms) if None in self._columns else totals
        for column, key in enumerate(self._columns):
            values[:, column] = counted if key is None else rows[:, 1 + key]
        return MatchBatch(
            rows[:, 0].copy(), values, np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
        )

    def _kept(self, totals: I64) -> NDArray[np.bool_]:
        """Which counts HAVING keeps; each is examined once."""
        distinct, place = np.unique(totals, return_inverse=True)
        plan = self._plan
        terms = [Literal(str(n), datatype=_INTEGER) for n in distinct.tolist()]
        given: list[dict[Leaf, Term]] = [dict.fromkeys(plan.aggregates, term) for term in terms]
        kept = [all(holds(e, leaves) for e in plan.having) for leaves in given]
        return np.array(kept, np.bool_)[place]


def _place_of(key: Sequence[Value]) -> dict[Expression, int]:
    """Of variables, the column of a key; the innermost value of one comes last, and counts."""
    return {
        MatchFunction("ENDTIME"): _ENDTIME,
        **{value.variable: column for column, value in enumerate(key) if value.variable is not None},
    }
