"""WITHIN as clocks: a complex event that starts at an event has its clock; one that ends there must start at its cut or
later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.cea import clocks as kernels
from oxiseq.engine.kernels.cea import records as k
from oxiseq.grammar.algebra import Window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery


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
