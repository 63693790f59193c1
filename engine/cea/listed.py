"""Complex events of one end one by one, each event with the variables that hold it: where what a variable holds, or
what is computed for a complex event, depends on all of its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.subsets import SILENT
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.frozen import Places

MOST_LISTED: Final = 100_000
"""So many of one end at most."""
PLACE: Final = (1 << PLACE_BITS) - 1
"""The bits of a row that hold its place."""


class Listed(NamedTuple):
    """Number i: the positions of its events, position[offsets[i]:offsets[i + 1]], ascending, and the variables that
    hold each, u64[., words]."""

    position: NDArray[np.int64]
    held: NDArray[np.uint64]
    offsets: NDArray[np.int64]


def one_by_one(each: Sequence[Places], holders: Holders, at: int) -> Listed:
    """Complex events, one at least, that end at position `at`."""
    found = Found.of(each)
    start = (found.rows >> PLACE_BITS)[found.ends[:-1]]
    found = found.only(found.rows & PLACE != SILENT)
    positions = found.rows >> PLACE_BITS
    held = holders.held(found.rows & PLACE, positions, found.ends, start, np.full(len(each), at))
    return Listed(positions, held, found.ends)
