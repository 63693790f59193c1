"""Rows that come and go (operators.md, 2.1), and the buffers in which operators hand them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import MADE
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.flow.buffers import Flowing
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import WORDS, Addressed, Ptr, address_of
from oxiseq.grammar.records import dataclass

I64: TypeAlias = NDArray[np.int64]
Ids: TypeAlias = NDArray[np.uint32]
MOST_ROWS: Final = 50_000_000
"""Of one operator's output for one batch, past which LimitError is raised."""
KEPT_ROOM: Final = 1 << 16
"""Rows of room that a buffer keeps, needed or not."""
_FEW: Final = 256
"""Rows that are copied into a buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """n changes. at: i64[n], ticks, ascending; weight: i64[n], never 0, how many such rows come or (below 0) go; rows:
    u32[n, columns], term ids, 0 being unbound. C-contiguous. Within a tick order means nothing."""

    at: I64
    weight: I64
    rows: Ids

    def __len__(self) -> int:
        return len(self.at)

    def take(self, index: NDArray[np.integer] | NDArray[np.bool_]) -> Delta:
        """Some of them, in ascending order of ticks."""
        return Delta(self.at[index], self.weight[index], self.rows[index])

    @classmethod
    def none(cls, width: int) -> Delta:
        """No change."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, width), np.uint32))

    @classmethod
    def concat(cls, parts: Sequence[Delta], width: int) -> Delta:
        """Several as one: in order of ticks, of equal ones in the order of the parts."""
        some = [part for part in parts if len(part)]
        if not some:
            return cls.none(width)
        if len(some) == 1:
            return some[0]
        at = np.concatenate([part.at for part in some])
        order = np.argsort(at, kind="stable")
        weight, rows = np.concatenate([p.weight for p in some]), np.concatenate([p.rows for p in some])
        return cls(at[order], weight[order], rows[order])


class Buffer(Addressed[Flowing]):
    """A delta with room for more. Kernels read and write it by its `address`, which stays the same when it grows."""

    def __init__(self, width: int, room: int = 16) -> None:
        self.width = width
        self.raw: tuple[int, ...] = ()
        """Which columns hold numbers, not ids."""
        self._none = Delta.none(width)
        self.most = MOST_ROWS
        """Rows past which it does not grow: a query over the store may have fewer."""
        self.bound = MOST_ROWS
        """Rows of one tick, past which LimitError is raised."""
        self._count = np.zeros(1, np.int64)
        self._counter = self._count.data  # read in a third of the time
        self._table = np.zeros(WORDS * len(Flowing._fields), np.int64)
        self.address = cast(Ptr[Flowing], address_of(self._table))
        self._allocate(room)

    def _allocate(self, room: int) -> None:
        self._point(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros((room, self.width), np.uint32))
        self._own = True

    def _point(self, at: I64, weight: I64, rows: Ids) -> None:
        self._arrays = Flowing(at, weight, rows, self._count)
        self._shown: Flowing | None = None
        self._room = len(at)
        for number, array in enumerate(self._arrays):
            columns = array.shape[1] if array.ndim == 2 else 1
            self._table[WORDS * number : WORDS * (number + 1)] = address_of(array), len(array), columns

    def __len__(self) -> int:
        return self._counter[0]

    @property
    def delta(self) -> Delta:
        """Its rows, as views that the next step overwrites."""
        count, arrays = self._counter[0], self._arrays
        if not count:
            return self._none
        return Delta(arrays.at[:count], arrays.weight[:count], arrays.rows[:count])

    def clear(self) -> None:
        """Hold nothing. Of much room that the last batch did not need, half is returned."""
        if self._room > KEPT_ROOM and self._room > 8 * self._counter[0]:
            self._allocate(self._room // 2)
        self._counter[0] = 0

    @property
    def roomy(self) -> bool:
        """Whether `clear` may return some of its room."""
        return self._room > KEPT_ROOM

    def put(self, delta: Delta) -> None:
        """Hold this one: a copy of few rows, which costs less than to point elsewhere; else its very arrays."""
        count = len(delta.at)
        if count > _FEW:
            self._point(
                np.require(delta.at, np.int64, ("C", "W")),
                np.require(delta.weight, np.int64, ("C", "W")),
                np.require(delta.rows, np.uint32, ("C", "W")),
            )
            self._own = False
        else:
            if count > self._room or not self._own:
                self._allocate(_FEW)
            at, weight, rows, _ = self._arrays
            at[:count], weight[:count], rows[:count] = delta.at, delta.weight, delta.rows
        self._counter[0] = count

    def append(self, delta: Delta) -> None:
        """Hold more, of no earlier ticks. Raises LimitError."""
        first = self._counter[0]
        last = first + len(delta)
        while last > self._room or not self._own:
            self.grow()
        at, weight, rows, _ = self._arrays
        at[first:last], weight[first:last], rows[first:last] = delta.at, delta.weight, delta.rows
        self._counter[0] = last

    def take_over(self, other: Buffer) -> None:
        """Hold what another one of this width does, in its very arrays, until it is filled again; it holds nothing."""
        if self._shown is not other._arrays:
            self._point(*other._arrays[:3])
            self._own, self._shown = False, other._arrays
        self._counter[0] = other._counter[0]
        other.clear()

    def check(self) -> None:
        """Raise LimitError if one of its ticks has too many rows."""
        at, bound = self._arrays.at[: self._counter[0]], self.bound
        if len(at) > bound and (at[bound:] == at[:-bound]).any():
            raise LimitError(bound + 1, bound, MADE.what)

    def grow(self) -> None:
        """Twice the room, its rows kept. Raises LimitError past `most`, and past `bound`."""
        self.check()
        at, weight, rows, _ = self._arrays
        if len(at) >= self.most:
            what = "rows that an operator makes of one batch of changes; push smaller batches, or ask for less"
            raise LimitError(len(at), self.most, what)
        room = min(max(2 * len(at), 16), self.most)
        self._own = True
        self._point(longer(at, room), longer(weight, room), longer(rows, room))
