"""The weights of all that is below nodes, where these leave the window together: each new node's is made once, of its
children's, in the order in which nodes were made.

Where prefixes leave one by one a node's weight would not stand; see composed.py, and tier D in answers.md 1.6.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.records import NODE_TOP, PLACE_BITS, MatchMemory
from oxiseq.engine.kernels.matches.weights import add, add_held
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Ptr

KNOWN, FIRST_ROW, STATES = range(3)
"""Places in `state`: nodes before this one have a weight; the row of line 0 of `values`."""


class Weighing(Arrays):
    """Weights of nodes and of rows, and where those of finals go."""


state = array(Weighing, "state", np.int64)
form = array(Weighing, "form", np.int64)  # of weights
weights = array(Weighing, "weights", np.uint64, 2)  # u64[nodes, weight]
one = array(Weighing, "one", np.uint64, 2)  # u64[1, weight]: of one match without events
values = array(Weighing, "values", np.int64, 2)  # i64[rows, sums + leasts]
flags = array(Weighing, "flags", np.uint64)  # u64[rows]
letter = array(Weighing, "letter", np.int32)  # i32[rows]
held = array(Weighing, "held", np.uint8, 2)  # u8[letters, sums + leasts]: which values a row of a letter counts with
masks = array(Weighing, "masks", np.uint64)  # u64[letters]: the same of flags
finals = array(Weighing, "finals", np.int64)  # i64[n]: nodes ...
line = array(Weighing, "line", np.int64)  # i64[n]: ... and the line of `out` that each adds to
out = array(Weighing, "out", np.uint64, 2)  # u64[m, weight]


@kernel
def weigh(S: Ptr[MatchMemory], W: Ptr[Weighing]) -> bool:
    """Weigh the nodes that have no weight, then the finals; False: numbers need more limbs, with which it goes on."""
    top = v.scalars(S)[NODE_TOP]
    for n in range(state(W)[KNOWN], top):
        state(W)[KNOWN] = n
        weights(W)[n, 0] = u64(0)
        if not _weigh_node(S, W, n):
            return False
    state(W)[KNOWN] = top
    for i in range(out(W).shape[0]):
        out(W)[i, 0] = u64(0)
    for f in range(finals(W).shape[0]):  # noqa: SIM110  kernels have no generators
        if not add(form(W), out(W), line(W)[f], 0, weights(W), finals(W)[f], 0):
            return False
    return True


@inner
def _weigh_node(S: Ptr[MatchMemory], W: Ptr[Weighing], n: int) -> bool:
    node = v.nodes(S)[n]
    left, right, leaf = i64(node.left), i64(node.right), i64(node.leaf)
    if leaf >= 0:
        fits = add(form(W), weights(W), n, 0, weights(W), leaf, 0)
        if left >= 0:
            fits = add(form(W), weights(W), n, 0, weights(W), left, 0) and fits
        if right >= 0:
            fits = add(form(W), weights(W), n, 0, weights(W), right, 0) and fits
        return fits
    row = (node.pos >> PLACE_BITS) - state(W)[FIRST_ROW]
    if row < 0:
        return True  # its window has closed: nothing more is added to it
    place = i64(letter(W)[row])
    mask = flags(W)[row] & masks(W)[place]
    if left < 0:
        return add_held(form(W), weights(W), n, 0, one(W), 0, 0, mask, values(W), row, held(W), place)
    return add_held(form(W), weights(W), n, 0, weights(W), left, 0, mask, values(W), row, held(W), place)
