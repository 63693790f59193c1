"""Rows with intervals, as columns."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.grammar.records import dataclass

NEVER: Final = 1 << 62
"""A limit of lengths that none passes."""

I64: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A column that no expression can name: a blank node of a pattern, the branch of a UNION, a column that a
    sub-SELECT leaves out. It distinguishes solutions that show the same."""

    number: int


Column: TypeAlias = Variable | Hidden
ROW: Final = Hidden(1 << 30)
"""Of queries that share a plan: the number of the one that a row is of (alike.py)."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """n rows: `values` u32[n, c] term ids (0 unbound), `start` and `end` i64[n] µs. All C-contiguous."""

    values: NDArray[np.uint32]
    start: I64
    end: I64

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: NDArray[np.integer] | NDArray[np.bool_] | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.values[index], self.start[index], self.end[index])
