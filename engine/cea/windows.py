"""WITHIN as clocks: a complex event that starts at an event has its clock; one that ends there must start at its cut or
later."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.cea import clocks as kernels
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.compiling.options import in_python
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.memory.growing import plain
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.grammar.algebra import Window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery

_F64: Final = np.dtype(np.float64)
FEW: Final = 128
"""Batches of at most so many events are copied to where the kernel looks: cheaper than passing their addresses."""
_window_start: Final[Any] = in_python(window_start)


def kind_of(query: CeqlQuery) -> tuple[int, int]:
    """The kernel's kind of window and its size: events, or microseconds."""
    match query.window:
        case None:
            return k.UNBOUNDED, 0
        case AttributeWindow():
            return k.BY_ATTRIBUTE, 0
        case Window(size, events):
            return (k.BY_EVENTS if events else k.BY_TIME), size


def room_for_few(words: int, kind: int, back: int, size: float) -> k.Few:
    """For FEW events with symbols of so many words, in a window: of time of `back` µs, or of an attribute of `size`."""
    scratch = np.zeros(1, np.float64)
    few = k.Few.allocate(events=FEW, words=words, attributes=FEW if kind == k.BY_ATTRIBUTE else 0)
    numbers, sizes = np.array([kind, back], np.int64), np.array([size, np.spacing(size) / 2])
    return few._replace(event=np.arange(FEW), numbers=numbers, size=sizes, double=scratch, word=scratch.view(np.int64))


def attribute_clocks(few: Pointers[k.Few], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clocks and cuts of events with these values of the attribute of its window, which may fall; NaN: it has none."""
    clocks, cuts = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    call(kernels.attribute_clocks, few, values, clocks, cuts)
    return clocks, cuts


_counted = np.arange(FEW)
"""0, 1, 2..., as far as they were needed."""


def _numbers(count: int) -> NDArray[np.int64]:
    """The first ones, which nobody changes."""
    global _counted
    if count > len(_counted):
        _counted = np.arange(count)
    return _counted[:count]


class Placed:
    """Batches of a query's events as its kernel reads them, with clocks and cuts. `words`: of a symbol.

    `few`: where a batch of at most FEW events is put, or written at once;
    `placed_few`: the events there.
    """

    def __init__(self, query: CeqlQuery, words: int) -> None:
        self._kind, self.back = kind_of(query)
        """How long a window of time is at most (µs)."""
        window = query.window
        size = float(window.size.value) if isinstance(window, AttributeWindow) else 0.0
        self.few = room_for_few(words, self._kind, self.back, size)
        self._few = Pointers(self.few)
        self.placed_few = cast(Pointers[k.Events], self._few)  # it begins as one

    def cut(self, time: int) -> int:
        """That of an event at `time` (µs), in a window of time."""
        return cast(int, _window_start(time, self.back, 1, 0))

    def cuts(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same of events at these times; in other windows the times."""
        return cast(NDArray[np.int64], _window_start(time, self.back, 1, 0)) if self._kind == k.BY_TIME else time

    def place(
        self,
        symbol: NDArray[np.uint64],
        partition: NDArray[np.int64],
        time: NDArray[np.int64],
        attribute: NDArray[np.float64] | None,
        event: NDArray[np.int64] | None = None,
        cut: NDArray[np.int64] | None = None,
    ) -> Pointers[k.Events]:
        """A batch, until the next one is placed. `event`: which of the batch's each is; None: each is one."""
        count, few = len(partition), self.few
        if count <= FEW:
            few.symbol[:count], few.partition[:count] = symbol, partition
            if event is not None:
                few.event[:count] = event
            if attribute is not None:
                few.attribute[:count] = attribute
            placed = self.place_few(time, count)
            if cut is not None:
                few.cut[:count] = cut
            return placed
        if self._kind == k.BY_ATTRIBUTE:
            assert attribute is not None
            clocks, cuts = attribute_clocks(self._few, plain(attribute, _F64))
        else:
            clocks, cuts = time, self.cuts(time) if cut is None else cut
        return Pointers(k.Events(symbol, partition, _numbers(count) if event is None else event, clocks, cuts))

    def place_few(self, time: NDArray[np.int64], count: int) -> Pointers[k.Events]:
        """A batch whose symbols, partitions and values of the window's attribute are in `few`."""
        call(kernels.place_few, self._few, time, count)
        return self.placed_few
