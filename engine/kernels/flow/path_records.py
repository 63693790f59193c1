"""Record layouts and numbered scalars of paths (operators.md, 5.1).

A vertex is a node within a context, so that paths stay within one. A pair (x, y) is there if edges lead from x to y; it
keeps one *proof*: the vertex before y on a path from x. A proof is x itself, or rests on the pair (x, that vertex),
which was there before; so proofs have no cycles.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for

VERTEX: Final = np.dtype(
    [
        ("tag", "u4"),  # 32 bits of its row's hash
        ("edges", "i4"),  # records of edges that have it at an end
        ("leaving", "i4"),  # the first edge that leaves it
        ("arriving", "i4"),  # the first edge that arrives
        ("ending", "i4"),  # the first pair that ends in it. Of a free one: the next free one
    ],
    align=True,
)
"""A node in a context."""

EDGE: Final = np.dtype(
    [
        ("weight", "i8"),  # it is there while this is above 0
        ("was", "i8"),  # when the tick began; of one that is listed
        ("source", "i4"),
        ("target", "i4"),
        ("leaving", "i4"),  # the next and the previous one that leave `source`, of those that are there
        ("left", "i4"),
        ("arriving", "i4"),  # ... that arrive in `target`
        ("arrived", "i4"),
        ("chain", "i4"),  # the next one that has changed, LAST; UNLISTED. Of a free one: the next free one
        ("tag", "u4"),
    ],
    align=True,
)

PAIR: Final = np.dtype(
    [
        ("source", "i4"),
        ("target", "i4"),
        ("proof", "i4"),  # the vertex before `target`
        ("ending", "i4"),  # the next and the previous pair that end in `target`
        ("ended", "i4"),
        ("chain", "i4"),  # the next one that has changed, LAST; UNLISTED. Of a free one: the next free one
        ("work", "i4"),  # the next one that is to be looked at
        ("state", "i4"),
    ],
    align=True,
)
"""Two vertices that edges connect."""

THERE, TOLD, SUSPECT = 1, 2, 4
"""States, added up. A free one has none."""
NONE, LAST, UNLISTED, START = -1, -1, -2, -2
"""No record; no other one in the list; not in the list; before the first one of a list."""

(
    VERTEX_TOP,  # vertices ever used
    VERTEX_FREE,  # the first free one
    VERTICES,
    EDGE_TOP,
    EDGE_FREE,
    EDGES,
    PAIR_TOP,
    PAIR_FREE,
    PAIRS,
    ROW,  # of the input, that comes next
    TICK,
    OPEN,  # whether a row of the tick has been taken
    PHASE,
    CHANGED_EDGES,  # the first
    CHANGED_PAIRS,  # the first, the last
    LAST_CHANGED,
    WORK,  # the first pair that is to be looked at, the last
    LAST_WORK,
    EDGE_AT,  # whose pairs are being made, or by which one is being extended
    PAIR_AT,
    SILENT,  # whether it emits nothing
    SUSPECTS,  # ever
    BROKEN,  # suspects that were deleted, ever
    SCALARS,
) = range(24)

TAKE, SEED, SPREAD, TELL = range(4)
"""Phases of a tick."""


class PathMemory(Arrays):
    """What `S` points to."""


scalars = array(PathMemory, "scalars", np.int64, rows=SCALARS)
vertices = array(PathMemory, "vertices", VERTEX, rows="vertices")
rows = array(PathMemory, "rows", np.uint32, 2, rows="vertices", columns="width")  # term ids
vertex_slots = array(PathMemory, "vertex_slots", SLOT, rows="vertices", slots=slots_for)
edges = array(PathMemory, "edges", EDGE, rows="edges")
edge_slots = array(PathMemory, "edge_slots", SLOT, rows="edges", slots=slots_for)
pairs = array(PathMemory, "pairs", PAIR, rows="pairs")
pair_slots = array(PathMemory, "pair_slots", SLOT, rows="pairs", slots=slots_for)
