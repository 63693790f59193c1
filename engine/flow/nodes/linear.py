"""Operators that take row by row and keep nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.nodes.node import Call, KernelNode, Node
from oxiseq.engine.kernels.flow.copying import Merging, Picked, merge, negate, pick
from oxiseq.engine.kernels.memory.pointers import Replaceable
from oxiseq.engine.terms.dictionary import TermDictionary


class Constant(Node):
    def __init__(self, form: p.Constant, terms: TermDictionary) -> None:
        super().__init__(form.width)
        ids = [[0 if t is None else terms.constant(t) for t in row] for row in form.rows]
        self._rows = np.array(ids, np.uint32).reshape(len(form.rows), form.width)
        self._first: int | None = None

    def begin(self, tick: int) -> bool:
        self._first = tick
        return True

    def step(self) -> None:
        if self._first is not None:
            count = len(self._rows)
            self.out.put(Delta(np.full(count, self._first), np.ones(count, np.int64), self._rows))
            self._first = None


class Copying(KernelNode):
    """One whose kernel wants room for its output and nothing else."""

    def provide(self, answer: int) -> None:
        raise AssertionError(answer)


class Pick(Copying):
    def __init__(self, form: p.Pick, child: Buffer) -> None:
        super().__init__(len(form.columns), (child,))
        ends = np.cumsum([0, *map(len, form.columns)], dtype=np.int64)
        places = np.array([place for places in form.columns for place in places], np.int64)
        self._memory = Replaceable(Picked(ends, places))

    def call(self) -> Call:
        return Call(pick, (self._memory, self.inputs[0], self.out))


class Negate(Copying):
    def __init__(self, child: Buffer) -> None:
        super().__init__(child.width, (child,))

    def call(self) -> Call:
        return Call(negate, (self.inputs[0], self.out))


class Union(Copying):
    def __init__(self, children: Sequence[Buffer], marked: bool = False) -> None:
        super().__init__(children[0].width + marked, tuple(children))
        addresses = np.array([child.address for child in children], np.int64)
        self._memory = Replaceable(Merging(addresses, np.zeros(len(children), np.int64)))

    def call(self) -> Call:
        return Call(merge, (self._memory, self.out))
