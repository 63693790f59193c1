"""Operators that take row by row and keep nothing: other columns, the opposite weight, the rows of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxiseq.engine.flow.delta import I64, Buffer
from oxiseq.engine.flow.operators.node import Call, KernelNode, Node
from oxiseq.engine.kernels.flow import copying as k
from oxiseq.engine.kernels.memory.pointers import Addressed, Pointers, Replaceable
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Pick:
    """Other columns: each is the first of some places that is bound; of none: unbound. Projections, what fills a joined
    row's columns from both sides, the columns that a branch of UNION has not."""

    child: int
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Negate:
    """What comes, goes, and the other way about."""

    child: int


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all children, which are of one width; `marked`: with the number of the child behind them."""

    children: tuple[int, ...]
    marked: bool = False


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


def pick(form: Pick, child: Buffer) -> Node:
    """Other columns."""
    return RowByRow(k.pick, len(form.columns), child, Pointers(k.Picked(*listed(form.columns))))


def listed(columns: Sequence[tuple[int, ...]]) -> tuple[I64, I64]:
    """Places of columns one after the other: where each column's begin, and all of them."""
    ends = np.cumsum([0, *map(len, columns)], dtype=np.int64)
    return ends, np.array([place for places in columns for place in places], np.int64)


class UnionNode(Copying):
    def __init__(self, children: Sequence[Buffer], marked: bool = False) -> None:
        super().__init__(children[0].width + marked, tuple(children))
        addresses = np.array([child.address for child in children], np.int64)
        self._memory = Replaceable(k.Merging(addresses, np.zeros(len(children), np.int64)))

    def call(self) -> Call:
        return Call(k.merge, (self._memory, self.out))
