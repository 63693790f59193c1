"""Matches of a *family*: of queries that differ in constants of thresholds, from the most lenient to the strictest.

Query q takes a row if q is below the row's rank, so what it takes the ones before it take, too. A node has the *span*
of the queries for which it holds: [low, high). `high` is the least rank on its path; `low` rises where a row has
consumed the runs of the queries that took it, by `;` (sequence/writing.py). A union has the hull of what it unites, so
a walk reads the span of each output (answers.md 5.2). Memory whose `spans` has no rows is of no family.
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
    NODE_TOP,
    OUT_FULL,
    OUT_MATCHES,
    OUT_ROWS,
    PROGRESS,
    STACK,
    TOO_MANY,
    MatchMemory,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr

EVERYBODY = 1 << 30
"""No query of a family has this number."""


@inner
def span(S: Ptr[MatchMemory], node: int, low: int, high: int) -> None:
    """The output `node` holds for these queries."""
    if v.spans(S).shape[0]:
        v.spans(S)[node, 0], v.spans(S)[node, 1] = low, high


@inner
def span_unions(S: Ptr[MatchMemory], first: int) -> None:
    """The unions from node `first` on, just made, span what is below them, which is older."""
    nodes, spans = v.nodes(S), v.spans(S)
    if spans.shape[0] == 0:
        return
    for n in range(first, v.scalars(S)[NODE_TOP]):
        leaf = nodes[n].leaf
        low, high = spans[leaf, 0], spans[leaf, 1]
        for child in (nodes[n].left, nodes[n].right):
            if child >= 0:
                low, high = min(low, spans[child, 0]), max(high, spans[child, 1])
        spans[n, 0], spans[n, 1] = low, high


@inner
def emit_spans(S: Ptr[MatchMemory]) -> int:
    """Enumerate the final nodes into the output buffers, each match with its span for a mark, in the order of `emit`;
    resumable when a buffer is full. A stack entry is (node, depth, low, high): the span of what is above."""
    scalars, nodes, stack, path = v.scalars(S), v.nodes(S), v.stack(S), v.path(S)
    spans, out_rows, out_ends, out_marks = v.spans(S), v.out_rows(S), v.out_ends(S), v.out_marks(S)
    top = scalars[STACK]
    while True:
        if top == 0:
            if scalars[PROGRESS] == scalars[FINALS]:
                scalars[STACK] = 0
                return DONE
            final = v.finals(S)[scalars[PROGRESS], 0]
            scalars[PROGRESS] += 1
            if nodes[final].maxs < v.finals(S)[scalars[PROGRESS] - 1, 1]:
                continue
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = final, 0, 0, EVERYBODY
            top = 1
        cut = v.finals(S)[scalars[PROGRESS] - 1, 1]
        node, depth, low, high = stack[top - 1, 0], stack[top - 1, 1], stack[top - 1, 2], stack[top - 1, 3]
        if top + 3 > stack.shape[0] or depth + 1 > path.shape[0]:
            scalars[STACK] = top
            return NEED_STACK
        at = nodes[node]
        leaf = node if at.leaf < 0 else i64(at.leaf)
        least, most = max(low, i64(spans[leaf, 0])), min(high, i64(spans[leaf, 1]))
        begins = nodes[leaf].left < 0
        rows, matches = scalars[OUT_ROWS], scalars[OUT_MATCHES]
        if begins and least < most:
            if scalars[EMITTED] == scalars[ALLOWED]:
                scalars[STACK] = top
                return TOO_MANY
            if rows + depth + 1 > out_rows.shape[0] or matches + 2 > out_ends.shape[0]:
                scalars[STACK] = top
                return OUT_FULL
        top -= 1
        if at.leaf >= 0:
            top = _push(S, top, i64(at.right), depth, low, high, cut)
            top = _push(S, top, i64(at.left), depth, low, high, cut)
        if least >= most:
            continue
        path[depth] = nodes[leaf].pos
        if not begins:
            top = _push(S, top, i64(nodes[leaf].left), depth + 1, least, most, cut)
            continue
        for i in range(depth + 1):
            out_rows[rows + i] = path[depth - i]
        scalars[OUT_ROWS] = rows + depth + 1
        scalars[OUT_MATCHES] = matches + 1
        out_ends[matches + 1] = rows + depth + 1
        out_marks[matches, 0], out_marks[matches, 1] = least, most
        scalars[EMITTED] += 1


@inner
def _push(S: Ptr[MatchMemory], top: int, node: int, depth: int, low: int, high: int, cut: int) -> int:
    """Look below `node` later, if it is alive and some query of the span may have something there."""
    if node < 0 or v.nodes(S)[node].maxs < cut:
        return top
    spans = v.spans(S)
    if low >= spans[node, 1] or high <= spans[node, 0]:
        return top
    stack = v.stack(S)
    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = node, depth, low, high
    return top + 1
