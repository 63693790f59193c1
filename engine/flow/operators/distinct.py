"""Equal rows as one (operators.md, 3.4): each once, as long as its weight is above 0; or those of a tick, of which none
that come and go within it are left, or each once.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.node import ALL_TIME, Call, KeepsRows, KernelNode, Lifetime, lifetime_scalars
from oxiseq.engine.kernels.flow import counting as k
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.terms.saved import unsaved
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once, as long as its weight is above 0."""

    child: int
    lifetime: Lifetime | None = None


@dataclass(frozen=True, slots=True)
class Consolidate:
    """The same rows, those that come and go within a tick left out. Without memory."""

    child: int


@dataclass(frozen=True, slots=True)
class Once:
    """Each row of a tick once, where rows only come. Without memory. numbered: two columns behind it are the halves of
    a number that no other row has and is higher than those of earlier ticks, EVERY row; or those that are
    TIMED, by the interval that is their first columns: the others have 0."""

    child: int
    numbered: Literal["", "TIMED", "EVERY"] = ""


_HEADER: Final = k.ROW // 2
"""Words of a record before its row."""
_MOST: Final = 1 << 30
"""Rows that can be numbered."""


class DistinctNode(KeepsRows):
    """room: rows to begin with."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(self, child: Buffer, room: int = 64, lifetime: Lifetime | None = None, clock: I64 = ALL_TIME) -> None:
        super().__init__(child.width, (child,))
        self._least, self._lifetime, self._clock = room, lifetime, clock
        self._memory = Replaceable(self._allocated(room))

    def call(self) -> Call:
        return Call(k.distinct, (self._memory, self.inputs[0], self.out))

    def provide(self, answer: int) -> None:
        self._make_room()

    # --- memory -------------------------------------------------------------------------------------

    def _allocated(self, room: int) -> k.Counted:
        """Nothing kept."""
        memory = k.Counted.allocate(rows=room, words=_HEADER + (self.inputs[0].width + 1) // 2)
        scalars = memory.scalars
        scalars[k.LEAST] = self._least
        scalars[[k.FREE, k.CHANGED]] = -1
        scalars[[k.CLOCK, k.BEGINS, k.LIMIT]] = lifetime_scalars(self._lifetime, self._clock)
        return memory

    def _make_room(self) -> None:
        """Twice as much, or less where most of it is empty. Raises LimitError where rows cannot be numbered."""
        memory = self._memory.arrays
        if memory.scalars[k.SPARSE]:
            self._keep(*self._rows())
            return
        size = 2 * len(memory.words)
        if size > _MOST:
            raise LimitError(len(memory.words), _MOST // 2, "rows of a DISTINCT")
        self._memory.set(memory.grow("rows"))
        call(k.fill_slots, self._memory)

    def _keep(self, rows: Ids, weight: I64) -> None:
        """Keep these and no others; they have been emitted."""
        self._memory.set(self._allocated(max(self._least, 2 * len(rows))))
        kept, told = Buffer(rows.shape[1], 0), Buffer(rows.shape[1], len(rows))
        kept.put(Delta(np.zeros(len(rows), np.int64), weight, rows))
        while call(k.distinct, self._memory, kept, told) != DONE:
            self._make_room()

    def _rows(self) -> tuple[Ids, I64]:
        """The rows that are there, and their weights."""
        memory = self._memory.arrays
        top, last = int(memory.scalars[k.TOP]), k.ROW + self.inputs[0].width
        live = np.flatnonzero(memory.states[:top, k.STATE] != k.FREED)
        return memory.halves[live, k.ROW : last], memory.words[live, k.WEIGHT]

    def forget(self, *, now: bool = False) -> None:
        if self._lifetime is not None:
            call(k.forget, self._memory, int(now))

    # --- facts, and the saved state -----------------------------------------------------------------

    @property
    def records(self) -> int:
        return int(self._memory.arrays.scalars[k.COUNT])


_MOST_NUMBERED: Final = 1 << k.NUMBER_BITS
_NUMBERED: Final = {"": 0, "TIMED": k.TIMED, "EVERY": k.EVERY}


class ConsolidateNode(KernelNode):
    """It keeps nothing between ticks. slots: of its hash table, to begin with; a power of two. once: of rows that only
    come, each once; numbered: which with a number, in two columns behind them (plan.Once)."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(self, child: Buffer, slots: int = 16, *, once: bool = False, numbered: str = "") -> None:
        super().__init__(child.width + 2 * bool(numbered), (child,))
        memory = k.Cancelling.allocate(found=slots // 2)
        memory.places[[k.ONCE, k.NUMBERED]] = once, _NUMBERED[numbered]
        self._memory = Replaceable(memory)

    def call(self) -> Call:
        return Call(k.consolidate, (self._memory, self.inputs[0], self.out))

    def provide(self, answer: int) -> None:
        """Slots. Raises LimitError where rows cannot be numbered any more."""
        memory, places = self._memory, self._memory.arrays.places
        rows = int(places[k.SLOTS_WANTED]) // 2
        if places[k.NUMBERED] and rows > _MOST_NUMBERED:
            raise LimitError(_MOST_NUMBERED + 1, _MOST_NUMBERED, "rows of one instant, where answers use triples up")
        memory.set(memory.arrays.grow("found", rows))
        call(k.fill_found, memory, self.inputs[0], self.out)
