"""The matches that end at one instant as a set: how many, the i-th, some at random, the best; none is listed for it.

In the flow: finals of an instant → **frozen set** → the chosen matches (answers.md, 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.matches.frozen import memory as f
from oxiseq.engine.kernels.matches.frozen.best import find_best
from oxiseq.engine.kernels.matches.frozen.freeze import count_above, count_ways, freeze
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.memory import M

MOST_LIMBS: Final = 64
"""A set of 2^4096 matches and more cannot be counted."""
_FIRST: Final = 256

Places = NDArray[np.int64]
"""A match: of each of its rows, first to last, the id and the place (records.PLACE_BITS)."""


_NOTHING: Final = f.FrozenMemory.allocate(stack=0, records=0, entries=0, picked=0)
_NO_POINTERS: Final = Pointers(_NOTHING)
"""Shared by all sets until their best matches are requested; never written."""


class FrozenMatches:
    """The matches below the finals of `S`, all of one cut, in the order in which they are enumerated.

    Ask one set for its best once.
    """

    def __init__(self, S: M) -> None:
        state = np.zeros(f.FROZEN_STATES, np.int64)
        state[f.FINAL_COUNT] = S.scalars[k.FINALS]
        top = int(S.scalars[k.NODE_TOP])
        room = top + int(state[f.FINAL_COUNT])  # unions of finals are made
        self._memory = _NOTHING._replace(
            nodes=S.nodes,
            finals=S.finals,
            number=np.empty(top, np.int32),
            stack=np.empty(max(room, _FIRST), np.int64),
            state=state,
            pos=np.empty(room, np.int64),
            kids=np.empty((room, 3), np.int32),
            ways=np.empty((room, 1), np.uint64),
            above=np.empty((room, 1), np.uint64),
            blocked=np.zeros(room, np.uint8),
        )
        self._pointers = _NO_POINTERS.of(self._memory)
        """Those with which it is frozen and counted: to make them takes longer than either."""
        self._size = self._freeze()
        self._limbs = 1
        self._enough: bool | None = None

    @property
    def count(self) -> int:
        """How many matches there are. Raises LimitError where they are too many to be counted."""
        while not self._counted():
            if self._limbs == MOST_LIMBS:
                bits = 64 * MOST_LIMBS
                raise LimitError(bits + 1, bits, "binary digits of the number of matches that end at one instant")
            self._limbs, self._enough = 2 * self._limbs, None
        root = int(self._memory.state[f.ROOT])
        return 0 if root < 0 else self._ways(root)

    def leave_out(self, nodes: NDArray[np.intp]) -> None:
        """From now on it is the set of the matches that have none of these outputs, but for `best`."""
        blocked = self._memory.blocked
        blocked[: self._size], blocked[nodes] = 0, 1
        self._enough = None

    def exceeds(self, number: int) -> bool:
        """Whether there are more matches than `number`, which is less than 2^64."""
        return not self._counted() or self.count > number

    @property
    def pos(self) -> NDArray[np.int64]:
        """Of each node of the set the id and place of its row; -1 for one that has none."""
        found: NDArray[np.int64] = self._memory.pos[: self._size]
        return found

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Of each node of the set whether its row begins matches."""
        found: NDArray[np.bool_] = (self.pos >= 0) & (self._memory.kids[: self._size, 0] < 0)
        return found

    def at(self, i: int) -> Places:
        """The i-th match, from 0 on. Raises IndexError."""
        if not 0 <= i < self.count:
            raise IndexError(f"match {i} of {self.count}")
        found: list[int] = []
        n = int(self._memory.state[f.ROOT])
        while n >= 0:
            own, kids = int(self._memory.pos[n]), self._memory.kids[n].tolist()
            if own >= 0:
                found.append(own)
                n = kids[0]
                continue
            for kid in kids:
                ways = self._ways(kid) if kid >= 0 else 0
                if i < ways:
                    n = kid
                    break
                i -= ways
        return np.array(found[::-1], np.int64)

    def best(self, values: NDArray[np.float64], wanted: int) -> Iterator[Places]:
        """The `wanted` matches whose rows have the least sums, the least one first; all if there are not so many.

        `values`: f64[nodes, k] of this set, compared column by column; those of unions are not read. Ties go to the
        match that has the first of the rows in which two differ.
        """
        if not self._size:
            return
        size = self._size
        self._memory.state[[f.WANTED, f.LAST]] = wanted, -1
        memory = self._memory._replace(
            stack=np.zeros(size + 1, np.int64),
            values=values,
            cursors=np.full((size, 3), -1, np.int32),
            turns=np.zeros((size, 3), np.int32),
            lists=np.tile(np.array([-1, -1, 0], np.int32), (size, 1)),
            records=np.zeros(2 * size, f.RECORD),
            sums=np.zeros((2 * size, values.shape[1])),
            entries=np.zeros((2 * size, 2), np.int32),
            picked=np.zeros(min(wanted, _FIRST), np.int32),
        )
        while (need := call(find_best, Pointers(memory))) != f.FOUND:
            if need == f.MORE_RECORDS:
                memory = memory.grow("records")
            elif need == f.MORE_PICKED:
                memory = memory.grow("picked", min(2 * len(memory.picked), wanted))
            else:
                memory = memory.grow("entries")
        self._memory = memory
        for record in memory.picked[: memory.state[f.PICKED]].tolist():
            yield self._rows(record)

    def _rows(self, record: int) -> Places:
        records = self._memory.records
        found = np.zeros(int(records["depth"][record]), np.int64)
        for i in range(len(found) - 1, -1, -1):
            found[i] = records["pos"][record]
            record = int(records["parent"][record])
        return found

    def times(self, nodes: NDArray[np.intp]) -> NDArray[Any]:
        """How many matches each of these outputs is in: u64, or Python's integers. Raises LimitError as `count`."""
        if not self.count:
            return np.zeros(len(nodes), np.uint64)
        call(count_above, self._pointers)
        memory = self._memory
        if self._limbs == 1:
            times: NDArray[np.uint64] = memory.ways[nodes, 0] * memory.above[nodes, 0]
            return times
        return np.array([_number(memory.ways[n]) * _number(memory.above[n]) for n in nodes.tolist()], object)

    def _ways(self, n: int) -> int:
        return int(self._memory.ways[n, 0]) if self._limbs == 1 else _number(self._memory.ways[n])

    def _freeze(self) -> int:
        while call(freeze, self._pointers) != f.FOUND:  # the stack is full: there is room for all else
            self._memory = self._memory.grow("stack")
            self._pointers = self._pointers.of(self._memory)
        return int(self._memory.state[f.FROZEN])

    def _counted(self) -> bool:
        """Whether what is below each node can be counted in numbers of so many limbs; then it has been."""
        if self._enough is None:
            if self._memory.ways.shape[1] < self._limbs:
                ways, above = (np.empty((self._size, self._limbs), np.uint64) for _ in range(2))
                self._memory = self._memory._replace(ways=ways, above=above)
                self._pointers = self._pointers.of(self._memory)
            self._enough = call(count_ways, self._pointers) == f.FOUND
        return self._enough


def _number(limbs: NDArray[np.uint64]) -> int:
    return int.from_bytes(limbs.astype("<u8").tobytes(), "little")
