"""Weights of groups → rows, a batch at a time (semantics.md 2.6b).

In the flow: weights of groups → **rows**. Counts, sums, averages, least and largest values become terms as columns, and
HAVING is decided on columns; rows with computed columns are made once for each weight that differs, with UUID() and the
like once for each group. Groups are what ends at one event (CEQL,
end_weights.py) or at one instant (SPAseq, composing.py, counted_rows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.expressions.column import holding
from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.expressions.totals import TOO_MANY, SumTotal, Total, total_of
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.kernels.flow.results import large_terms
from oxiseq.engine.kernels.matches import weights as w
from oxiseq.engine.kernels.memory.pointers import address_of, call
from oxiseq.engine.kernels.terms.table import PADDING
from oxiseq.engine.matches.measures import Measures, Weight, large_numbers, number_of
from oxiseq.engine.output.group_rows import GroupRows, Row, RowPlan
from oxiseq.engine.output.numbers import integer_ids
from oxiseq.engine.output.small_sums import small_sums
from oxiseq.engine.output.sums import number_ids, sum_ids
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.value import integer_value
from oxiseq.grammar.algebra import Aggregate, Expression

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Ids = NDArray[np.uint32]
_AT_ONCE: Final = 256
"""Terms that the dictionary is to have room for."""


class WeightRows:
    """The rows of one query. `measured`: the measure of each aggregate, None: the matches; `having`: the conditions
    that are still to be decided."""

    def __init__(
        self,
        plan: RowPlan,
        measured: Sequence[int | None],
        having: Sequence[Expression],
        terms: TermDictionary,
    ) -> None:
        self._plan, self._measured, self._terms = plan, measured, terms
        self._group = GroupRows(plan, terms)
        self._names = [Variable(f"__{i}") for i in range(len(plan.aggregates))]
        names: dict[Expression, Expression] = dict(zip(plan.aggregates, self._names, strict=True))
        self._having = [replaced(e, names) for e in having]
        self._plain = [self._source(column) for column in plan.columns]
        self._repeats = all(map(is_pure, (*plan.columns, *having)))
        """Whether equal groups have equal rows."""

    def _source(self, column: Expression) -> int | None:
        """What a column is of: an aggregate by number, a key by -1 and less; None: it is computed."""
        if isinstance(column, Aggregate):
            return self._plan.aggregates.index(column)
        if isinstance(column, Variable) and column in self._plan.keys:
            return -1 - self._plan.keys.index(column)
        return None

    def of(self, keys: Ids, weights: U64, form: I64, measures: Measures) -> tuple[NDArray[np.intp], Ids]:
        """Which of n groups have a row, and the rows: of groups with these keys, u32[n, keys], and weights, of these
        measures."""
        columns, known = self._columns(weights, form, measures)
        kept = np.arange(len(keys))
        if not self._repeats:
            known[:] = False
        elif self._having:
            given = dict(zip(self._names, columns.T, strict=True)) | dict(zip(self._plan.keys, keys.T, strict=True))
            kept = np.flatnonzero(~known | holding(self._having, given, len(keys), self._terms))
            weights, keys, columns, known = weights[kept], keys[kept], columns[kept], known[kept]
        values = np.zeros((len(kept), len(self._plain)), np.uint32)
        for c, source in enumerate(self._plain):
            if source is None:
                known[:] = False
            else:
                values[:, c] = columns[:, source] if source >= 0 else keys[:, -1 - source]
        made: dict[tuple[bytes, bytes, int], Row | None] = {}
        stays = np.ones(len(kept), np.bool_)
        for i in np.flatnonzero(~known).tolist():
            same = weights[i].tobytes(), keys[i].tobytes(), 0 if self._repeats else i
            if same not in made:
                row = self._group.row(tuple(keys[i].tolist()), self._totals(weights[i], form, measures))
                made[same] = row
            row_of = made[same]
            stays[i] = row_of is not None
            values[i] = 0 if row_of is None else row_of
        return kept[stays], values[stays]

    def of_nothing(self) -> Row | None:
        """The row of no match, if it has one."""
        return self._group.row((), [total_of(aggregate, self._terms) for aggregate in self._plan.aggregates])

    # --- as columns -------------------------------------------------------------------------------------

    def _columns(self, weights: U64, form: I64, measures: Measures) -> tuple[Ids, NDArray[np.bool_]]:
        """The ids of each aggregate, and for which weights they are known."""
        columns = np.zeros((len(weights), len(self._measured)), np.uint32)
        known = weights[:, 0] & np.uint64(w.HUGE) == 0
        if form[w.LIMBS] * 64 > TOO_MANY.bit_length():  # of more matches than numbers say, sums are unknown, too
            known &= np.array([count < TOO_MANY for count in large_numbers(0, weights, form)], np.bool_)
        for c, (aggregate, m) in enumerate(zip(self._plan.aggregates, self._measured, strict=True)):
            if not known.any():
                break
            if aggregate.name in ("MIN", "MAX"):
                assert m is not None
                columns[:, c] = measures.extremes(aggregate.name, m, weights, form)
                continue
            number, whole = measures.numbers(aggregate.name, m, weights, form)
            others = np.flatnonzero(known & ~whole)
            if len(others):
                assert m is not None
                columns[others, c] = self._sums(aggregate.name, m, weights[others], form, measures)
            whole &= known
            small, fits = number_of(number, weights, form)
            columns[whole & fits, c] = integer_ids(small[whole & fits], self._terms)
            if not fits.all():
                rows = np.flatnonzero(whole & ~fits)
                numbers = large_numbers(number, weights[rows], form)
                told = np.array([abs(n) < TOO_MANY for n in numbers], np.bool_)
                columns[rows[told], c] = self._large([n for n, tells in zip(numbers, told, strict=True) if tells])
                known[rows[~told]] = False
        return columns, known

    def _sums(self, name: str, m: int, weights: U64, form: I64, measures: Measures) -> Ids:
        """The same of sums that are no integers, and of averages."""
        small = small_sums(name, m, weights, form, measures)
        ids = number_ids((small.kind, small.numbers, small.high, small.low), self._terms)
        others = np.flatnonzero(~small.made)
        if len(others):
            ids[others] = sum_ids(name == "AVG", measures.summed(name, m, weights[others], form), self._terms)
        return ids

    def _large(self, numbers: list[int]) -> Ids:
        """The same of integers beyond 64 bits."""
        texts = [b'"%d"^^<http://www.w3.org/2001/XMLSchema#integer>' % number for number in numbers]
        values = [integer_value(number) for number in numbers]
        data = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8)
        ends = np.cumsum([0, *map(len, texts)])
        nearest, quality = np.array([v.number for v in values]), np.array([v.quality for v in values], np.uint8)
        ids, done = np.zeros(len(texts), np.uint32), 0
        while done < len(ids):
            few = texts[done : done + _AT_ONCE]
            self._terms.reserve(len(few), sum(map(len, few)) + PADDING)
            done = int(call(large_terms, self._terms, address_of(data), ends, nearest, quality, ids, done))
        return ids

    # --- one by one -------------------------------------------------------------------------------------

    def _totals(self, words: U64, form: I64, measures: Measures) -> list[Total]:
        weight = Weight.of(words, form)
        return [
            self._total(*each, weight, measures) for each in zip(self._plan.aggregates, self._measured, strict=True)
        ]

    def _total(self, aggregate: Aggregate, m: int | None, weight: Weight, measures: Measures) -> Total:
        if m is not None and weight.count >= TOO_MANY and aggregate.name not in ("MIN", "MAX"):
            unknown = SumTotal(False, self._terms)
            unknown.add(0, 1)  # an error
            return unknown
        return measures.total(aggregate, m, weight)
