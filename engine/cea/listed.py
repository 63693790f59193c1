"""Complex events one by one, each event with the variables that hold it: those that are emitted, and those of an end
where what a variable holds, or what is computed for a complex event, depends on all of its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.subsets import SILENT
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.frozen import Places
from oxiseq.grammar.ceql_algebra import summed_attributes
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]
MOST_LISTED: Final = 100_000
"""So many of one end at most."""
PLACE: Final = (1 << PLACE_BITS) - 1
"""The bits of a row that hold its place."""


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """m complex events, in order of end; of one end in an order that the events of its partition fix.

    Complex event i: `start[i]`, `end[i]` (positions); its D, ascending, is `positions[offsets[i]:offsets[i + 1]]`;
    beside each position the plan's variables that hold it, `held`, u64[len(positions), words of variables].
    """

    start: I64
    end: I64
    positions: I64
    offsets: I64
    held: NDArray[np.uint64]
    of: I64
    """i64[m]: at which of the batch's rows each ends."""

    def __len__(self) -> int:
        return len(self.start)


def events_of(found: Found, end: I64, holders: Holders) -> FoundEvents:
    """Those that a kernel has written, of which number i ends at the position `end[i]`."""
    start = (found.rows >> PLACE_BITS)[found.ends[:-1]]
    if holders.silent:
        found = found.only(found.rows & PLACE != SILENT)
    positions = found.rows >> PLACE_BITS
    held = holders.held(found.rows & PLACE, positions, found.ends, start, end)
    return FoundEvents(start, end, positions, found.ends, held, found.marks[:, 0])


def one_by_one(each: Sequence[Places], holders: Holders, at: int) -> FoundEvents:
    """Complex events, one at least, that end at position `at`."""
    return events_of(Found.of(each), np.full(len(each), at), holders)


class HeldEvents:
    """Events at `positions` that variables hold (matches/events.py)."""

    def __init__(self, reader: EventReader, of: NDArray[np.intp], positions: I64, held: NDArray[np.uint64]) -> None:
        self._reader, self._positions, self._held, self.of = reader, positions, held, of

    def has(self, gpm: str) -> NDArray[np.bool_]:
        number = self._reader.variables.index(gpm)
        found: NDArray[np.bool_] = self._held[:, number >> 6] & np.uint64(1 << (number & 63)) != 0
        return found

    def ids(self, variable: Variable, which: NDArray[Any]) -> I64:
        return self._reader.values(self._positions[which])[:, self._reader.attributes.index(variable)]

    @property
    def age(self) -> NDArray[np.float64]:
        return self._positions.astype(np.float64) + 1


class EventReader:
    """Reads the events of one query's complex events. `values`: of events by position the ids of the terms of
    `attributes`, i64[n, attributes]."""

    def __init__(self, plan: CeaPlan, values: Callable[[I64], I64]) -> None:
        self.variables, self.attributes = plan.runner.variables, summed_attributes(plan.query)
        self.values = values

    def at(self, places: I64, holders: Holders) -> HeldEvents:
        """Those at some places, where the automaton's step decides which variables hold them."""
        distinct, of = np.unique(places, return_inverse=True)
        return HeldEvents(self, of, distinct >> PLACE_BITS, holders.masks[distinct & PLACE])

    def listed(self, found: FoundEvents) -> HeldEvents:
        """Those of complex events one by one."""
        return HeldEvents(self, np.arange(len(found.positions)), found.positions, found.held)
