"""Rows with the rows of a table that compare with them (plan.Lookup)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Ids
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.linear import Copying
from oxiseq.engine.flow.nodes.node import Call
from oxiseq.engine.kernels.flow import table as k
from oxiseq.engine.kernels.memory.pointers import Replaceable
from oxiseq.engine.terms.dictionary import TermDictionary

_SIGNS: Final = {"<": k.BELOW, "=": k.EQUAL, ">": k.ABOVE}


class Lookup(Copying):
    """The table in the order of one of its columns, as numbers; it is read when the first row comes."""

    def __init__(self, bound: p.Bound, child: Buffer, table: Arrange, terms: TermDictionary) -> None:
        width = table.inputs[0].width
        super().__init__(child.width + width, (child,))
        self._bound, self._table, self._terms = bound, table, terms
        self._known = False
        self._memory = Replaceable(self._ordered(np.zeros((0, width), np.uint32)))

    def _ordered(self, rows: Ids) -> k.Between:
        columns, ids = self._terms.columns, rows[:, self._bound.column]
        number, kind, quality = columns.number[ids], columns.kind[ids], columns.quality[ids]
        whole = (quality & kinds.ROUNDED != 0) & np.isin(kind, (kinds.INTEGER, kinds.DECIMAL, kinds.DOUBLE))
        places = np.zeros(k.BETWEEN_PLACES, np.int64)
        places[k.PLACE], places[k.SIGN], places[k.MADE] = self._bound.place, _SIGNS[self._bound.sign], -1
        places[k.ALL] = not (whole & ~np.isnan(number)).all()
        order = np.argsort(number, kind="stable")
        return k.Between(places, np.ascontiguousarray(number[order]), np.ascontiguousarray(rows[order]))

    def read(self) -> None:
        """Read the table, which is another now."""
        rows, _ = self._table.kept
        self._known = bool(len(rows))
        self._memory.set(self._ordered(rows))

    def call(self) -> Call:
        if not self._known:
            self.read()
        return Call(k.between, (self._memory, self._terms, self.inputs[0], self.out))
