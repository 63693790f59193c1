"""The compact set's layout, and the memory, scalars and needs that every runner of sequences begins with."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from oxiseq.engine.kernels.memory.pointers import Array

NODE = np.dtype(
    [
        ("pos", "i8"),  # output: row id << PLACE_BITS | place
        ("maxs", "i8"),  # largest start clock below it
        ("left", "i4"),  # output: the prefixes it extends (-1: none); heap: left sub-heap
        ("right", "i4"),  # heap: right sub-heap
        ("leaf", "i4"),  # heap: its output node; -1 marks an output node
        ("rank", "i4"),  # heap: length of the right spine
    ],
    align=True,
)
"""The compact set: output nodes, and persistent leftist heaps of them by largest start."""

NOTHING, EVERYTHING, THE_PARTITION = range(3)
"""CONSUME BY: what an instant with matches makes forgotten."""
PLACE_BITS = 13
"""An output names its row and its *place*: the position that the row took and whether a repeat began again there.
Which variables a match shows is resolved from this path."""

(
    NODE_TOP,  # nodes in use
    NODE_BASE,  # nodes in use when the instant began, or before the strategy made its own
    FINALS,
    PROGRESS,  # within the phase; finals enumerated
    STACK,
    EMITTED,  # matches of the instant that have been enumerated
    UNCOUNTED,  # so many may be before it is known how many there are
    ALLOWED,  # so many may be now
    OMITTED,  # instants left out since the last one that was answered
    CHOSEN,  # 1: the strategy has chosen among the finals
    OUT_ROWS,
    OUT_MATCHES,
    CARRIED,  # 1: a sum of weights needs more limbs
    SATURATES,  # 1: there are no more; what does not fit is too many
    MATCH_SCALARS,  # a runner's own scalars begin here
) = range(15)

(
    DONE,
    NEED_NODES,
    NEED_STACK,
    NEED_CHOICE,
    OUT_FULL,
    NEED_LIMBS,
    TOO_MANY,  # more matches end at the instant than ALLOWED
    MATCH_NEEDS,  # a runner's own needs begin here
) = range(8)
"""Why a kernel returned."""

NO_LIMIT = 1 << 62
"""Matches of an instant that are emitted where there is no LIMIT."""


class MatchMemory(NamedTuple):
    """The first arrays of a runner's memory: a kernel that takes it may be called with any runner's."""

    scalars: Array
    nodes: Array
    weights: Array  # u64[nodes, limbs]: matches below a node (counting.py), of a family u64[nodes * queries, limbs]; no
    # columns: nothing is counted
    spans: Array  # i32[nodes, 2]: for which queries of a family a node holds (families.py); no rows: there is none
    finals: Array  # i64[n, 2]: node, cut-off
    stack: Array  # i64[n, 2]: node, depth; of a family i64[n, 4]: and a span
    path: Array
    out_rows: Array
    out_ends: Array
    out_marks: Array  # i64[n, 2]: the runner's mark of the instant, and the cut-off of the match's final; or its span
    spine: Array  # i64: right spine of a meld


class HasMatches(Protocol):
    """The memory of any runner: it begins as `MatchMemory` does."""

    @property
    def out_marks(self) -> Array: ...


def begins_with_matches(fields: tuple[str, ...]) -> bool:
    """Whether a runner's memory begins as `MatchMemory` does."""
    return fields[: len(MatchMemory._fields)] == MatchMemory._fields
