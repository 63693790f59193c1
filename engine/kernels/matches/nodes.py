"""The compact set (CORE's tECS): all prefixes of a group in one node, shared and never changed.

A node is an output (a row, and the prefixes it extends) or a persistent leftist heap of outputs ordered by
largest start clock. Prefixes leave a window in order of start, so a walk that stops at the first dead root
visits no dead node: enumeration is output-linear (engine.md, section 5).
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.records import NODE_TOP
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array


@inner
def output(nodes: Array, scalars: Array, left: int, pos: int, maxs: int) -> int:
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
def _heap(nodes: Array, scalars: Array, leaf: int, left: int, right: int) -> int:
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
def meld(nodes: Array, scalars: Array, spine: Array, a: int, b: int, tau: int) -> int:
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
            left = i64(nodes[root].left)
            if left >= 0 and nodes[left].maxs < tau:
                left = i64(-1)
            rest = _heap(nodes, scalars, nodes[root].leaf, left, rest)
    return rest
