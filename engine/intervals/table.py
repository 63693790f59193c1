"""Rows that an operator keeps, found by hash of some columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.intervals.rows import I64, NEVER, Rows
from oxiseq.engine.kernels.intervals.joining import EMPTY_END, link, probe
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

MAX_PAIRS = 50_000_000
"""Pairs of one join with what has come at once, past which LimitError is raised."""
_ROOM = 1 << 8


class Table:
    """Kept rows. `key`: the columns that are looked up; `limit`: how long a row may reach back to be of use."""

    def __init__(self, width: int, key: Sequence[int], limit: int = NEVER) -> None:
        self._key = np.array(key, np.int64)
        self._limit = limit
        self._width = width
        self._count = 0
        self._kept = 0
        self._allocate(64)
        self._out = np.zeros((_ROOM, 2), np.int64)

    def _allocate(self, size: int) -> None:
        self._values = np.zeros((size, self._width), np.uint32)
        self._start, self._end = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._chain = np.zeros(size, np.int64)
        self._heads = np.full(2 * size, -1, np.int64)

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Rows:
        """Those kept, as views."""
        n = self._count
        return Rows(self._values[:n], self._start[:n], self._end[:n])

    def add(self, rows: Rows) -> None:
        """Keep these too."""
        if not len(rows):
            return
        low, high = self._count, self._count + len(rows)
        grown = high > len(self._start)
        if grown:
            size = len(self._start)
            while size < high:
                size *= 2
            self._values, self._start = longer(self._values, size), longer(self._start, size)
            self._end, self._chain = longer(self._end, size), longer(self._chain, size)
            self._heads = np.full(2 * size, -1, np.int64)
        self._values[low:high], self._start[low:high], self._end[low:high] = rows.values, rows.start, rows.end
        self._count = high
        link(self._values, self._key, self._heads, self._chain, 0 if grown else low, high)

    def probe(
        self, rows: Rows, key: NDArray[np.int64], loose: NDArray[np.int64], mode: int, limit: int = NEVER
    ) -> tuple[I64, I64]:
        """The pairs (row, kept row) that agree and stand so in time, with a hull of at most `limit`.

        `key`: the columns of `rows` that belong to this table's; `loose`: i64[n, 2], columns that agree where both are
        bound. Raises LimitError past MAX_PAIRS.
        """
        if not len(rows) or not self._count:
            none = np.zeros(0, np.int64)
            return none, none
        at = np.array([0, -2], np.int64)
        parts: list[I64] = []
        total = 0
        while int(at[0]) < len(rows):
            found = int(probe(
                rows.values, rows.start, rows.end, key, self._values, self._start, self._end, self._key, self._heads,
                self._chain, loose, mode, limit, at, self._out,
            ))  # fmt: skip
            total += found
            if total > MAX_PAIRS:
                raise LimitError(total, MAX_PAIRS, "pairs of one join; bound getDURATION(), or join on a variable")
            parts.append(self._out[:found].copy())
            if int(at[0]) < len(rows) and len(self._out) < 1 << 20:
                self._out = np.zeros((4 * len(self._out), 2), np.int64)
        pairs = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def clear(self) -> None:
        """Keep nothing."""
        if self._count:
            self._count = 0
            self._heads[:] = -1

    def forget(self, passed: int, *, now: bool = False) -> None:
        """Nothing that ends before `passed` will come: drop rows that reach back too far, if there may be many, or
        `now`."""
        if self._limit < NEVER and (now or self._count > 2 * self._kept + 1024):
            self._keep(self._start[: self._count] >= passed - self._limit)
            self._kept = self._count

    def drop_used(self, places: Sequence[int], used: NDArray[np.uint32]) -> None:
        """Drop rows that have one of these ids in one of some columns."""
        if places and self._count:
            has = np.isin(self._values[: self._count, list(places)], used)
            self._keep(~np.asarray(has.any(axis=1), np.bool_))

    def drop_timeless(self) -> None:
        """Drop rows without any triple of the stream."""
        self._keep(self._end[: self._count] != EMPTY_END)

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        if keep.all():
            return
        kept = self.rows.take(keep)
        size = 64
        while size < 2 * len(kept):
            size *= 2
        self._count = 0
        if size < len(self._start):
            self._allocate(size)
        else:
            self._heads[:] = -1
        self.add(kept)

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        arrays = (self._values, self._start, self._end, self._chain, self._heads, self._out)
        return sum(array.nbytes for array in arrays)

    @property
    def held(self) -> NDArray[np.uint32]:
        """The ids of what is kept."""
        return self._values[: self._count]

    def save(self, terms: SavedTerms) -> State:
        """What is kept."""
        rows = self.rows
        return {"values": terms.ids(rows.values).copy(), "start": rows.start.copy(), "end": rows.end.copy()}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state; for a table without rows."""
        values = np.ascontiguousarray(terms.ids(state["values"]).reshape(len(state["start"]), self._width))
        self.add(Rows(values, state["start"].astype(np.int64), state["end"].astype(np.int64)))
