"""Complex events one by one, each event with the variables that hold it: those that are emitted, and those of an end
where what a variable holds, or what is computed for a complex event, depends on all of its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.subsets import SILENT
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.frozen import Places
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
