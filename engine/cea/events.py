"""Events as the kernels of a CEQL query take them: symbol, partition, the clock with which a complex event starts there
and the cut at which one that ends there must have started or later.

In the flow: marks of events → **arrays** → runs (run.py, composed.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.windows import attribute_clocks, kind_of
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.memory.pointers import Array, Pointers, PointerTables
from oxiseq.grammar.algebra import Consumption
from oxiseq.grammar.ceql_algebra import AttributeWindow

_FEW: Final = 128
"""Batches of at most so many events are copied into the kernel's own buffer: cheaper than passing their address."""
_U64, _I64 = np.dtype(np.uint64), np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class MarkedEvents:
    """n events in merged order, each at a position of its own (consecutive, continuing from the batch before)."""

    symbol: NDArray[np.uint64]
    """u64[n, words]: which atoms each satisfies; words = ceil(len(plan.atoms) / 64), at least 1."""
    time: NDArray[np.int64]
    """i64[n]: µs, not falling."""
    partition: NDArray[np.int64]
    """i64[n]: number of its partition (`begin_partitions`; 0 without PARTITION BY); -1: in none."""
    attribute: NDArray[np.float64] | None = None
    """f64[n]: value of the window's attribute (NaN: none), for `WITHIN n [attr]` only; None otherwise."""

    def __len__(self) -> int:
        return len(self.time)


class EventArrays:
    """The arrays of one run's batches. `tau`: in windows of time the last event's cut."""

    def __init__(self, plan: CeaPlan, sizes: NDArray[np.int64]) -> None:
        self._sizes, self._window = sizes, plan.query.window
        self._few = k.Events(np.zeros((_FEW, plan.words), np.uint64), *(np.zeros(_FEW, np.int64) for _ in range(3)))
        self._pointers = Pointers(self._few)
        self.tau = k.BEFORE_ALL

    def of(self, events: MarkedEvents, tables: PointerTables) -> k.Events:
        """A batch's, where the kernel will look; each array contiguous, writable and of its type."""
        return self._placed(self._arrays(events), tables)

    def _arrays(self, events: MarkedEvents) -> k.Events:
        symbol = _plain(events.symbol, _U64)
        partition, time = _plain(events.partition, _I64), _plain(events.time, _I64)
        kind = int(self._sizes[k.KIND])
        if kind == k.BY_TIME:
            cut = time - self._sizes[k.SIZE]
            if len(cut):
                self.tau = int(cut[-1])
            return k.Events(symbol, partition, time, cut)
        if kind == k.BY_ATTRIBUTE:
            assert isinstance(self._window, AttributeWindow) and events.attribute is not None
            clocks, cuts = attribute_clocks(events.attribute.astype(np.float64), float(self._window.size.value))
            return k.Events(symbol, partition, clocks, cuts)
        return k.Events(symbol, partition, time, time)

    def _placed(self, events: k.Events, tables: PointerTables) -> k.Events:
        count = len(events.partition)
        if count > _FEW:
            return events
        few = k.Events(*[array[:count] for array in self._few])
        for there, array in zip(few, events, strict=True):
            there[:] = array
        self._pointers.shorten(count)
        tables.put(few, self._pointers)
        return few


def sizes_of(plan: CeaPlan, capacities: Capacities, picks: bool) -> NDArray[np.int64]:
    """The kernels' numbers of a plan; `picks`: whether ORDER BY or SAMPLE chooses."""
    query = plan.query
    sizes = np.zeros(k.SIZES, np.int64)
    sizes[k.DISORDER] = capacities.disorder
    sizes[k.KIND], sizes[k.SIZE] = kind_of(query)
    sizes[k.LIMIT] = query.limit.count if query.limit is not None else matches.NO_LIMIT
    sizes[k.CHOOSES] = (query.selection is not None and not plan.strict) or picks
    match query.consumption:
        case None:
            sizes[k.CONSUME] = k.KEEP_ALL
        case Consumption(whole_query):
            sizes[k.CONSUME] = k.FORGET_ALL if whole_query else k.FORGET_PARTITION
    sizes[k.WORDS] = plan.words
    return sizes


def _plain(array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable:
        return array
    return np.require(array, dtype, ["C_CONTIGUOUS", "WRITEABLE"])
