"""Pairs of rows in order of time, which are kept in timelines (kernels/flow/moments.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.node import Call, KernelNode
from oxiseq.engine.flow.times import HasRows
from oxiseq.engine.kernels.flow import following as k
from oxiseq.engine.kernels.flow import moments as m
from oxiseq.engine.kernels.flow.timelines import fill_group_slots, fill_row_slots, keep_rows
from oxiseq.engine.kernels.memory.pointers import Addressed, Pointers, Replaceable, call
from oxiseq.engine.terms.saved import part, unsaved
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Timed:
    """Rows that agree in some columns, in order of a raw time. `loose`: they agree where both sides have a value."""

    child: int
    time: int
    key: tuple[int, ...] = ()
    loose: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Follow:
    """The pairs of rows that agree of which the time of the left is before that of the right, or (`meeting`) equal to
    it: all columns of the left, then all of the right. EARLIEST, LATEST: of a right row and all left rows with its key
    before it only those that are first, or last; loose columns are compared after that."""

    left: Timed
    right: Timed
    choice: Literal["ALL", "EARLIEST", "LATEST"] = "ALL"
    meeting: bool = False


_MOST: Final = 1 << 30
"""Rows that can be numbered."""
_ROOMS: Final = {m.ENTRIES: "entries", m.MOMENTS: "moments", m.GROUPS: "groups"}


class Timeline(HasRows, Addressed[m.Timeline]):
    """Rows of an operator, in order of the raw time at a place. room: rows to begin with."""

    made_of = (unsaved("_memory.arrays"),)

    def __init__(self, child: Buffer, time: int, key: Sequence[int], room: int = 64) -> None:
        self._width, self._raw = child.width, child.raw
        self._time, self._key = time, tuple(key)
        self._least = room
        self._memory = Replaceable(self._allocated(room))
        self.address = self._memory.address
        """Of its memory, for kernels."""

    def __len__(self) -> int:
        return int(self._memory.arrays.scalars[m.COUNT])

    # --- memory -------------------------------------------------------------------------------------

    def _allocated(self, room: int) -> m.Timeline:
        """Nothing kept."""
        few = min(room, 16)  # moments and groups may be far fewer than rows
        memory = m.Timeline.allocate(entries=room, moments=few, groups=few, width=self._width, key=len(self._key))
        memory.scalars[m.TIME], memory.scalars[m.LEAST] = self._time, self._least
        memory.scalars[[m.FREE, m.MOMENT_FREE, m.GROUP_FREE]] = m.NONE
        return memory._replace(key=np.array(self._key, np.int64))

    def make_room(self) -> None:
        """What a kernel lacks, if anything. Raises LimitError where rows cannot be numbered any more."""
        memory = self._memory.arrays
        lack, memory.scalars[m.LACK] = int(memory.scalars[m.LACK]), m.NOTHING
        if lack == m.LESS:
            self._keep(*self._rows())
        elif lack != m.NOTHING:
            if 2 * memory.room(_ROOMS[lack]) > _MOST:
                raise LimitError(memory.room(_ROOMS[lack]), _MOST // 2, "rows kept in order of time")
            self._memory.set(memory.grow(_ROOMS[lack]))
            if lack == m.ENTRIES:
                call(fill_row_slots, self._memory)
            elif lack == m.GROUPS:
                call(fill_group_slots, self._memory)

    def _keep(self, rows: Ids, weight: I64) -> None:
        """Keep these and no others."""
        self._memory.set(self._allocated(max(self._least, 2 * len(rows))))
        kept = Buffer(self._width, 0)
        kept.put(Delta(np.zeros(len(rows), np.int64), weight, rows))
        missing = call(keep_rows, self._memory, kept, 0)
        while missing > 0:
            self.make_room()
            missing = call(keep_rows, self._memory, kept, len(rows) - missing)

    def _rows(self) -> tuple[Ids, I64]:
        """The rows that are there, and their weights."""
        memory = self._memory.arrays
        live = np.flatnonzero(memory.entries["moment"][: memory.scalars[m.TOP]] != m.NONE)
        return memory.rows[live], memory.entries["weight"][live]


_CHOICES: Final[Mapping[str, int]] = {"ALL": k.ALL, "EARLIEST": k.EARLIEST, "LATEST": k.LATEST}


class FollowNode(KernelNode):
    """room: rows of each side to begin with."""

    made_of = part("_left"), part("_right")

    def __init__(self, form: Follow, left: Buffer, right: Buffer, room: int = 64) -> None:
        super().__init__(left.width + right.width, (left, right))
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.CHOICE], scalars[k.MEETING] = _CHOICES[form.choice], form.meeting
        loose = (np.array(side.loose, np.int64) for side in (form.left, form.right))
        self._memory = Pointers(k.Following(scalars, *loose))
        self._left = Timeline(left, form.left.time, form.left.key, room)
        self._right = Timeline(right, form.right.time, form.right.key, room)

    def call(self) -> Call:
        return Call(k.follow, (self._memory, self._left, self._right, *self.inputs, self.out))

    def provide(self, answer: int) -> None:
        self._left.make_room()
        self._right.make_room()

    @property
    def records(self) -> int:
        return len(self._left) + len(self._right)
