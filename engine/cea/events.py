"""Marks on events, made before they are put in order, and batches of marked events as the kernels read them.

In the flow: events → **marks** (term_marks.py for RDF, table_marks.py for tables) → merging → **clocks** → `CeaRun`.
WITHIN as clocks: a complex event that starts at an event has its clock; one that ends there must start at its cut or
later.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.cea import clocks as kernels
from oxiseq.engine.kernels.cea import records as k
from oxiseq.engine.kernels.memory.pointers import Pointers, call, plain
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.algebra import Window
from oxiseq.grammar.ceql_algebra import AttributeWindow, CeqlQuery
from oxiseq.grammar.records import dataclass

_U64, _I64, _F64 = np.dtype(np.uint64), np.dtype(np.int64), np.dtype(np.float64)
FEW: Final = 128
"""Batches of at most so many events are copied to where the kernel looks: cheaper than passing their addresses."""


@dataclass(frozen=True, slots=True)
class Marks:
    """n events: see `MarkedEvents` for the columns it shares."""

    symbol: NDArray[np.uint64]
    time: NDArray[np.int64]
    attribute: NDArray[np.float64] | None
    values: NDArray[np.int64]
    """i64[n, k]: of the attributes of PARTITION BY, then of those that aggregates are of, the ids of the terms; 0 where
    an event lacks one."""
    fault: NDArray[np.int64] | None = None
    """What is wrong with each as a tuple event (term_marks.py), 0: nothing; None: nothing is with any. Events that wait
    have none."""

    def __len__(self) -> int:
        return len(self.time)

    def take(self, index: NDArray[np.int64] | slice) -> Marks:
        """Some of the events."""
        attribute = None if self.attribute is None else self.attribute[index]
        return Marks(self.symbol[index], self.time[index], attribute, self.values[index])

    def slice(self, start: int, stop: int) -> Marks:
        """The events start, ..., stop - 1."""
        return self.take(np.s_[start:stop])

    def save(self, terms: SavedTerms) -> State:
        """As a saved state."""
        named = {name: getattr(self, name) for name in ("symbol", "time", "attribute")}
        return {**named, "values": terms.ids(self.values)}

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> Marks:
        """The same marks, copied."""
        symbol, time, attribute = (state[name] for name in ("symbol", "time", "attribute"))
        values = terms.ids(state["values"]).astype(np.int64)
        return cls(symbol.copy(), time.copy(), None if attribute is None else attribute.copy(), values)

    @classmethod
    def concat(cls, parts: Collection[Marks]) -> Marks:
        """One after the other, one part at least."""
        if len(parts) == 1:
            return next(iter(parts))
        attributes = [p.attribute for p in parts if p.attribute is not None]
        return cls(
            np.concatenate([p.symbol for p in parts]),
            np.concatenate([p.time for p in parts]),
            np.concatenate(attributes) if attributes else None,
            np.concatenate([p.values for p in parts]),
        )


@dataclass(frozen=True, slots=True)
class MarkedEvents:
    """n events in merged order, each at a position of its own (consecutive, continuing from the batch before)."""

    symbol: NDArray[np.uint64]
    """u64[n, words]: which atoms each satisfies; words = ceil(len(plan.letters) / 64), at least 1."""
    time: NDArray[np.int64]
    """i64[n]: µs, not falling."""
    partition: NDArray[np.int64]
    """i64[n]: number of its partition (`begin_partitions`; 0 without PARTITION BY); -1: in none."""
    attribute: NDArray[np.float64] | None = None
    """f64[n]: value of the window's attribute (NaN: none), for `WITHIN n [attr]` only; None otherwise."""

    event: NDArray[np.int64] | None = None
    """i64[n]: which event of the batch each is, where it is one for each query that reads it; None: each is one."""
    batch: tuple[int, int] | None = None
    """How many events the batch has then, and the time of the last one."""

    def __len__(self) -> int:
        return len(self.time)


def kind_of(query: CeqlQuery) -> tuple[int, int]:
    """The kernel's kind of window and its size: events, or microseconds."""
    match query.window:
        case None:
            return k.UNBOUNDED, 0
        case AttributeWindow():
            return k.BY_ATTRIBUTE, 0
        case Window(size, events):
            return (k.BY_EVENTS if events else k.BY_TIME), size


def room_for_few(words: int, kind: int, size: float) -> k.Few:
    """For FEW events with symbols of so many words, in a kind of window; of an attribute it is of `size`."""
    scratch = np.zeros(1, np.float64)
    few = k.Few.allocate(events=FEW, words=words, attributes=FEW if kind == k.BY_ATTRIBUTE else 0)
    sizes, window = np.array([size, np.spacing(size) / 2]), np.array([kind], np.int64)
    return few._replace(event=np.arange(FEW), kind=window, size=sizes, double=scratch, word=scratch.view(np.int64))


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
        self._kind, _ = kind_of(query)
        window = query.window
        size = float(window.size.value) if isinstance(window, AttributeWindow) else 0.0
        self.few = room_for_few(words, self._kind, size)
        self._few = Pointers(self.few)
        self.placed_few = cast(Pointers[k.Events], self._few)  # it begins as one

    def place(self, events: MarkedEvents) -> Pointers[k.Events]:
        """A batch, until the next one is placed."""
        symbol, partition, time = plain(events.symbol, _U64), plain(events.partition, _I64), plain(events.time, _I64)
        attribute, event = events.attribute, events.event
        count, few = len(partition), self.few
        if count <= FEW:
            few.symbol[:count], few.partition[:count] = symbol, partition
            if event is not None:
                few.event[:count] = event
            if attribute is not None:
                few.attribute[:count] = attribute
            call(kernels.place_few, self._few, time, count)
            return self.placed_few
        if self._kind == k.BY_ATTRIBUTE:
            assert attribute is not None
            clocks, cuts = attribute_clocks(self._few, plain(attribute, _F64))
        else:
            clocks = cuts = time
        return Pointers(k.Events(symbol, partition, _numbers(count) if event is None else event, clocks, cuts))
