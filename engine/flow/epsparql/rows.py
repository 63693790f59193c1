"""Rows with intervals, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

NEVER: Final = 1 << 62
"""A limit of lengths that none passes."""

I64: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A column that no expression can name: a blank node of a pattern, the branch of a UNION, a column that a
    sub-SELECT leaves out. It tells solutions apart that show the same."""

    number: int


Column: TypeAlias = Variable | Hidden


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """n rows: `values` u32[n, c] term ids (0 unbound), `start` and `end` i64[n] µs. All C-contiguous.
    """

    values: NDArray[np.uint32]
    start: I64
    end: I64

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: NDArray[np.integer] | NDArray[np.bool_] | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.values[index], self.start[index], self.end[index])


def empty(width: int) -> Rows:
    """No rows."""
    return Rows(np.zeros((0, width), np.uint32), np.zeros(0, np.int64), np.zeros(0, np.int64))


def concat(parts: Sequence[Rows], width: int) -> Rows:
    """Rows one after the other."""
    some = [part for part in parts if len(part)]
    if not some:
        return empty(width)
    if len(some) == 1:
        return some[0]
    return Rows(
        np.concatenate([part.values for part in some]),
        np.concatenate([part.start for part in some]),
        np.concatenate([part.end for part in some]),
    )
