"""WITHIN as clocks: what starts at an event has its clock, and what ends there must start at its cut or later."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.cea import records as k
from oxiseq.grammar.algebra import Window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery

_CANNOT_END: Final = (1 << 63) - 1
_SIGN: Final = np.int64((1 << 63) - 1)


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
    """Clocks and cuts of events with these values of the window's attribute, which may fall; NaN: it has none.

    A difference is computed as one of doubles: first is within the window of last if last - first <= size.
    """
    clocks = _sortable(values)
    clocks[np.isnan(values) | (values == -np.inf)] = k.NEVER
    cannot_end = np.isnan(values) | (values == np.inf)
    last = np.where(cannot_end, 0.0, values)
    with np.errstate(over="ignore", invalid="ignore"):
        cuts = _sortable(last - size)
        exact = _within(last, cuts, size) & ~_within(last, cuts - 1, size)
        if not exact.all():
            cuts[~exact] = _search(last[~exact], size)
    cuts[cannot_end] = _CANNOT_END
    return clocks, cuts


def _search(last: NDArray[np.float64], size: float) -> NDArray[np.int64]:
    """The smallest clock that is within the window of each, by bisection."""
    low = np.full(len(last), _sortable(np.array([-np.finfo(np.float64).max]))[0])
    high = np.full(len(last), _sortable(np.array([np.inf]))[0])
    while (low < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        inside = _within(last, middle, size)
        high = np.where(inside, middle, high)
        low = np.where(inside, low, middle + 1)
    return low


def _within(last: NDArray[np.float64], clocks: NDArray[np.int64], size: float) -> NDArray[np.bool_]:
    return (last - _value(clocks)) <= size


def _sortable(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers in the order of the values; -0.0 is 0.0."""
    word = (values + 0.0).view(np.int64)
    return word ^ ((word >> 63) & _SIGN)


def _value(clocks: NDArray[np.int64]) -> NDArray[np.float64]:
    return (clocks ^ ((clocks >> 63) & _SIGN)).view(np.float64)
