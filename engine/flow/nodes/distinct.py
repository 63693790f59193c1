"""Each row once, as long as its weight is above 0 (operators.md, 3.4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.nodes.node import ALL_TIME, Call, KeepsRows, lifetime_scalars
from oxiseq.engine.kernels.flow import counting as k
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.terms.saved import unsaved

_HEADER: Final = k.ROW // 2
"""Words of a record before its row."""
_MOST: Final = 1 << 30
"""Rows that can be numbered."""


class Distinct(KeepsRows):
    """room: rows to begin with."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(
        self, child: Buffer, room: int = 64, lifetime: p.Lifetime | None = None, clock: I64 = ALL_TIME
    ) -> None:
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
