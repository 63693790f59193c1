"""Rows kept in order of time, by key (kernels/flow/moments.py): the memory of what pairs and chooses by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.times import ids_in, known_rows, saved_rows
from oxiseq.engine.kernels.flow import moments as k
from oxiseq.engine.kernels.flow.timelines import fill_group_slots, fill_row_slots, keep_rows
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_MOST: Final = 1 << 30
"""Rows that can be numbered."""


class Timeline:
    """Rows of an operator, in order of the raw time at a place. room: rows to begin with."""

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
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.TIME], scalars[k.LEAST] = self._time, self._least
        scalars[[k.FREE, k.MOMENT_FREE, k.GROUP_FREE]] = k.NONE
        few = min(room, 16)  # moments and groups may be far fewer than rows
        return k.Timeline(
            scalars,
            np.array(self._key, np.int64),
            np.zeros(room, k.ENTRY),
            np.zeros((room, self._width), np.uint32),
            np.zeros(slots_for(room), SLOT),
            np.zeros(few, k.MOMENT),
            np.zeros(few, k.GROUP),
            np.zeros((few, len(self._key)), np.uint32),
            np.zeros(slots_for(few), SLOT),
        )

    def make_room(self) -> None:
        """What a kernel lacks, if anything. Raises LimitError where rows cannot be numbered any more."""
        memory = self._memory.arrays
        lack, memory.scalars[k.LACK] = int(memory.scalars[k.LACK]), k.NOTHING
        if lack == k.ENTRIES:
            size = self._doubled(memory.entries)
            self._memory.set(
                memory._replace(
                    entries=longer(memory.entries, size),
                    rows=longer(memory.rows, size),
                    slots=np.zeros(slots_for(size), SLOT),
                )
            )
            call(fill_row_slots, self._memory)
        elif lack == k.MOMENTS:
            self._memory.set(memory._replace(moments=longer(memory.moments, self._doubled(memory.moments))))
        elif lack == k.GROUPS:
            size = self._doubled(memory.groups)
            self._memory.set(
                memory._replace(
                    groups=longer(memory.groups, size),
                    keys=longer(memory.keys, size),
                    group_slots=np.zeros(slots_for(size), SLOT),
                )
            )
            call(fill_group_slots, self._memory)
        elif lack == k.LESS:
            self._keep(*self._rows())

    @staticmethod
    def _doubled(array: np.ndarray) -> int:
        size = 2 * len(array)
        if size > _MOST:
            raise LimitError(len(array), _MOST // 2, "rows kept in order of time")
        return size

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

    # --- facts, and the saved state -----------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """How large its tables are."""
        return sum(array.nbytes for array in self._memory.arrays)

    def held_ids(self) -> Ids:
        """The terms of its rows."""
        return ids_in(self._rows()[0], self._raw)

    def save(self, terms: SavedTerms) -> State:
        """Its rows and their weights."""
        rows, weight = self._rows()
        return {"rows": saved_rows(rows, self._raw, terms), "weight": weight}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state."""
        weight = state["weight"].astype(np.int64)
        rows = np.asarray(state["rows"]).reshape(len(weight), self._width)
        self._keep(known_rows(rows, self._raw, terms), weight)
