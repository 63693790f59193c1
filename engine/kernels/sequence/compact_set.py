"""The compact set (CORE's tECS): all prefixes of a group in one node, shared and never changed.

A node is an output (a row, and the prefixes it extends) or a persistent leftist heap of outputs ordered by
largest start clock. Prefixes leave a window in order of start, so a walk that stops at the first dead root
visits nothing in vain: enumeration is output-linear (engine.md, section 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.sequence import views as v
from oxiseq.engine.kernels.sequence.records import (
    AGED_TOP,
    DONE,
    EMITTED,
    ENTRY_TOP,
    FINALS,
    GROUP_TOP,
    NEED_STACK,
    NODE_TOP,
    OUT_FULL,
    OUT_MATCHES,
    OUT_ROWS,
    PENDING,
    PLACE_BITS,
    PROGRESS,
    STACK,
    WAVE,
)

SPINE = 128
"""More than the right spine of any leftist heap that fits into memory; also the spare nodes of one meld."""


@inner
def output(nodes: Any, scalars: Any, left: int, pos: int, maxs: int) -> int:
    """A new output node: row `pos` after the prefixes `left` (-1: it starts a match)."""
    top = scalars[NODE_TOP]
    scalars[NODE_TOP] = top + 1
    node = nodes[top]
    node.pos = pos
    node.maxs = maxs
    node.left = left
    node.right = -1
    node.leaf = -1
    node.rank = 1
    return top


@inner
def _heap(nodes: Any, scalars: Any, leaf: int, left: int, right: int) -> int:
    """A new heap node; the sub-heap with the longer right spine goes left."""
    left_rank = nodes[left].rank if left >= 0 else 0
    right_rank = nodes[right].rank if right >= 0 else 0
    if left_rank < right_rank:
        left, right = right, left
        left_rank, right_rank = right_rank, left_rank
    top = scalars[NODE_TOP]
    scalars[NODE_TOP] = top + 1
    node = nodes[top]
    node.pos = -1
    node.maxs = nodes[leaf].maxs
    node.left = left
    node.right = right
    node.leaf = leaf
    node.rank = right_rank + 1
    return top


@inner
def meld(nodes: Any, scalars: Any, spine: Any, a: int, b: int, tau: int) -> int:
    """The union of two heaps (-1: empty) without what starts before `tau`; O(log) new nodes.

    The usual case, one newer output joining an old heap, makes one node.
    """
    if a >= 0 and nodes[a].maxs < tau:
        a = -1
    if b >= 0 and nodes[b].maxs < tau:
        b = -1
    depth = 0
    while a >= 0 and b >= 0:
        if nodes[a].maxs < nodes[b].maxs:
            a, b = b, a
        spine[depth] = a
        depth += 1
        a = nodes[a].right if nodes[a].leaf >= 0 else -1
        if a >= 0 and nodes[a].maxs < tau:
            a = -1
    rest = a if a >= 0 else b
    while depth > 0:
        depth -= 1
        root = spine[depth]
        if nodes[root].leaf < 0:
            rest = _heap(nodes, scalars, root, rest, -1)
        else:
            left = np.int64(nodes[root].left)
            if left >= 0 and nodes[left].maxs < tau:
                left = np.int64(-1)
            rest = _heap(nodes, scalars, nodes[root].leaf, left, rest)
    return rest


@inner
def emit(S: Any, limit: int) -> int:
    """Enumerate the final nodes into the output buffers; resumable when a buffer is full.

    The walk ends at the `limit`th match: the rest is not looked at. A stack entry is (node, depth): the rows above
    `depth` in `path` complete what is found below the node.
    """
    scalars, nodes, stack, path = v.scalars(S), v.nodes(S), v.stack(S), v.path(S)
    out_rows, out_ends, out_waves = v.out_rows(S), v.out_ends(S), v.out_waves(S)
    top = scalars[STACK]
    while True:
        if top == 0:
            if scalars[PROGRESS] == scalars[FINALS]:
                scalars[STACK] = 0
                return DONE
            stack[0, 0] = v.finals(S)[scalars[PROGRESS], 0]
            stack[0, 1] = 0
            top = 1
            scalars[PROGRESS] += 1
        cut = v.finals(S)[scalars[PROGRESS] - 1, 1]
        node, depth = stack[top - 1, 0], stack[top - 1, 1]
        if top + 3 > stack.shape[0] or depth + 1 > path.shape[0]:
            scalars[STACK] = top
            return NEED_STACK
        at = nodes[node]
        leaf = node if at.leaf < 0 else np.int64(at.leaf)
        ends_here = nodes[leaf].left < 0
        if ends_here:
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
        if not ends_here:
            stack[top, 0], stack[top, 1] = nodes[leaf].left, depth + 1
            top += 1
        else:
            for i in range(depth + 1):
                out_rows[rows + i] = path[depth - i]
            scalars[OUT_ROWS] = rows + depth + 1
            scalars[OUT_MATCHES] = matches + 1
            out_ends[matches + 1] = rows + depth + 1
            out_waves[matches, 0] = scalars[WAVE]
            out_waves[matches, 1] = cut if scalars[WAVE] & 1 else 0
            scalars[EMITTED] += 1
            if scalars[EMITTED] == limit:
                scalars[STACK] = 0
                return DONE


@inner
def _mark(marks: Any, node: int) -> None:
    if node >= 0:
        marks[node] = 1


@kernel
def collect(S: Any, marks: Any, tau: int) -> int:
    """Mark what is still reachable and alive and slide it down; the smallest row id still referred to.

    `marks` is i32[nodes]; children are older than their parents, so one pass back and one forward suffice.
    Must not run while matches are being enumerated.
    """
    scalars, nodes, groups = v.scalars(S), v.nodes(S), v.groups(S)
    top = scalars[NODE_TOP]
    marks[:top] = 0
    mark_roots_of_instant(S, marks)
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge < 0:
            continue
        if groups[g].maxs < tau:
            groups[g].node = -1
        _mark(marks, groups[g].node)
    for x in range(scalars[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group >= 0:
            if entry.node >= 0 and nodes[entry.node].maxs < tau:
                entry.node = -1
            if entry.union >= 0 and nodes[entry.union].maxs < tau:
                entry.union = -1
            _mark(marks, entry.node)
            _mark(marks, entry.union)
    for i in range(top - 1, -1, -1):
        if marks[i]:
            node = nodes[i]
            _mark(marks, node.leaf)
            if node.left >= 0 and nodes[node.left].maxs >= tau:
                marks[node.left] = 1
            if node.right >= 0 and nodes[node.right].maxs >= tau:
                marks[node.right] = 1
    return move_marked(S, marks)


@inner
def mark_roots_of_instant(S: Any, marks: Any) -> None:
    """Nodes that the instant being worked on holds, and `,` waits."""
    scalars = v.scalars(S)
    for i in range(scalars[PENDING]):
        marks[v.pending(S)[i, 1]] = 1
    for i in range(scalars[FINALS]):
        marks[v.finals(S)[i, 0]] = 1
    for i in range(scalars[ENTRY_TOP]):
        marks[v.entries(S)[i].node] = 1


@inner
def move_marked(S: Any, marks: Any) -> int:
    """Slide marked nodes together, wherever they are named; the smallest row id still referred to. Dead groups have
    no node by now."""
    scalars, nodes, groups = v.scalars(S), v.nodes(S), v.groups(S)
    oldest = slide(nodes, scalars, marks, scalars[NODE_TOP])
    for g in range(scalars[GROUP_TOP]):
        if groups[g].edge >= 0 and groups[g].node >= 0:
            groups[g].node = marks[groups[g].node]
    for x in range(scalars[AGED_TOP]):
        entry = v.aged(S)[x]
        if entry.group >= 0:
            entry.node = marks[entry.node] if entry.node >= 0 else -1
            entry.union = marks[entry.union] if entry.union >= 0 else -1
    for i in range(scalars[PENDING]):
        v.pending(S)[i, 1] = marks[v.pending(S)[i, 1]]
    for i in range(scalars[FINALS]):
        v.finals(S)[i, 0] = marks[v.finals(S)[i, 0]]
    for i in range(scalars[ENTRY_TOP]):
        v.entries(S)[i].node = marks[v.entries(S)[i].node]
    return oldest


@inner
def slide(nodes: Any, scalars: Any, marks: Any, top: int) -> int:
    """Move marked nodes together; `marks` becomes the old → new index."""
    oldest = np.int64(1) << np.int64(62)
    to = 0
    for i in range(top):
        if not marks[i]:
            marks[i] = -1
            continue
        node = nodes[i]
        moved = nodes[to]
        left, right, leaf = node.left, node.right, node.leaf
        moved.pos = node.pos
        moved.maxs = node.maxs
        moved.rank = node.rank
        moved.left = marks[left] if left >= 0 else -1  # -1 for a dead child: it is never read again
        moved.right = marks[right] if right >= 0 else -1
        moved.leaf = marks[leaf] if leaf >= 0 else -1
        if leaf < 0 and node.pos >> PLACE_BITS < oldest:
            oldest = node.pos >> PLACE_BITS
        marks[i] = to
        to += 1
    scalars[NODE_TOP] = to
    return oldest
