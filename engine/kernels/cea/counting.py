"""How many complex events end at an event, by visiting what is alive below its finals (answers.md 1.6, tier D).

A node remembers how many prefixes it represents and the oldest start among them: as long as that is in the window the
number holds, so usually only new nodes are visited, and those below which something has left the window.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.records import AT, BASE, BY_ATTRIBUTE, KIND, LEAST, TELLS_COUNTS, Cache
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.records import (
    DONE,
    EMITTED,
    FINALS,
    NEED_CHOICE,
    NEED_STACK,
    OUT_FULL,
    OUT_MATCHES,
    OUT_ROWS,
    MatchMemory,
)
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

COUNT, OLDEST, STANDS = range(3)
"""Columns of `weights`: prefixes, the oldest start among them, and 0: not known, 1: as long as OLDEST is in the window,
else 2 more than the position of the one event for which it is so."""
COUNTED = 3
"""How many those are."""


@inner
def count_ends(A: Ptr[Cache], S: Ptr[MatchMemory]) -> int:
    """DONE: they are counted, and the number is written, or fewer than LEAST; NEED_CHOICE: the caller reads them as a
    set, or they are too many; or what is needed."""
    scalars, sizes, finals = v.scalars(S), v.sizes(A), v.finals(S)
    total = u64(0)
    for i in range(scalars[FINALS]):
        node, cut = finals[i, 0], finals[i, 1]
        if v.nodes(S)[node].maxs < cut:
            continue
        need = _visit(A, S, node, cut)
        if need != DONE:
            return need
        more = total + v.weights(S)[node, COUNT]
        if more < total or more >> u64(62) != u64(0):
            return NEED_CHOICE
        total = more
    if total != u64(0):
        if i64(total) >= sizes[LEAST]:
            if not sizes[TELLS_COUNTS]:
                return NEED_CHOICE
            if not _tell(S, i64(total)):
                return OUT_FULL
        scalars[EMITTED] = 1
    return DONE


@inner
def _tell(S: Ptr[MatchMemory], count: int) -> bool:
    """Write the number as if it were the one row of a match; False: there is no room."""
    scalars, out_ends = v.scalars(S), v.out_ends(S)
    rows, matches = scalars[OUT_ROWS], scalars[OUT_MATCHES]
    if rows == v.out_rows(S).shape[0] or matches + 2 > out_ends.shape[0]:
        return False
    v.out_rows(S)[rows] = count
    out_ends[matches + 1] = rows + 1
    v.out_marks(S)[matches, 0] = scalars[AT]
    scalars[OUT_ROWS], scalars[OUT_MATCHES] = rows + 1, matches + 1
    return True


@inner
def _visit(A: Ptr[Cache], S: Ptr[MatchMemory], final: int, cut: int) -> int:
    """Fill the columns of a node and of what is alive below it, children first."""
    nodes, weights, stack = v.nodes(S), v.weights(S), v.stack(S)
    event = u64(v.scalars(S)[BASE] + v.scalars(S)[AT] + 2)
    rises = v.sizes(A)[KIND] != BY_ATTRIBUTE  # what has left the window never comes back
    stack[0, 0] = final
    top = i64(1)
    while top > 0:
        n = stack[top - 1, 0]
        if _known(weights, n, cut, event):
            top -= 1
            continue
        if top + 3 > stack.shape[0]:
            return NEED_STACK
        before = top
        whole = True
        for child in (i64(nodes[n].leaf), i64(nodes[n].left), i64(nodes[n].right)):
            if child < 0:
                continue
            if nodes[child].maxs < cut:
                whole = False
            elif not _known(weights, child, cut, event):
                stack[top, 0] = child
                top += 1
        if top > before:
            continue
        count, oldest = u64(0), i64(nodes[n].maxs)
        if nodes[n].leaf < 0 and nodes[n].left < 0:
            count = u64(1)
        for child in (i64(nodes[n].leaf), i64(nodes[n].left), i64(nodes[n].right)):
            if child >= 0 and nodes[child].maxs >= cut:
                more = count + weights[child, COUNT]
                if more < count:
                    return NEED_CHOICE
                count = more
                oldest = min(oldest, i64(weights[child, OLDEST]))
                whole = whole and weights[child, STANDS] == u64(1)
        weights[n, COUNT] = count
        weights[n, OLDEST] = u64(oldest)
        weights[n, STANDS] = u64(1) if rises or whole else event
        top -= 1
    return DONE


@inner
def _known(weights: Array, n: int, cut: int, event: np.uint64) -> bool:
    stands = weights[n, STANDS]
    return stands == event or (stands == u64(1) and i64(weights[n, OLDEST]) >= cut)
