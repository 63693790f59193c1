"""MAX: the sets of positions that no other one contains; these may be many."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.choice import memory as m
from oxiseq.engine.kernels.matches.choice.classes import contains, with_row
from oxiseq.engine.kernels.matches.nodes import meld, output
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


@inner
def choose_maximal(M: Ptr[m.ChoiceMemory]) -> int:
    """A node's sets are `sets[best : best + kept]`, none of which contains another."""
    state, finals = m.state(M), m.finals(M)
    for f in range(state[m.FINAL_COUNT]):
        outcome = _list_below(M, finals[f, 0])
        if outcome != m.CHOSEN:
            return outcome
    first = state[m.SETS]
    state[m.STAMP] += 1
    for f in range(state[m.FINAL_COUNT]):
        outcome = _merge(M, finals[f, 0], first)
        if outcome != m.CHOSEN:
            return outcome
    outcome = _leave_contained(M, first)
    count = state[m.SETS] - first
    if count > m.picked(M).shape[0]:
        return m.MORE_SETS
    for i in range(count):
        m.picked(M)[i] = m.sets(M)[first + i, 1]
    state[m.PICKED] = count
    return outcome


@inner
def _list_below(M: Ptr[m.ChoiceMemory], final: int) -> int:
    """The maximal prefixes of `final`; below it, of outputs and of the heaps that an output extends."""
    stack, nodes, best = m.stack(M), m.nodes(M), m.best(M)
    stack[0] = final
    top = 1
    while top > 0:
        n = stack[top - 1]
        if best[n] >= 0:
            top -= 1
            continue
        before = top
        if nodes[n].leaf < 0:
            left = i64(nodes[n].left)
            if left >= 0 and best[left] < 0:
                if top == stack.shape[0]:
                    return m.MORE_STACK
                stack[top] = left
                top += 1
        else:
            count = _walk(M, n)
            for i in range(count):
                if best[m.leaves(M)[i]] < 0:
                    if top == stack.shape[0]:
                        return m.MORE_STACK
                    stack[top] = m.leaves(M)[i]
                    top += 1
        if top > before:
            continue
        outcome = _list_output(M, n) if nodes[n].leaf < 0 else _list_heap(M, n)
        if outcome != m.CHOSEN:
            return outcome
        top -= 1
    return m.CHOSEN


@inner
def _walk(M: Ptr[m.ChoiceMemory], heap: int) -> int:
    """The live outputs of a heap, in `leaves`; their number."""
    nodes, leaves, cut = m.nodes(M), m.leaves(M), m.state(M)[m.CUT]
    at = leaves.shape[0]  # sub-heaps still to be walked lie at the end: they are fewer than the outputs not yet found
    count = 0
    at -= 1
    leaves[at] = heap
    while at < leaves.shape[0]:
        n = i64(leaves[at])
        at += 1
        leaf, left, right = i64(nodes[n].leaf), i64(nodes[n].left), i64(nodes[n].right)
        leaves[count] = n if leaf < 0 else leaf
        count += 1
        if leaf >= 0:
            if right >= 0 and nodes[right].maxs >= cut:
                at -= 1
                leaves[at] = right
            if left >= 0 and nodes[left].maxs >= cut:
                at -= 1
                leaves[at] = left
    return count


@inner
def _list_output(M: Ptr[m.ChoiceMemory], n: int) -> int:
    nodes, state, sets = m.nodes(M), m.state(M), m.sets(M)
    left, first = i64(nodes[n].left), state[m.SETS]
    count = i64(m.kept(M)[left]) if left >= 0 else i64(1)
    if first + count > sets.shape[0]:
        return m.MORE_SETS
    for i in range(count):
        if not m.has_room(M):
            return m.MORE_NODES
        parent, kept = i64(0), n
        if left >= 0:
            parent, below = sets[m.best(M)[left] + i, 0], sets[m.best(M)[left] + i, 1]
            kept = output(nodes, m.scalars(M), below, nodes[n].pos, nodes[below].maxs)
        made = with_row(M, parent, n)
        if made < 0:
            return m.MORE_CLASSES
        sets[first + i, 0] = made
        sets[first + i, 1] = kept
    state[m.SETS] = first + count
    m.finish(M, n, first, count)
    return m.CHOSEN


@inner
def _list_heap(M: Ptr[m.ChoiceMemory], n: int) -> int:
    state = m.state(M)
    first = state[m.SETS]
    state[m.STAMP] += 1
    count = _walk(M, n)
    for i in range(count):
        outcome = _merge(M, m.leaves(M)[i], first)
        if outcome != m.CHOSEN:
            return outcome
    outcome = _leave_contained(M, first)
    m.finish(M, n, first, state[m.SETS] - first)
    return outcome


@inner
def _merge(M: Ptr[m.ChoiceMemory], n: int, first: int) -> int:
    """Put a node's sets to the list that begins at `first`, equal ones together."""
    state, sets, classes = m.state(M), m.sets(M), m.classes(M)
    for i in range(m.best(M)[n], m.best(M)[n] + m.kept(M)[n]):
        c, node = sets[i, 0], sets[i, 1]
        if classes[c].stamp == state[m.STAMP]:
            if not m.has_room(M):
                return m.MORE_NODES
            at = i64(classes[c].listed)
            sets[at, 1] = meld(m.nodes(M), m.scalars(M), m.spine(M), sets[at, 1], node, state[m.CUT])
            continue
        at = state[m.SETS]
        if at == sets.shape[0]:
            return m.MORE_SETS
        state[m.SETS] = at + 1
        sets[at, 0] = c
        sets[at, 1] = node
        classes[c].stamp = state[m.STAMP]
        classes[c].listed = at
    return m.CHOSEN


@inner
def _leave_contained(M: Ptr[m.ChoiceMemory], first: int) -> int:
    """Take what another one contains out of the list that begins at `first`. Largest sets first."""
    state, sets, classes = m.state(M), m.sets(M), m.classes(M)
    last = state[m.SETS]
    _sort(sets, classes, first, last)
    to = first
    for i in range(first, last):
        c = sets[i, 0]
        contained = False
        for j in range(first, to):
            if classes[sets[j, 0]].depth == classes[c].depth:
                break
            if contains(M, sets[j, 0], c):
                contained = True
                break
        if state[m.STEPS] > state[m.MOST_STEPS]:
            return m.TOO_MANY_STEPS
        if not contained:
            sets[to, 0] = c
            sets[to, 1] = sets[i, 1]
            to += 1
    state[m.SETS] = to
    return m.CHOSEN


@inner
def _sort(sets: Array, classes: Array, first: int, last: int) -> None:
    """By number of positions, falling (Shell's sort: the lists are short or nearly sorted)."""
    gap = 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            c, node = sets[i, 0], sets[i, 1]
            j = i
            while j >= first + gap and classes[sets[j - gap, 0]].depth < classes[c].depth:
                sets[j, 0] = sets[j - gap, 0]
                sets[j, 1] = sets[j - gap, 1]
                j -= gap
            sets[j, 0] = c
            sets[j, 1] = node
        gap //= 3
