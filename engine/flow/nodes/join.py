"""Rows of arrangements that agree (operators.md, 3.2, 3.7). Joins keep no rows: arrangements do, and are stepped
before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from oxiseq.engine.bounds import READS
from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.computing import conditions_on
from oxiseq.engine.flow.nodes.node import Call, KernelNode
from oxiseq.engine.kernels.flow import conjoining as k
from oxiseq.engine.kernels.flow.buffers import TOO_MANY_READS
from oxiseq.engine.kernels.flow.joining import ENTRY_AT, PLACES, SIDE, Joining, join
from oxiseq.engine.kernels.memory.pointers import Pointers, Replaceable
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.scope import expression_variables

_ANY: Final = 1 << 62
"""Rows that may be tried where no bound is given."""


class Join(KernelNode):
    """The pairs of two."""

    def __init__(self, left: Arrange, right: Arrange) -> None:
        super().__init__(left.inputs[0].width + right.inputs[0].width, (left.inputs[0], right.inputs[0]))
        self._sides = left, right
        places = np.zeros(PLACES, np.int64)
        places[[SIDE, ENTRY_AT]] = -1
        self._memory = Replaceable(Joining(places))

    def call(self) -> Call:
        (left, right), (a, b) = self._sides, self.inputs
        return Call(join, (self._memory, left, a, right, b, self.out))

    def provide(self, answer: int) -> None:
        for side in self._sides:
            side.make_room()


class JoinAll(KernelNode):
    """The joined rows of several triple patterns."""

    def __init__(self, form: p.JoinAll, width: int, kept: Sequence[Arrange], terms: TermDictionary) -> None:
        super().__init__(width, tuple(each.inputs[0] for each in kept))
        self._kept, self._terms = kept, terms
        self._conditions = Pointers(conditions_on(form.conditions, width, terms)[1])
        count = len(kept)
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.COME], scalars[k.GO], scalars[[k.DEPTH, k.TICK]] = form.only != "GO", form.only != "COME", -1
        scalars[k.READS] = _ANY
        masks = [sum(1 << i for i, mine in enumerate(form.columns) if v in mine) for v in range(width)]
        self._memory = Pointers(
            k.Conjoining(
                scalars,
                np.array([each.address for each in kept], np.int64),
                np.array([buffer.address for buffer in self.inputs], np.int64),
                np.zeros(count, np.int64),
                np.zeros(count, np.int64),
                np.cumsum([0, *map(len, form.columns)], dtype=np.int64),
                np.array([v for mine in form.columns for v in mine], np.int64),
                np.array(masks, np.int64),
                np.full((count, 8), -1),
                np.zeros(count, k.LEVEL),
                np.zeros(count * count, k.BEST),
                np.zeros(count, np.int64),
                np.array([_mask(each, width) for each in form.conditions], np.int64),
                np.zeros((count, max(map(len, form.columns))), np.uint32),
            )
        )

    def call(self) -> Call:
        return Call(k.conjoin, (self._memory, self._conditions, self._terms, self.out))

    def bound(self, made: int, reads: int) -> None:
        super().bound(made, reads)
        self._memory.arrays.scalars[k.READS] = reads

    def provide(self, answer: int) -> None:
        scalars = self._memory.arrays.scalars
        if answer == TOO_MANY_READS:
            raise LimitError(scalars.item(k.READS) + 1, scalars.item(k.READS), READS.what)
        self._kept[scalars.item(k.WHICH)].make_room()


def _mask(condition: Expression, width: int) -> int:
    """The columns that it reads."""
    read = expression_variables(condition)
    return sum(1 << i for i in range(width) if p.column(i) in read)
