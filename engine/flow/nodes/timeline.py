"""Rows kept in order of time, by key (kernels/flow/moments.py): the memory of what pairs and chooses by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.times import HasRows
from oxiseq.engine.kernels.flow import moments as k
from oxiseq.engine.kernels.flow.timelines import fill_group_slots, fill_row_slots, keep_rows
from oxiseq.engine.kernels.memory.pointers import Addressed, Replaceable, call
from oxiseq.engine.terms.saved import unsaved

_MOST: Final = 1 << 30
"""Rows that can be numbered."""
_ROOMS: Final = {k.ENTRIES: "entries", k.MOMENTS: "moments", k.GROUPS: "groups"}


class Timeline(HasRows, Addressed[k.Timeline]):
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
        return int(self._memory.arrays.scalars[k.COUNT])

    # --- memory -------------------------------------------------------------------------------------

    def _allocated(self, room: int) -> k.Timeline:
        """Nothing kept."""
        few = min(room, 16)  # moments and groups may be far fewer than rows
        memory = k.Timeline.allocate(entries=room, moments=few, groups=few, width=self._width, key=len(self._key))
        memory.scalars[k.TIME], memory.scalars[k.LEAST] = self._time, self._least
        memory.scalars[[k.FREE, k.MOMENT_FREE, k.GROUP_FREE]] = k.NONE
        return memory._replace(key=np.array(self._key, np.int64))

    def make_room(self) -> None:
        """What a kernel lacks, if anything. Raises LimitError where rows cannot be numbered any more."""
        memory = self._memory.arrays
        lack, memory.scalars[k.LACK] = int(memory.scalars[k.LACK]), k.NOTHING
        if lack == k.LESS:
            self._keep(*self._rows())
        elif lack != k.NOTHING:
            if 2 * memory.room(_ROOMS[lack]) > _MOST:
                raise LimitError(memory.room(_ROOMS[lack]), _MOST // 2, "rows kept in order of time")
            self._memory.set(memory.grow(_ROOMS[lack]))
            if lack == k.ENTRIES:
                call(fill_row_slots, self._memory)
            elif lack == k.GROUPS:
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
        live = np.flatnonzero(memory.entries["moment"][: memory.scalars[k.TOP]] != k.NONE)
        return memory.rows[live], memory.entries["weight"][live]
