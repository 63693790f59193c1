"""The compact set's layout, and the memory, scalars and needs that every runner of sequences begins with."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import WHOLE, Arrays, array

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


SPINE = 128
"""More than the right spine of any leftist heap that fits into memory; also the spare nodes of one meld."""


class MatchMemory(Arrays):
    """The first arrays of a runner's memory: a kernel that takes it may be called with any runner's."""


scalars = array(MatchMemory, "scalars", np.int64, rows="scalars", used=WHOLE)
nodes = array(MatchMemory, "nodes", NODE, rows="nodes", used=NODE_TOP)
weights = array(MatchMemory, "weights", np.uint64, 2, rows="nodes", columns="limbs", used=NODE_TOP)
"""Matches below a node (counting.py); no columns: nothing is counted."""
finals = array(MatchMemory, "finals", np.int64, 2, rows="finals", columns=3)  # node, cut-off, query
stack = array(MatchMemory, "stack", np.int64, 2, rows="stack", columns=2)  # node, depth
path = array(MatchMemory, "path", np.int64, rows="stack")
quotas = array(MatchMemory, "quotas", np.int64, rows="queries")
"""By query how many more matches of the instant in work are emitted."""
out_rows = array(MatchMemory, "out_rows", np.int64, rows="out")
out_ends = array(MatchMemory, "out_ends", np.int64, rows="out")
out_marks = array(MatchMemory, "out_marks", np.int64, 2, rows="out", columns=3)
"""The runner's mark of the instant, the cut-off of the match's final, and whose match it is."""
spine = array(MatchMemory, "spine", np.int64, rows=SPINE)  # right spine of a meld
