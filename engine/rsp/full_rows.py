"""Full rows, by which answers are compared, and the columns that an answer shows of them.

In the flow: rows of a plan's root → **full rows**, in the order of emission → **the answer's columns**. Two full rows
are the same when all their columns, and the times of their event mappings if they carry any, are. A column of the
answer is one of theirs, or an expression over them with NOW() in it, which is the instant at which a row is emitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.flow.operators.computing import Computed
from oxiseq.engine.flow.ordering import in_order
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.flow.sparql import Told
from oxiseq.engine.flow.times import times_at
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass

_NOW: Final = Call("NOW", ())


@dataclass(frozen=True, slots=True, eq=False)
class FullRows:
    """The answer at one instant. values: u32[k, columns]; span: i64[k, 2], start and end of the event mapping, or
    i64[k, 0]."""

    values: NDArray[np.uint32]
    span: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: NDArray[np.int64]) -> FullRows:
        """Some of them."""
        return FullRows(self.values[index], self.span[index])


NO_ROWS: Final = FullRows(np.zeros((0, 0), np.uint32), np.zeros((0, 0), np.int64))


def full_rows(plan: RspPlan, at: I64, values: Ids, of_kb: Ids, terms: TermDictionary) -> tuple[I64, FullRows]:
    """Rows of a plan's root with the numbers of their instants, ascending, in the order of emission. `of_kb`: see
    `in_order`."""
    flow = plan.flow
    if not len(values):
        return at, FullRows(values, np.zeros((0, 0 if flow.times is None else 2), np.int64))
    span = np.zeros((len(values), 0), np.int64)
    if flow.times is not None:
        span = np.column_stack([times_at(values, flow.times), times_at(values, flow.times + 2)])
        values = values.copy()
        values[:, flow.times : flow.times + 4] = 0
    alike = at[1:] == at[:-1]
    if not alike.any():
        return at, FullRows(values, span)
    among = np.zeros(len(at), np.bool_)
    among[1:] = alike
    among[:-1] |= alike
    (tied,) = among.nonzero()  # the others keep their places
    index = np.arange(len(at))
    index[tied] = tied[in_order(at[tied], values[tied], flow.order, of_kb, terms, span[tied])]
    return at, FullRows(values[index], span[index] if span.shape[1] else span)


class Columns:
    """The columns that a query shows."""

    def __init__(self, told: Sequence[Told], terms: TermDictionary) -> None:
        self._places = np.array([-1 if each.place is None else each.place for each in told], np.int64)
        self._computed = [(i, each.expression) for i, each in enumerate(told) if each.expression is not None]
        self._plain = bool(np.all(self._places == np.arange(len(told))))
        self._placed = bool(np.all(self._places >= 0))
        self._terms = terms

    def of(self, rows: Ids, at: I64) -> Ids:
        """u32[n, columns] of full rows emitted at these times: i64[n], ascending."""
        if self._plain and rows.shape[1] == len(self._places):
            return rows
        if self._placed:
            return rows.take(self._places, axis=1)
        shown = np.where(self._places >= 0, self._places, rows.shape[1])
        spare = np.zeros((len(rows), 1), np.uint32)
        values = np.ascontiguousarray(np.concatenate([rows, spare], axis=1)[:, shown])
        for place, expression in self._computed:
            values[:, place] = self._now(expression, rows, at)
        return values

    def _now(self, expression: Expression, rows: Ids, at: I64) -> NDArray[np.uint32]:
        found = np.zeros(len(rows), np.uint32)
        for time in np.unique(at).tolist():
            here = at == time
            found[here] = Computed(replaced(expression, {_NOW: to_literal(time)}), self._terms).of(rows[here])
        return found
