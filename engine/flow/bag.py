"""A bag of rows: each row with its multiplicity (SPARQL 1.1, 18.1.2).

What answers are compared with and emitted from, where operators do not keep them: RSTREAM, and queries over the store.
Adding a row costs one look into a dictionary; rows are in the order in which they were first added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from oxiseq.engine.flow.delta import I64, Ids

_PER_ROW: Final = 150
"""Bytes of a row in a dictionary, without its columns."""


class Bag:
    """Rows u32[n, width] with multiplicities, which may pass through numbers below 0."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._counts: dict[bytes, int] = {}
        self.size = 0
        """The number of rows, each as often as its multiplicity says where that is above 0."""

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, rows: Ids, weight: I64) -> None:
        """Adds to the multiplicities of rows, or takes from them where a weight is below 0."""
        counts = self._counts
        for key, more in zip(self._keys(rows), weight.tolist(), strict=True):
            before = counts.get(key, 0)
            count = before + more
            self.size += max(count, 0) - max(before, 0)
            if count:
                counts[key] = count
            else:
                del counts[key]

    def replace(self, rows: Ids, weight: I64) -> tuple[Ids, I64]:
        """Holds these rows and no others from now on. Returns the rows whose multiplicity has changed, and by how
        much."""
        before, self._counts, self.size = self._counts, {}, 0
        self.add(rows, weight)
        now = self._counts
        changed = {key: count - before.get(key, 0) for key, count in now.items() if count != before.get(key, 0)}
        changed |= {key: -count for key, count in before.items() if key not in now}
        return self._columns(changed)

    @property
    def rows(self) -> tuple[Ids, I64]:
        """A copy of the rows, and their multiplicities."""
        return self._columns(self._counts)

    def held_ids(self) -> Iterable[Ids]:
        """The ids of its rows."""
        return (self.rows[0],)

    def _keys(self, rows: Ids) -> list[bytes]:
        """The bytes of each row."""
        if not self._width:
            return [b""] * len(rows)
        return np.ascontiguousarray(rows).view(f"V{4 * self._width}").reshape(-1).tolist()

    def _columns(self, counts: Mapping[bytes, int]) -> tuple[Ids, I64]:
        rows = np.frombuffer(bytearray(b"".join(counts)), np.uint32).reshape(len(counts), self._width)
        return rows, np.array([*counts.values()], np.int64)

    @property
    def bytes(self) -> int:
        """About how large it is."""
        return len(self._counts) * (_PER_ROW + 4 * self._width)
