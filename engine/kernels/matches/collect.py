"""Reclamation of the compact set: nodes that are reachable and alive slide down, the others go.

A runner names the *owners* of its roots, partitions for instance, and for each the floor before which nothing of it
matters. It marks its roots (`root`), lets the marks reach what lies below (`reach`), slides (`slide`) and names its
roots anew. `marks` is i32[nodes], 0 to begin with: owner + 1, and after `slide` the old → new index. `floors` is i64
by owner; of several owners the one with the least floor counts.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.records import NODE_TOP, PLACE_BITS, MatchMemory
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


@inner
def root(marks: Array, floors: Array, node: int, owner: int) -> None:
    """`owner` holds `node`."""
    mark = marks[node]
    if mark == 0 or floors[owner] < floors[mark - 1]:
        marks[node] = owner + 1


@inner
def reach(S: Ptr[MatchMemory], marks: Array, floors: Array) -> None:
    """What is alive below held nodes is held: children are older than their parents, so one pass back suffices."""
    nodes = v.nodes(S)
    for i in range(v.scalars(S)[NODE_TOP] - 1, -1, -1):
        mark = marks[i]
        if mark == 0:
            continue
        owner, floor = i64(mark - 1), floors[mark - 1]
        leaf, left, right = i64(nodes[i].leaf), i64(nodes[i].left), i64(nodes[i].right)
        if leaf >= 0:
            root(marks, floors, leaf, owner)
        if left >= 0 and nodes[left].maxs >= floor:
            root(marks, floors, left, owner)
        if right >= 0 and nodes[right].maxs >= floor:
            root(marks, floors, right, owner)


@inner
def slide(S: Ptr[MatchMemory], marks: Array) -> int:
    """Move held nodes together; `marks` becomes the old → new index. The smallest row id still referred to."""
    scalars, nodes, weights = v.scalars(S), v.nodes(S), v.weights(S)
    oldest = i64(1) << i64(62)
    to = i64(0)
    for i in range(scalars[NODE_TOP]):
        if marks[i] == 0:
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
        for limb in range(weights.shape[1]):
            weights[to, limb] = weights[i, limb]
        marks[i] = to
        to += 1
    scalars[NODE_TOP] = to
    return oldest
