"""Rows with what a table has for them (plan.Lookup)."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.linear import Copying
from oxiseq.engine.flow.nodes.node import Call
from oxiseq.engine.kernels.flow.table import ENTRY, PLACES, Searching, search
from oxiseq.engine.kernels.memory.pointers import Replaceable


class Lookup(Copying):
    """It keeps nothing: the table has been filled before the first row comes."""

    def __init__(self, form: p.Lookup, child: Buffer, table: Arrange) -> None:
        super().__init__(child.width + table.inputs[0].width, (child,))
        self._table = table
        places = np.zeros(PLACES, np.int64)
        places[ENTRY] = -1
        self._memory = Replaceable(Searching(places, np.array(form.key, np.int64), np.zeros(0, np.int64)))

    def call(self) -> Call:
        addresses = (self._memory.address, self.inputs[0].address, self._table.address, self.out.address)
        return Call(search, addresses)
