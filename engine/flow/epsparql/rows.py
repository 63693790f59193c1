"""Rows with intervals, as columns."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.relations import Column, Half, Hidden
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

I64: TypeAlias = NDArray[np.int64]
INTERVAL: Final = 4
"""Columns of an interval, the first of each row."""
TIMES: Final[tuple[Column, ...]] = tuple(map(Half, range(INTERVAL)))


@dataclass(frozen=True, slots=True, eq=False)
class Low(Hidden):
    """The lower half of a triple's number; the upper half, its instant, is the hidden column before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Guard(Hidden):
    """Half of the number under which the partners of a row are kept that it may be without: it counts once none of them
    does (kernels/flow/choosing.py)."""

    low: bool = False


@dataclass(frozen=True, slots=True)
class Timeless:
    """Rows without a time: those of VALUES, one empty row, the constants of queries (`table`), or (`asked`: its SELECT)
    of a GRAPH pattern."""

    width: int
    rows: tuple[tuple[Term | None, ...], ...] = ()
    asked: str = ""
    table: bool = False
