"""The base of all running operators, and how long their rows are of use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.delta import I64, Buffer, Ids
from oxiseq.engine.flow.times import HasRows
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT
from oxiseq.engine.kernels.flow.moments import NO_END
from oxiseq.engine.kernels.memory.pointers import Addressed, address_of, call
from oxiseq.engine.terms.saved import SavedTerms, State, Stateful
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long rows are of use, whose interval is at `start`: while it begins at most `limit` microseconds
    before the instant in work. Then they are forgotten, and nothing is emitted about them. Rows without a time
    (moments.NO_START) stay."""

    start: int
    limit: int = 0


Chosen: TypeAlias = Callable[[Ids], NDArray[np.bool_]]
"""Rows → which of them are kept."""
ALL_TIME: Final = np.array([NO_END, NO_END])
"""A clock (kernels/flow/buffers.py) by which nothing is over."""


class Call(NamedTuple):
    """A kernel and what it takes."""

    kernel: Callable[..., int]
    arguments: tuple[Addressed[Any] | int, ...]

    def __call__(self) -> int:
        answer: int = call(self.kernel, *self.arguments)
        return answer


class Node(Stateful, ABC):
    """A running operator. `out`: its results in the last batch; the flow clears them before the next."""

    def __init__(self, width: int, inputs: tuple[Buffer, ...] = ()) -> None:
        self.out = Buffer(width)
        self.inputs = inputs

    def bound(self, made: int, reads: int) -> None:
        """From now on have steps raise LimitError for more rows that are made, or tried, at one tick."""
        self.out.bound = made

    def begin(self, tick: int) -> bool:
        """The first tick, before anything else. Returns whether it emits then, input or not."""
        return False

    @abstractmethod
    def step(self) -> None:
        """Takes the inputs' rows, and puts the results into `out`. Raises LimitError."""

    def call(self) -> Call | None:
        """What takes in a batch, if a kernel does, apart from `go_on`. The addresses stay the same as long as the
        dictionary's does and no ids are freed."""
        return None

    def go_on(self, answer: int) -> None:
        """The kernel of `call` has answered something other than DONE: serves it until it is done."""
        raise NotImplementedError

    def tidy(self) -> None:
        """Between batches: return memory that is mostly empty."""

    @property
    def records(self) -> int:
        """How many rows, groups, pairs it keeps."""
        return 0

    def forget(self, *, now: bool = False) -> None:
        """Between batches: release the rows whose lifetime (plan.Lifetime) is over by the plan's clock, if there may
        be many, or `now`. With each batch they do so by themselves."""

    def keep(self, chosen: Chosen) -> None:
        """Between batches: keeps only the chosen ones of its rows, and emits nothing."""


def lifetime_scalars(lifetime: Lifetime | None, clock: I64) -> tuple[int, int, int]:
    """How long rows are kept, as kernels take it: the clock's address, 0 for ever, the column of the time at which rows
    begin, for how long."""
    return (0, 0, 0) if lifetime is None else (address_of(clock), lifetime.start, lifetime.limit)


class KernelNode(Node):
    """One whose batches a kernel takes in."""

    @abstractmethod
    def call(self) -> Call: ...

    @abstractmethod
    def provide(self, answer: int) -> None:
        """Serves the kernel besides room for its output. Raises LimitError."""

    def step(self) -> None:
        self.go_on(self.call()())

    def go_on(self, answer: int) -> None:
        while answer != DONE:
            if answer == NEED_OUT:
                self.out.grow()
            else:
                self.provide(answer)
            answer = self.call()()


class OfRows(KernelNode, HasRows):
    """One whose state is rows of its input."""

    @property
    def _width(self) -> int:  # type: ignore[override]  # nobody sets it
        return self.inputs[0].width

    @property
    def _raw(self) -> Sequence[int]:  # type: ignore[override]
        return self.inputs[0].raw


class KeepsRows(OfRows):
    """One that keeps rows of its input, each with a weight, and can be rebuilt from them."""

    def keep(self, chosen: Chosen) -> None:
        rows, weight = self._rows()
        kept = chosen(rows)
        if not kept.all():
            self._keep(np.ascontiguousarray(rows[kept]), weight[kept])

    def save_some(self, chosen: Chosen, terms: SavedTerms) -> State:
        """As `save`, of some of the rows."""
        rows, weight = self._rows()
        kept = chosen(rows)
        return self._saved((np.ascontiguousarray(rows[kept]), weight[kept]), terms)
