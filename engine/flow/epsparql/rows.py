"""Rows with intervals, as columns, and their order: by their terms, which no dictionary, batch or restart changes."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.relations import Column, Half, Hidden
from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary
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


def in_order(rows: Rows, terms: TermDictionary, *, numbered: bool = False) -> Rows:
    """By end, start, then by their terms. numbered: those of one number, their first column, together, each in this
    order."""
    number = rows.values[:, 0] if numbered else np.zeros(len(rows), np.uint32)
    order = np.lexsort((rows.start, rows.end, number))
    rows, number = rows.take(order), number[order]
    differs = (np.diff(rows.start) != 0) | (np.diff(rows.end) != 0) | (np.diff(number) != 0)
    if differs.all():
        return rows
    interval = np.append(0, np.cumsum(differs))
    return rows.take(content_order(interval, rows.values, terms, np.zeros(0, np.uint32)))
