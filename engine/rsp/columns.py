"""The columns that an answer shows, of the rows by which answers are compared.

In the flow: full rows that are emitted → **the answer's columns**. A column is one of theirs, or an expression over
them with NOW() in it, which is the instant at which a row is emitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.time import to_literal
from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.flow.nodes.computing import Computed
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.flow.sparql import Told
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression

_NOW = Call("NOW", ())


class Columns:
    """Of one query."""

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
