"""Matches counted as they are found: a node carries how many prefixes are below it, and nothing else of them.

Where a run is counted, a prefix's rows are never read again, so a node has no children: a union is a sum, and what is
united goes with the next collection. That is right as long as all below one node leave the window together: in
windows that tumble, without a window, and where the start of the match is part of every key. `weights` is
u64[nodes, L]: a number of L limbs, the least first; without columns nothing is counted and nodes are those of nodes.py.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches import records as v
from oxiseq.engine.kernels.matches.nodes import meld, output
from oxiseq.engine.kernels.matches.records import CARRIED, NODE_TOP, SATURATES, MatchMemory
from oxiseq.engine.kernels.memory.numbers import u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

NO_ROW = 1 << 62
"""The position of a counted node: none that a row has."""


@inner
def extend(S: Ptr[MatchMemory], left: int, pos: int, maxs: int) -> int:
    """A new output: row `pos` after the prefixes `left` (-1: it starts a match)."""
    if v.weights(S).shape[1] == 0:
        return output(v.nodes(S), v.scalars(S), left, pos, maxs)
    weights, node = v.weights(S), _bare(S, maxs)
    for i in range(weights.shape[1]):
        weights[node, i] = weights[left, i] if left >= 0 else u64(0)
    if left < 0:
        weights[node, 0] = u64(1)
    return node


@inner
def unite(S: Ptr[MatchMemory], a: int, b: int, tau: int) -> int:
    """The union of two sets of prefixes (-1: none) without what starts before `tau`."""
    nodes = v.nodes(S)
    if v.weights(S).shape[1] == 0:
        return meld(nodes, v.scalars(S), v.spine(S), a, b, tau)
    if a >= 0 and nodes[a].maxs < tau:
        a = -1
    if b < 0 or nodes[b].maxs < tau:
        return a
    if a < 0:
        return b
    node = _bare(S, max(nodes[a].maxs, nodes[b].maxs))
    weights = v.weights(S)
    for i in range(weights.shape[1]):
        weights[node, i] = weights[a, i]
    if carries(S, weights, node, weights, b):
        v.scalars(S)[CARRIED] = 1
    add(weights, node, weights, b)
    return node


@inner
def _bare(S: Ptr[MatchMemory], maxs: int) -> int:
    """A node without children."""
    scalars = v.scalars(S)
    top = scalars[NODE_TOP]
    scalars[NODE_TOP] = top + 1
    node = v.nodes(S)[top]
    node.pos = NO_ROW
    node.maxs = maxs
    node.left = -1
    node.right = -1
    node.leaf = -1
    node.rank = 1
    return top


@inner
def carries(S: Ptr[MatchMemory], a: Array, i: int, b: Array, j: int) -> bool:
    """Whether the sum of row `i` of `a` and row `j` of `b` needs more limbs."""
    if v.scalars(S)[SATURATES] == 1:
        return False
    carry = u64(0)
    for limb in range(a.shape[1]):
        total = a[i, limb] + b[j, limb]
        over = u64(1) if total < a[i, limb] else u64(0)
        if total + carry < total:
            over = u64(1)
        carry = over
    return carry != u64(0)


@inner
def add(a: Array, i: int, b: Array, j: int) -> None:
    """Add row `j` of `b` to row `i` of `a`. Beyond what fits it is all ones, and stays so: too many."""
    most = ~u64(0)
    carry, full_a, full_b = u64(0), True, True
    for limb in range(a.shape[1]):
        x, y = a[i, limb], b[j, limb]
        full_a = full_a and x == most
        full_b = full_b and y == most
        total = x + y
        over = u64(1) if total < x else u64(0)
        a[i, limb] = total + carry
        if total + carry < total:
            over = u64(1)
        carry = over
    if carry != u64(0) or ((full_a or full_b) and a.shape[1] > 1):
        for limb in range(a.shape[1]):
            a[i, limb] = most
