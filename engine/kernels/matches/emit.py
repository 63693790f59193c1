"""The matches that end at an instant, from their nodes into the output buffers.

Order: final by final as they were found; below a heap its youngest output first, then its left, then its right
sub-heap. It follows from the history of this memory alone; where that may be other queries', too, the matches are put
in order behind it (ordering.py). The delay is linear in a match's length (nodes.py).
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.records import (
    ALLOWED,
    DONE,
    EMITTED,
    FINALS,
    NEED_STACK,
    OMITTED,
    OUT_FULL,
    OUT_MATCHES,
    OUT_ROWS,
    PROGRESS,
    STACK,
    TOO_MANY,
    UNCOUNTED,
    MatchMemory,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr


@inner
def begin_emission(S: Ptr[MatchMemory]) -> None:
    """Nothing of the instant has been emitted yet, and nobody has counted what ends there. The caller sets `quotas`."""
    scalars = v.scalars(S)
    scalars[EMITTED] = 0
    scalars[ALLOWED] = scalars[UNCOUNTED]


@inner
def end_emission(S: Ptr[MatchMemory]) -> None:
    """The instant has been answered, if something has been emitted: those left out before it do not count any more."""
    scalars = v.scalars(S)
    scalars[FINALS] = 0
    if scalars[EMITTED] > 0:
        scalars[OMITTED] = 0


@inner
def note(S: Ptr[MatchMemory], mark: int) -> int:
    """Write the node of each final as if it were the one row of a match; resumable when a buffer is full. Each carries
    `mark`."""
    scalars, finals = v.scalars(S), v.finals(S)
    while scalars[PROGRESS] < scalars[FINALS]:
        node, cut = finals[scalars[PROGRESS], 0], finals[scalars[PROGRESS], 1]
        if v.nodes(S)[node].maxs >= cut:
            rows, matches = scalars[OUT_ROWS], scalars[OUT_MATCHES]
            if rows == v.out_rows(S).shape[0] or matches + 2 > v.out_ends(S).shape[0]:
                return OUT_FULL
            v.out_rows(S)[rows] = node
            v.out_ends(S)[matches + 1] = rows + 1
            v.out_marks(S)[matches, 0], v.out_marks(S)[matches, 1] = mark, cut
            scalars[OUT_ROWS], scalars[OUT_MATCHES], scalars[EMITTED] = rows + 1, matches + 1, 1
        scalars[PROGRESS] += 1
    return DONE


@inner
def emit(S: Ptr[MatchMemory], mark: int) -> int:
    """Enumerate the final nodes into the output buffers; resumable when a buffer is full.

    The walk of a query's finals ends where its quota does: the rest is not looked at. Each match carries `mark`. A
    stack entry is (node, depth): the rows above `depth` in `path` complete what is found below the node.
    """
    scalars, nodes, stack, path = v.scalars(S), v.nodes(S), v.stack(S), v.path(S)
    out_rows, out_ends, out_marks, quotas = v.out_rows(S), v.out_ends(S), v.out_marks(S), v.quotas(S)
    top = scalars[STACK]
    while True:
        if top == 0:
            if scalars[PROGRESS] == scalars[FINALS]:
                scalars[STACK] = 0
                return DONE
            final, query = v.finals(S)[scalars[PROGRESS], 0], v.finals(S)[scalars[PROGRESS], 2]
            scalars[PROGRESS] += 1
            if nodes[final].maxs < v.finals(S)[scalars[PROGRESS] - 1, 1] or quotas[query] == 0:
                continue
            stack[0, 0], stack[0, 1] = final, 0
            top = 1
        cut = v.finals(S)[scalars[PROGRESS] - 1, 1]
        node, depth = stack[top - 1, 0], stack[top - 1, 1]
        if top + 3 > stack.shape[0] or depth + 1 > path.shape[0]:
            scalars[STACK] = top
            return NEED_STACK
        at = nodes[node]
        leaf = node if at.leaf < 0 else i64(at.leaf)
        begins = nodes[leaf].left < 0
        if begins:
            if scalars[EMITTED] == scalars[ALLOWED]:
                scalars[STACK] = top
                return TOO_MANY
            rows, matches = scalars[OUT_ROWS], scalars[OUT_MATCHES]
            if rows + depth + 1 > out_rows.shape[0] or matches + 2 > out_ends.shape[0]:
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
        path[depth] = nodes[leaf].pos
        if not begins:
            stack[top, 0], stack[top, 1] = nodes[leaf].left, depth + 1
            top += 1
        else:
            for i in range(depth + 1):
                out_rows[rows + i] = path[depth - i]
            scalars[OUT_ROWS] = rows + depth + 1
            scalars[OUT_MATCHES] = matches + 1
            out_ends[matches + 1] = rows + depth + 1
            out_marks[matches, 0] = mark
            out_marks[matches, 1] = cut
            query = v.finals(S)[scalars[PROGRESS] - 1, 2]
            out_marks[matches, 2] = query
            scalars[EMITTED] += 1
            quotas[query] -= 1
            if quotas[query] == 0:
                top = 0
