"""How the columns of two operators meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.intervals.plan import Plan
from oxiseq.engine.intervals.rows import Column, Rows

NO_LOOSE: Final = np.zeros((0, 2), np.int64)
"""No column that may be unbound."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of one side of a pair, and which of them are always bound."""

    columns: tuple[Column, ...]
    certain: frozenset[Column]


@dataclass(frozen=True, slots=True)
class Shared:
    """How two operators' columns meet: the keys, the columns that may be unbound, and where each column of the pair
    comes from."""

    left_key: NDArray[np.int64]
    right_key: NDArray[np.int64]
    loose: NDArray[np.int64]
    more: tuple[int, ...]
    """Columns of the right that the left has not."""

    @classmethod
    def of(cls, left: Plan | Sides, right: Plan | Sides) -> Shared:
        both = [c for c in left.columns if c in right.columns]
        sure = [c for c in both if c in left.certain and c in right.certain]
        loose = [(left.columns.index(c), right.columns.index(c)) for c in both if c not in sure]
        return cls(
            np.array([left.columns.index(c) for c in sure], np.int64),
            np.array([right.columns.index(c) for c in sure], np.int64),
            np.array(loose, np.int64).reshape(len(loose), 2),
            tuple(i for i, c in enumerate(right.columns) if c not in left.columns),
        )

    @property
    def turned(self) -> NDArray[np.int64]:
        """`loose`, seen from the right."""
        return np.ascontiguousarray(self.loose[:, ::-1])

    def pairs(self, left: Rows, right: Rows) -> Rows:
        """Row by row the pair, with the hull of both."""
        values = np.empty((len(left), left.values.shape[1] + len(self.more)), np.uint32)
        values[:, : left.values.shape[1]] = left.values
        values[:, left.values.shape[1] :] = right.values[:, list(self.more)]
        for a, b in self.loose.tolist():
            values[:, a] = np.where(left.values[:, a] == 0, right.values[:, b], left.values[:, a])
        return Rows(values, np.minimum(left.start, right.start), np.maximum(left.end, right.end))
