"""Windows, of every language: at each instant one number, the clock up to which events are out (semantics.md,
sections 2.6 and 6)."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.compiling.options import in_python
from oxiseq.engine.kernels.matches import clocks
from oxiseq.grammar import algebra
from oxiseq.grammar.records import dataclass

BEFORE_ALL: Final = np.iinfo(np.int64).min
"""A clock before all others: nothing is out."""

C = TypeVar("C", int, NDArray[np.int64])
window_start: Final[Any] = in_python(clocks.window_start)
"""The formula of `cut_of`, for numbers and for arrays of clocks."""


def cut_of(window: algebra.Window, clock: C, start: int) -> C:
    """WITHIN of a sequence: the clock at which a match that ends at `clock` may start at the earliest. start: the first
    clock of the first tumbling window."""
    begins: C = window_start(clock, window.size, window.sliding, start)
    return begins


def number_of(window: algebra.Window, clock: C, start: int) -> C:
    """Which tumbling window a clock is in. start: the first clock of number 0."""
    number: C = (clock - start) // window.size
    return number


def end_of(window: algebra.Window, number: int, start: int) -> int:
    """The first clock behind a tumbling window."""
    return start + (number + 1) * window.size


def closed_at(window: algebra.Window, clock: int, start: int) -> int:
    """The first clock that is in no window with `clock`, nor is any behind it."""
    return clock + window.size + 1 if window.sliding else end_of(window, number_of(window, clock, start), start)


@dataclass(frozen=True, slots=True)
class Window:
    """The window at clock τ holds the events with τ_b < τ' ≤ τ, τ_b = ⌈τ/slide⌉·slide − range.

    `range`, `slide`: microseconds, the clock being the time; if `counted`, numbers of instants, the clock being the
    instant's number from 1 on. `range` None: nothing ever leaves, so that memory is not bounded.
    Raises ValueError for a range or slide below 1.
    """

    range: int | None
    slide: int = 1
    counted: bool = False

    def __post_init__(self) -> None:
        if self.slide < 1 or (self.range is not None and self.range < 1):
            raise ValueError(f"a window's range and slide are at least 1: {self.range}, {self.slide}")

    def low_of(self, clock: int) -> int:
        """τ_b of one clock."""
        return int(BEFORE_ALL) if self.range is None else -(-clock // self.slide) * self.slide - self.range

    def low(self, clock: NDArray[np.int64]) -> NDArray[np.int64]:
        """τ_b of each clock, i64 like them."""
        if self.range is None:
            return np.full(len(clock), BEFORE_ALL)
        ends = clock if self.slide == 1 else -(-clock // self.slide) * self.slide
        bounds: NDArray[np.int64] = ends - self.range
        return bounds
