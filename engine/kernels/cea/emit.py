"""The complex events that end at an event, from their nodes into the output buffers.

Order: node by node as the moves found them; below a heap its youngest output first, then its left, then its
right sub-heap. It follows from the partition's events alone. Delay is linear in D (see compact_set.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.cea import views as v
from oxiseq.engine.kernels.cea.records import (
    AT,
    CUT,
    DONE,
    FINALS,
    FOUND,
    LIMIT,
    NEED_STACK,
    OUT_FULL,
    OUT_MATCHES,
    OUT_ROWS,
    PROGRESS,
    STACK,
)
from oxiseq.engine.kernels.compiling.options import inner


@inner
def emit(A: Any, S: Any) -> int:
    """Enumerate the final nodes, no more than LIMIT complex events; resumable when a buffer is full.

    A stack entry is (node, depth): the outputs above `depth` in `path` complete what is found below the node.
    """
    scalars, nodes, stack, path = v.scalars(S), v.nodes(S), v.stack(S), v.path(S)
    cut, limit = scalars[CUT], v.sizes(A)[LIMIT]
    top = scalars[STACK]
    while True:
        if top == 0:
            if scalars[PROGRESS] == scalars[FINALS]:
                break
            final = v.finals(S)[scalars[PROGRESS]]
            scalars[PROGRESS] += 1
            if nodes[final].maxs < cut:
                continue
            stack[0, 0], stack[0, 1] = final, 0
            top = 1
        node, depth = stack[top - 1, 0], stack[top - 1, 1]
        if top + 3 > stack.shape[0] or depth + 1 > path.shape[0]:
            scalars[STACK] = top
            return NEED_STACK
        at = nodes[node]
        leaf = node if at.leaf < 0 else np.int64(at.leaf)
        path[depth] = nodes[leaf].pos
        begins = nodes[leaf].left < 0
        if begins:
            if scalars[FOUND] == limit:
                break
            if not _write(S, depth + 1):
                scalars[STACK] = top
                return OUT_FULL
        top -= 1
        if at.leaf >= 0:
            if at.right >= 0 and nodes[at.right].maxs >= cut:
                stack[top, 0], stack[top, 1] = at.right, depth
                top += 1
            if at.left >= 0 and nodes[at.left].maxs >= cut:
                stack[top, 0], stack[top, 1] = at.left, depth
                top += 1
        if not begins:
            stack[top, 0], stack[top, 1] = nodes[leaf].left, depth + 1
            top += 1
    scalars[STACK] = 0
    return DONE


@inner
def _write(S: Any, length: int) -> bool:
    """Append the match that stands in `path`, last first; False if there is no room."""
    scalars, path, out_rows, out_ends = v.scalars(S), v.path(S), v.out_rows(S), v.out_ends(S)
    rows, matches = scalars[OUT_ROWS], scalars[OUT_MATCHES]
    if rows + length > out_rows.shape[0] or matches + 2 > out_ends.shape[0]:
        return False
    for i in range(length):
        out_rows[rows + i] = path[length - 1 - i]
    scalars[OUT_ROWS] = rows + length
    scalars[OUT_MATCHES] = matches + 1
    out_ends[matches + 1] = rows + length
    v.out_last(S)[matches] = scalars[AT]
    scalars[FOUND] += 1
    return True
