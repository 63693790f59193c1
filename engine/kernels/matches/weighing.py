"""The weights of all that is below nodes, where these leave the window together: each new node's is made once, of its
children's, in the order in which nodes were made.

Where prefixes leave one by one a node's weight would not stand; see composed.py, and tier D in answers.md 1.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.records import NODE_TOP, PLACE_BITS, MatchMemory
from oxiseq.engine.kernels.matches.weights import add, add_held
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr, view_of

KNOWN, FIRST_ROW, STATES = range(3)
"""Places in `state`: nodes before this one have a weight; the row of line 0 of `values`."""


class Weighing(NamedTuple):
    """Weights of nodes and of rows, and where those of finals go."""

    state: Array  # i64
    form: Array  # i64: of weights
    weights: Array  # u64[nodes, weight]
    one: Array  # u64[1, weight]: of one match without events
    values: Array  # i64[rows, sums + leasts]
    flags: Array  # u64[rows]
    letter: Array  # i32[rows]
    held: Array  # u8[letters, sums + leasts]: which values a row of a letter counts with
    masks: Array  # u64[letters]: the same of flags
    finals: Array  # i64[n]: nodes ...
    line: Array  # i64[n]: ... and the line of `out` that each adds to
    out: Array  # u64[m, weight]


state = view_of(Weighing, "state", np.int64)
form = view_of(Weighing, "form", np.int64)
weights = view_of(Weighing, "weights", np.uint64, 2)
one = view_of(Weighing, "one", np.uint64, 2)
values = view_of(Weighing, "values", np.int64, 2)
flags = view_of(Weighing, "flags", np.uint64)
letter = view_of(Weighing, "letter", np.int32)
held = view_of(Weighing, "held", np.uint8, 2)
masks = view_of(Weighing, "masks", np.uint64)
finals = view_of(Weighing, "finals", np.int64)
line = view_of(Weighing, "line", np.int64)
out = view_of(Weighing, "out", np.uint64, 2)


@kernel
def weigh(S: Ptr[MatchMemory], W: Ptr[Weighing]) -> bool:
    """Weigh the nodes that have no weight, then the finals; False: numbers need more limbs, with which it goes on."""
    top = v.scalars(S)[NODE_TOP]
    for n in range(state(W)[KNOWN], top):
        state(W)[KNOWN] = n
        weights(W)[n, 0] = np.uint64(0)
        if not _weigh_node(S, W, n):
            return False
    state(W)[KNOWN] = top
    for i in range(out(W).shape[0]):
        out(W)[i, 0] = np.uint64(0)
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
