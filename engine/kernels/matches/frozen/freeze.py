"""What is alive below the finals of an instant, copied with children first, and the number of matches below each."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.frozen import memory as f
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


@kernel
def freeze(M: Ptr[f.FrozenMemory]) -> int:
    """Fill `pos`, `kids` and ROOT from `nodes` and `finals`; all finals are below one root, in their order."""
    state, number, pos = f.state(M), f.number(M), f.pos(M)
    state[f.FROZEN] = 0
    for i in range(number.shape[0]):
        number[i] = -1
    outcome = _copy(M)
    if outcome != f.FOUND:
        return outcome
    roots = state[f.PICKED]
    state[f.PICKED] = 0
    while roots > 1:  # a balanced tree of unions keeps their order
        made = i64(0)
        for i in range(0, roots, 2):
            if i + 1 == roots:
                f.stack(M)[made] = f.stack(M)[i]
            else:
                n = state[f.FROZEN]
                if n == pos.shape[0]:
                    return f.MORE_FROZEN
                _put(M, -1, f.stack(M)[i], f.stack(M)[i + 1], -1)
                f.stack(M)[made] = n
            made += 1
        roots = made
    state[f.ROOT] = f.stack(M)[0] if roots == 1 else -1
    return f.FOUND


@inner
def _copy(M: Ptr[f.FrozenMemory]) -> int:
    """The live finals' numbers are put at the beginning of the stack, PICKED of them."""
    state, nodes, number, stack = f.state(M), f.nodes(M), f.number(M), f.stack(M)
    roots = i64(0)
    for final in range(state[f.FINAL_COUNT]):
        cut = f.finals(M)[final, 1]
        if nodes[f.finals(M)[final, 0]].maxs < cut:
            continue
        top = roots
        if top + 4 > stack.shape[0]:
            return f.MORE_STACK
        stack[top] = f.finals(M)[final, 0]
        top += 1
        while top > roots:
            n = stack[top - 1]
            if number[n] >= 0:
                top -= 1
                continue
            if top + 4 > stack.shape[0]:
                return f.MORE_STACK
            left, right, leaf = i64(nodes[n].left), i64(nodes[n].right), i64(nodes[n].leaf)
            if left >= 0 and nodes[left].maxs < cut:
                left = i64(-1)
            if right >= 0 and nodes[right].maxs < cut:
                right = i64(-1)
            before = top
            if left >= 0 and number[left] < 0:
                stack[top] = left
                top += 1
            if right >= 0 and number[right] < 0:
                stack[top] = right
                top += 1
            if leaf >= 0 and number[leaf] < 0:
                stack[top] = leaf
                top += 1
            if top > before:
                continue
            if state[f.FROZEN] == f.pos(M).shape[0]:
                return f.MORE_FROZEN
            number[n] = state[f.FROZEN]
            left = i64(number[left]) if left >= 0 else left
            if leaf < 0:
                _put(M, nodes[n].pos, left, -1, -1)
            else:
                _put(M, -1, number[leaf], left, i64(number[right]) if right >= 0 else right)
            top -= 1
        stack[roots] = number[f.finals(M)[final, 0]]
        roots += 1
    state[f.PICKED] = roots
    return f.FOUND


@inner
def _put(M: Ptr[f.FrozenMemory], pos: int, first: int, second: int, third: int) -> None:
    state, kids = f.state(M), f.kids(M)
    n = state[f.FROZEN]
    f.pos(M)[n] = pos
    kids[n, 0], kids[n, 1], kids[n, 2] = first, second, third
    state[f.FROZEN] = n + 1


@kernel
def count_ways(M: Ptr[f.FrozenMemory]) -> int:
    """Fill `ways`: numbers of limbs, the least first."""
    kids, ways, blocked = f.kids(M), f.ways(M), f.blocked(M)
    limbs = ways.shape[1]
    for n in range(f.state(M)[f.FROZEN]):
        for limb in range(limbs):
            ways[n, limb] = u64(0)
        if blocked[n] != 0:
            continue
        if f.pos(M)[n] >= 0 and kids[n, 0] < 0:
            ways[n, 0] = u64(1)
            continue
        for j in range(3):
            if kids[n, j] >= 0 and _adds_too_much(ways, n, i64(kids[n, j])):
                return f.MORE_LIMBS
    return f.FOUND


@kernel
def count_above(M: Ptr[f.FrozenMemory]) -> None:
    """Fill `above`, whose limbs are those that were enough for `ways`: parents come after their children."""
    kids, above, root = f.kids(M), f.above(M), f.state(M)[f.ROOT]
    for n in range(f.state(M)[f.FROZEN]):
        for limb in range(above.shape[1]):
            above[n, limb] = u64(0)
    if root < 0:
        return
    above[root, 0] = u64(1)
    for n in range(root, -1, -1):
        for j in range(3):
            if f.blocked(M)[n] == 0 and kids[n, j] >= 0:
                _adds_too_much(above, i64(kids[n, j]), n)


@inner
def _adds_too_much(sums: Array, n: int, other: int) -> bool:
    """Add row `other` to row `n`; whether the sum needs more limbs."""
    carry = u64(0)
    for limb in range(sums.shape[1]):
        part = sums[n, limb] + sums[other, limb]
        over = u64(1) if part < sums[n, limb] else u64(0)
        total = part + carry
        if total < part:
            over = u64(1)
        sums[n, limb] = total
        carry = over
    return carry != u64(0)
