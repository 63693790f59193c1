"""Operators that take row by row and keep nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Buffer, Delta
from oxiseq.engine.flow.nodes.node import Call, KernelNode, Node
from oxiseq.engine.kernels.flow import copying as k
from oxiseq.engine.kernels.memory.pointers import Addressed, Pointers, Replaceable
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


class RowByRow(Copying):
    """Rows of one input, of so many columns, by a kernel that takes what memory says, the input and the output. held:
    of which memory has the address."""

    def __init__(
        self, kernel: Callable[..., int], width: int, child: Buffer, *memory: Addressed[Any], held: object = None
    ) -> None:
        super().__init__(width, (child,))
        self._kernel, self._memory, self._held = kernel, memory, held

    def call(self) -> Call:
        return Call(self._kernel, (*self._memory, self.inputs[0], self.out))


def pick(form: p.Pick, child: Buffer) -> Node:
    """Other columns."""
    return RowByRow(k.pick, len(form.columns), child, Pointers(k.Picked(*listed(form.columns))))


def listed(columns: Sequence[tuple[int, ...]]) -> tuple[I64, I64]:
    """Places of columns one after the other: where each column's begin, and all of them."""
    ends = np.cumsum([0, *map(len, columns)], dtype=np.int64)
    return ends, np.array([place for places in columns for place in places], np.int64)


class Union(Copying):
    def __init__(self, children: Sequence[Buffer], marked: bool = False) -> None:
        super().__init__(children[0].width + marked, tuple(children))
        addresses = np.array([child.address for child in children], np.int64)
        self._memory = Replaceable(k.Merging(addresses, np.zeros(len(children), np.int64)))

    def call(self) -> Call:
        return Call(k.merge, (self._memory, self.out))
