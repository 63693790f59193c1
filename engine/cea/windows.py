"""WITHIN as clocks: a complex event that starts at an event has its clock; one that ends there must start at its cut or
later."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.cea import clocks as kernels
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.compiling.options import in_python
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.memory.pointers import Array, Pointers
from oxiseq.grammar.algebra import Window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery

_FEW: Final = 128
"""Batches of at most so many events are copied to where the kernel looks: cheaper than passing their addresses."""
_NONE: Final = np.zeros(0, np.float64)
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


def attribute_clocks(values: NDArray[np.float64], size: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clocks and cuts of events with these values of the window's attribute, which may fall; NaN: it has none."""
    clocks, cuts = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    scratch = np.zeros(1, np.float64)
    kernels.attribute_clocks(np.ascontiguousarray(values), size, scratch, scratch.view(np.int64), clocks, cuts)
    return clocks, cuts


class Placed:
    """Batches of a query's events as its kernel reads them, with clocks and cuts. `words`: of a symbol."""

    def __init__(self, query: CeqlQuery, words: int) -> None:
        self._kind, self._back = kind_of(query)
        window = query.window
        self._size = float(window.size.value) if isinstance(window, AttributeWindow) else 0.0
        scratch = np.zeros(1, np.float64)
        self._scratch = scratch, scratch.view(np.int64)
        few = np.zeros((3, _FEW), np.int64)
        self._few = Pointers(k.Events(np.zeros((_FEW, words), np.uint64), *few))

    def cut(self, time: int) -> int | None:
        """That of an event at `time`, in a window of time."""
        return _window_start(time, self._back, 1, 0) if self._kind == k.BY_TIME else None

    def place(
        self,
        symbol: NDArray[np.uint64],
        partition: NDArray[np.int64],
        time: NDArray[np.int64],
        attribute: NDArray[np.float64] | None,
    ) -> Pointers[k.Events]:
        """A batch, until the next one is placed."""
        if len(partition) <= _FEW:
            values = _NONE if attribute is None else plain(attribute, np.float64)
            kernels.place_few(
                self._few.address, symbol, partition, time, values, self._kind, self._back, self._size, *self._scratch
            )
            return self._few
        if self._kind == k.BY_ATTRIBUTE:
            assert attribute is not None
            return Pointers(k.Events(symbol, partition, *attribute_clocks(plain(attribute, np.float64), self._size)))
        cut = _window_start(time, self._back, 1, 0) if self._kind == k.BY_TIME else time
        return Pointers(k.Events(symbol, partition, time, cut))


def plain(array: Array, dtype: Any) -> Array:
    """It as kernels take it: contiguous, writable, of that type."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype, ["C_CONTIGUOUS", "WRITEABLE"])
