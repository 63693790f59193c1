"""The matches below finals as weights (weights.py), by visiting what is alive below them; none is listed (answers.md
1.6, tier D).

A node remembers the weight of the prefixes that it stands for, and the oldest start among them: as long as that is in
the window the weight holds, so usually only new nodes are visited, and those below which something has left the window.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.records import DONE, NEED_LIMBS, NEED_STACK, PLACE_BITS, MatchMemory
from oxiseq.engine.kernels.matches.weights import add, add_held
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

FIRST_ROW, RISES, BY_PLACE, STATES = range(4)
"""Places in `state`: the row of line 0 of `values`; 1: what has left the window never comes back; 1: places of nodes
say what they count with, 0: letters of rows do."""
STANDS, OLDEST, KNOWN = range(3)
"""Columns of `known`: 0: there is no weight, 1: it stands as long as OLDEST is in the window, else 2 more than the end
for which alone it does; the oldest start of its prefixes. How many columns there are."""


class Weighing(Arrays):
    """Weights of nodes and of rows, and where those of finals go."""


state = array(Weighing, "state", np.int64)
form = array(Weighing, "form", np.int64)  # of weights
known = array(Weighing, "known", np.int64, 2)  # i64[nodes, KNOWN]
weights = array(Weighing, "weights", np.uint64, 2)  # u64[nodes, weight]
one = array(Weighing, "one", np.uint64, 2)  # u64[1, weight]: of one match without events
values = array(Weighing, "values", np.int64, 2)  # i64[rows, sums + leasts]
flags = array(Weighing, "flags", np.uint64)  # u64[rows]
letter = array(Weighing, "letter", np.int32)  # i32[rows]
held = array(Weighing, "held", np.uint8, 2)  # u8[letters, sums + leasts]: which values a row counts with
masks = array(Weighing, "masks", np.uint64)  # u64[letters]: the same of flags
finals = array(Weighing, "finals", np.int64)  # i64[n]: nodes ...
cut = array(Weighing, "cut", np.int64)  # i64[n]: ... without what starts before it,
at = array(Weighing, "at", np.int64)  # i64[n]: ... the end, by a number of its own,
line = array(Weighing, "line", np.int64)  # i64[n]: ... and the line of `out` that each adds to
out = array(Weighing, "out", np.uint64, 2)  # u64[m, weight]
stack = array(Weighing, "stack", np.int64)  # scratch


@kernel
def weigh(S: Ptr[MatchMemory], W: Ptr[Weighing]) -> int:
    """Weigh the finals. DONE, or what is needed, with which it begins again."""
    for i in range(out(W).shape[0]):
        out(W)[i, 0] = u64(0)
    for f in range(finals(W).shape[0]):
        need = _visit(S, W, finals(W)[f], cut(W)[f], at(W)[f] + 2)
        if need != DONE:
            return need
        if not add(form(W), out(W), line(W)[f], 0, weights(W), finals(W)[f], 0):
            return NEED_LIMBS
    return DONE


@inner
def _visit(S: Ptr[MatchMemory], W: Ptr[Weighing], final: int, cut: int, end: int) -> int:
    """Weigh a node and what is alive below it, children first."""
    nodes, waits = v.nodes(S), stack(W)
    waits[0] = final
    top = i64(1)
    while top > 0:
        n = waits[top - 1]
        if _stands(known(W), n, cut, end):
            top -= 1
            continue
        if top + 3 > waits.shape[0]:
            return NEED_STACK
        before = top
        whole, oldest = True, i64(nodes[n].maxs)
        for child in (i64(nodes[n].leaf), i64(nodes[n].left), i64(nodes[n].right)):
            if child < 0:
                continue
            if nodes[child].maxs < cut:
                whole = False
            elif _stands(known(W), child, cut, end):
                whole = whole and known(W)[child, STANDS] == 1
                oldest = min(oldest, known(W)[child, OLDEST])
            else:
                waits[top] = child
                top += 1
        if top > before:
            continue
        if not _weigh_node(S, W, n, cut):
            return NEED_LIMBS
        known(W)[n, OLDEST] = oldest
        known(W)[n, STANDS] = 1 if whole or state(W)[RISES] == 1 else end
        top -= 1
    return DONE


@inner
def _stands(known: Array, n: int, cut: int, end: int) -> bool:
    stands = known[n, STANDS]
    return stands == end or (stands == 1 and known[n, OLDEST] >= cut)


@inner
def _weigh_node(S: Ptr[MatchMemory], W: Ptr[Weighing], n: int, cut: int) -> bool:
    """Of its children that are alive; False: numbers need more limbs."""
    nodes = v.nodes(S)
    left, right, leaf = i64(nodes[n].left), i64(nodes[n].right), i64(nodes[n].leaf)
    weights(W)[n, 0] = u64(0)
    if leaf >= 0:
        for child in (leaf, left, right):
            if child >= 0 and nodes[child].maxs >= cut and not add(form(W), weights(W), n, 0, weights(W), child, 0):
                return False
        return True
    if held(W).shape[1] == 0:  # nothing but matches is counted
        if left < 0:
            return add(form(W), weights(W), n, 0, one(W), 0, 0)
        return add(form(W), weights(W), n, 0, weights(W), left, 0)
    row = (nodes[n].pos >> PLACE_BITS) - state(W)[FIRST_ROW]
    place = nodes[n].pos & ((1 << PLACE_BITS) - 1) if state(W)[BY_PLACE] else i64(letter(W)[row])
    mask = flags(W)[row] & masks(W)[place]
    if left < 0:
        return add_held(form(W), weights(W), n, 0, one(W), 0, 0, mask, values(W), row, held(W), place)
    return add_held(form(W), weights(W), n, 0, weights(W), left, 0, mask, values(W), row, held(W), place)
