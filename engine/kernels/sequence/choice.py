"""Selection strategies: which of the complex events that end at one instant are kept (semantics.md 3).

Where it stands: finals of an instant → **the finals that a strategy keeps** → enumeration. It knows compact sets and
nothing of the language that they come from: any engine may call it with

    nodes      the compact set (records.NODE, compact_set.py); new nodes are put behind NODE_TOP, the caller takes
               them back (sets NODE_TOP to what it was) when the matches have been enumerated
    finals     nodes whose prefixes are the complex events, all of one cut: what starts before it is dead
    positions  row id + OFFSET → the position of the row's event; any numbers that rise with the stream will do. Of
               length 0: rows are positions. D is the set of the positions of a complex event's rows,
               but for those at the place SILENT (-1: there is none)

`picked` is then a list of nodes whose live prefixes are exactly the complex events kept; those with one D are kept
together. Nothing is enumerated: a complex event is a path, and what is better below a node stays better above it,
since all that comes later is shared. So each node keeps its best prefixes only:

    NEXT, LAST   one set of positions; one pass over the nodes that the finals reach
    MAX          those that no other one contains; these may be many, hence the limit

Sets of positions are interned as *classes*: (class without the largest position, that position).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.pointers import Array, view_of
from oxiseq.engine.kernels.sequence.compact_set import SPINE, meld, output
from oxiseq.engine.kernels.sequence.hashing import mix
from oxiseq.engine.kernels.sequence.records import NODE, NODE_TOP, PLACE_BITS

CLASS: Final = np.dtype(
    [
        ("position", "i8"),
        ("parent", "i4"),
        ("depth", "i4"),  # how many positions it holds
        ("jump", "i4"),  # an ancestor far away, for NEXT
        ("slot", "i4"),  # where the hash table has it
        ("listed", "i4"),  # where it stands in the list that is being merged, if its stamp is that list's
        ("stamp", "i4"),
    ],
    align=True,
)
_PLACE: Final = (1 << PLACE_BITS) - 1
FIRST_WINS, LAST_WINS, NONE_CONTAINED = range(3)
"""NEXT, LAST, MAX."""

(
    STRATEGY,
    CUT,
    FINAL_COUNT,
    OFFSET,
    MOST_STEPS,
    SILENT,
    CLASSES,
    DONE_NODES,
    SETS,
    PICKED,
    STEPS,
    STAMP,
    CHOICE_STATES,
) = range(13)
"""Places in `state`: the first six are given; PICKED is how many nodes were picked, STEPS the comparisons made."""

CHOSEN, MORE_NODES, MORE_CLASSES, MORE_SETS, MORE_STACK, TOO_MANY_STEPS = range(6)
"""Outcomes: picked; too little room for something, to be called again; more comparisons than MOST_STEPS."""


class ChoiceMemory(NamedTuple):
    """What `choose` works on. All but the first four is scratch, which it leaves as it was."""

    nodes: Array
    scalars: Array  # i64: NODE_TOP
    finals: Array  # i64[*, 2]: node
    positions: Array  # i64
    state: Array  # i64[CHOICE_STATES]
    best: Array  # i32[nodes]: class of the best prefixes, or place of a node's sets; -1: not looked at
    kept: Array  # i32[nodes]: node of these prefixes, or their number
    done: Array  # i32[nodes]: nodes that have been looked at
    stack: Array  # i64
    leaves: Array  # i64[nodes]: walk of a heap
    classes: Array
    table: Array  # i32, a power of two: classes by hash, -1: free
    sets: Array  # i64[*, 2]: class, node
    picked: Array  # i64
    spine: Array  # i64[SPINE]


_nodes: Any = view_of(ChoiceMemory, "nodes", NODE)
_scalars: Any = view_of(ChoiceMemory, "scalars", np.int64)
_finals: Any = view_of(ChoiceMemory, "finals", np.int64, 2)
_positions: Any = view_of(ChoiceMemory, "positions", np.int64)
_state: Any = view_of(ChoiceMemory, "state", np.int64)
_best: Any = view_of(ChoiceMemory, "best", np.int32)
_kept: Any = view_of(ChoiceMemory, "kept", np.int32)
_done: Any = view_of(ChoiceMemory, "done", np.int32)
_stack: Any = view_of(ChoiceMemory, "stack", np.int64)
_leaves: Any = view_of(ChoiceMemory, "leaves", np.int64)
_classes: Any = view_of(ChoiceMemory, "classes", CLASS)
_table: Any = view_of(ChoiceMemory, "table", np.int32)
_sets: Any = view_of(ChoiceMemory, "sets", np.int64, 2)
_picked: Any = view_of(ChoiceMemory, "picked", np.int64)
_spine: Any = view_of(ChoiceMemory, "spine", np.int64)


@kernel
def choose(M: Any) -> int:
    """Pick what the strategy keeps of the finals; `M` is the address of a ChoiceMemory. Returns an outcome."""
    state, classes = _state(M), _classes(M)
    state[CLASSES] = 1
    state[DONE_NODES] = 0
    state[SETS] = 0
    state[PICKED] = 0
    state[STEPS] = 0
    state[STAMP] = 0
    classes[0].depth = 0
    classes[0].parent = 0
    classes[0].jump = 0
    classes[0].slot = -1
    classes[0].stamp = 0
    base = _scalars(M)[NODE_TOP]
    if state[STRATEGY] == NONE_CONTAINED:
        outcome = _choose_maximal(M)
    else:
        outcome = _choose_one(M)
    for i in range(state[DONE_NODES]):
        _best(M)[_done(M)[i]] = -1
    for c in range(1, state[CLASSES]):
        _table(M)[classes[c].slot] = -1
    if outcome != CHOSEN:
        _scalars(M)[NODE_TOP] = base
    return outcome


@inner
def _position(M: Any, node: int) -> int:
    row = _nodes(M)[node].pos >> PLACE_BITS
    return row if _positions(M).shape[0] == 0 else _positions(M)[row + _state(M)[OFFSET]]


@inner
def _finish(M: Any, node: int, best: int, kept: int) -> None:
    state = _state(M)
    _best(M)[node] = best
    _kept(M)[node] = kept
    _done(M)[state[DONE_NODES]] = node
    state[DONE_NODES] += 1


@inner
def _room(M: Any) -> bool:
    return _scalars(M)[NODE_TOP] + 2 * SPINE < _nodes(M).shape[0]


@inner
def _with_row(M: Any, parent: int, node: int) -> int:
    """The class of `parent`'s positions and that of the node's row; -1: there is no room for it."""
    if _nodes(M)[node].pos & _PLACE == _state(M)[SILENT]:
        return parent
    return _class_of(M, parent, _position(M, node))


# --- classes: sets of positions ---------------------------------------------------------------------


@inner
def _class_of(M: Any, parent: int, position: int) -> int:
    """The class of `parent`'s positions and a larger one; -1: there is no room for it."""
    state, classes, table = _state(M), _classes(M), _table(M)
    mask = np.uint64(table.shape[0] - 1)
    i = mix(mix(np.uint64(1), parent), position) & mask
    while True:
        c = np.int64(table[i])
        if c < 0:
            break
        if classes[c].parent == parent and classes[c].position == position:
            return c
        i = (i + np.uint64(1)) & mask
    c = state[CLASSES]
    if c == classes.shape[0]:
        return -1
    state[CLASSES] = c + 1
    table[i] = c
    made = classes[c]
    made.position = position
    made.parent = parent
    made.depth = classes[parent].depth + 1
    made.slot = np.int64(i)
    made.stamp = 0
    jump = np.int64(classes[parent].jump)
    far = np.int64(classes[jump].jump)
    even = classes[parent].depth - classes[jump].depth == classes[jump].depth - classes[far].depth
    made.jump = far if even else parent
    return c


@inner
def _wins(M: Any, a: int, b: int) -> bool:
    """Whether class `a` wins against another class `b`, as prefixes with the same continuation."""
    return _first_wins(_classes(M), a, b) if _state(M)[STRATEGY] == FIRST_WINS else _last_wins(_classes(M), a, b)


@inner
def _first_wins(classes: Any, a: int, b: int) -> bool:
    """The smallest position in which they differ is `a`'s. Logarithmic, by jumps to where they are still one."""
    x, y = a, b
    while classes[x].depth > classes[y].depth:
        jump = np.int64(classes[x].jump)
        x = jump if classes[jump].depth >= classes[y].depth else np.int64(classes[x].parent)
    while classes[y].depth > classes[x].depth:
        jump = np.int64(classes[y].jump)
        y = jump if classes[jump].depth >= classes[x].depth else np.int64(classes[y].parent)
    if x == y:
        return classes[a].depth > classes[b].depth
    while classes[x].parent != classes[y].parent:
        if classes[x].jump != classes[y].jump:
            x, y = np.int64(classes[x].jump), np.int64(classes[y].jump)
        else:
            x, y = np.int64(classes[x].parent), np.int64(classes[y].parent)
    return classes[x].position < classes[y].position


@inner
def _last_wins(classes: Any, a: int, b: int) -> bool:
    """The largest position in which they differ is `a`'s."""
    while a != 0 and b != 0 and classes[a].position == classes[b].position:
        a, b = np.int64(classes[a].parent), np.int64(classes[b].parent)
    return a != 0 and (b == 0 or classes[a].position > classes[b].position)


@inner
def _contains(M: Any, a: int, b: int) -> bool:
    """Whether every position of class `b` is one of class `a`."""
    classes, state = _classes(M), _state(M)
    while b != 0 and a != b:
        state[STEPS] += 1
        while a != 0 and classes[a].position > classes[b].position:
            state[STEPS] += 1
            a = np.int64(classes[a].parent)
        if a == 0 or classes[a].position != classes[b].position:
            return False
        a, b = np.int64(classes[a].parent), np.int64(classes[b].parent)
    return True


# --- NEXT and LAST ----------------------------------------------------------------------------------


@inner
def _choose_one(M: Any) -> int:
    state, finals = _state(M), _finals(M)
    wanted = np.int64(-1)
    for f in range(state[FINAL_COUNT]):
        outcome = _look_below(M, finals[f, 0])
        if outcome != CHOSEN:
            return outcome
        best = np.int64(_best(M)[finals[f, 0]])
        if wanted < 0 or (best != wanted and _wins(M, best, wanted)):
            wanted = best
            state[PICKED] = 0
        if best == wanted:
            _picked(M)[state[PICKED]] = _kept(M)[finals[f, 0]]
            state[PICKED] += 1
    return CHOSEN


@inner
def _look_below(M: Any, final: int) -> int:
    """The best prefixes of every live node that `final` reaches, its children first."""
    stack, nodes, best, cut = _stack(M), _nodes(M), _best(M), _state(M)[CUT]
    stack[0] = final
    top = 1
    while top > 0:
        n = stack[top - 1]
        if best[n] >= 0:
            top -= 1
            continue
        if top + 3 > stack.shape[0]:
            return MORE_STACK
        before = top
        left, right, leaf = np.int64(nodes[n].left), np.int64(nodes[n].right), np.int64(nodes[n].leaf)
        if leaf >= 0 and best[leaf] < 0:
            stack[top] = leaf
            top += 1
        if left >= 0 and nodes[left].maxs >= cut and best[left] < 0:
            stack[top] = left
            top += 1
        if right >= 0 and nodes[right].maxs >= cut and best[right] < 0:
            stack[top] = right
            top += 1
        if top > before:
            continue
        if not _room(M):
            return MORE_NODES
        if leaf < 0:
            if not _keep_output(M, n, left):
                return MORE_CLASSES
        else:
            _keep_heap(M, n)
        top -= 1
    return CHOSEN


@inner
def _keep_output(M: Any, n: int, left: int) -> bool:
    nodes = _nodes(M)
    made = _with_row(M, np.int64(_best(M)[left]) if left >= 0 else np.int64(0), n)
    if made < 0:
        return False
    kept = n
    if left >= 0 and _kept(M)[left] != left:
        below = np.int64(_kept(M)[left])
        kept = output(nodes, _scalars(M), below, nodes[n].pos, nodes[below].maxs)
    _finish(M, n, made, kept)
    return True


@inner
def _keep_heap(M: Any, n: int) -> None:
    """The union of those of its parts whose best prefixes are the best."""
    nodes, best, cut = _nodes(M), _best(M), _state(M)[CUT]
    leaf, left, right = np.int64(nodes[n].leaf), np.int64(nodes[n].left), np.int64(nodes[n].right)
    left = left if left >= 0 and nodes[left].maxs >= cut else np.int64(-1)
    right = right if right >= 0 and nodes[right].maxs >= cut else np.int64(-1)
    wanted = np.int64(best[leaf])
    if left >= 0 and best[left] != wanted and _wins(M, best[left], wanted):
        wanted = np.int64(best[left])
    if right >= 0 and best[right] != wanted and _wins(M, best[right], wanted):
        wanted = np.int64(best[right])
    kept, whole = np.int64(-1), True
    if best[leaf] == wanted:
        kept = np.int64(_kept(M)[leaf])
    whole = kept == leaf
    for part in (left, right):
        if part < 0:
            continue
        if best[part] != wanted:
            whole = False
            continue
        whole = whole and _kept(M)[part] == part
    if whole:
        _finish(M, n, wanted, n)
        return
    for part in (left, right):
        if part >= 0 and best[part] == wanted:
            kept = meld(nodes, _scalars(M), _spine(M), kept, np.int64(_kept(M)[part]), cut)
    _finish(M, n, wanted, kept)


# --- MAX --------------------------------------------------------------------------------------------


@inner
def _choose_maximal(M: Any) -> int:
    """A node's sets are `sets[best : best + kept]`, none of which contains another."""
    state, finals = _state(M), _finals(M)
    for f in range(state[FINAL_COUNT]):
        outcome = _list_below(M, finals[f, 0])
        if outcome != CHOSEN:
            return outcome
    first = state[SETS]
    state[STAMP] += 1
    for f in range(state[FINAL_COUNT]):
        outcome = _merge(M, finals[f, 0], first)
        if outcome != CHOSEN:
            return outcome
    outcome = _leave_contained(M, first)
    count = state[SETS] - first
    if count > _picked(M).shape[0]:
        return MORE_SETS
    for i in range(count):
        _picked(M)[i] = _sets(M)[first + i, 1]
    state[PICKED] = count
    return outcome


@inner
def _list_below(M: Any, final: int) -> int:
    """The maximal prefixes of `final`; below it, of outputs and of the heaps that an output extends."""
    stack, nodes, best = _stack(M), _nodes(M), _best(M)
    stack[0] = final
    top = 1
    while top > 0:
        n = stack[top - 1]
        if best[n] >= 0:
            top -= 1
            continue
        before = top
        if nodes[n].leaf < 0:
            left = np.int64(nodes[n].left)
            if left >= 0 and best[left] < 0:
                if top == stack.shape[0]:
                    return MORE_STACK
                stack[top] = left
                top += 1
        else:
            count = _walk(M, n)
            for i in range(count):
                if best[_leaves(M)[i]] < 0:
                    if top == stack.shape[0]:
                        return MORE_STACK
                    stack[top] = _leaves(M)[i]
                    top += 1
        if top > before:
            continue
        outcome = _list_output(M, n) if nodes[n].leaf < 0 else _list_heap(M, n)
        if outcome != CHOSEN:
            return outcome
        top -= 1
    return CHOSEN


@inner
def _walk(M: Any, heap: int) -> int:
    """The live outputs of a heap, in `leaves`; their number."""
    nodes, leaves, cut = _nodes(M), _leaves(M), _state(M)[CUT]
    at = leaves.shape[0]  # sub-heaps still to be walked lie at the end: they are fewer than the outputs not yet found
    count = 0
    at -= 1
    leaves[at] = heap
    while at < leaves.shape[0]:
        n = leaves[at]
        at += 1
        leaf, left, right = np.int64(nodes[n].leaf), np.int64(nodes[n].left), np.int64(nodes[n].right)
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
def _list_output(M: Any, n: int) -> int:
    nodes, state, sets = _nodes(M), _state(M), _sets(M)
    left, first = np.int64(nodes[n].left), state[SETS]
    count = np.int64(_kept(M)[left]) if left >= 0 else np.int64(1)
    if first + count > sets.shape[0]:
        return MORE_SETS
    for i in range(count):
        if not _room(M):
            return MORE_NODES
        parent, kept = np.int64(0), n
        if left >= 0:
            parent, below = sets[_best(M)[left] + i, 0], sets[_best(M)[left] + i, 1]
            kept = output(nodes, _scalars(M), below, nodes[n].pos, nodes[below].maxs)
        made = _with_row(M, parent, n)
        if made < 0:
            return MORE_CLASSES
        sets[first + i, 0] = made
        sets[first + i, 1] = kept
    state[SETS] = first + count
    _finish(M, n, first, count)
    return CHOSEN


@inner
def _list_heap(M: Any, n: int) -> int:
    state = _state(M)
    first = state[SETS]
    state[STAMP] += 1
    count = _walk(M, n)
    for i in range(count):
        outcome = _merge(M, _leaves(M)[i], first)
        if outcome != CHOSEN:
            return outcome
    outcome = _leave_contained(M, first)
    _finish(M, n, first, state[SETS] - first)
    return outcome


@inner
def _merge(M: Any, n: int, first: int) -> int:
    """Put a node's sets to the list that begins at `first`, equal ones together."""
    state, sets, classes = _state(M), _sets(M), _classes(M)
    for i in range(_best(M)[n], _best(M)[n] + _kept(M)[n]):
        c, node = sets[i, 0], sets[i, 1]
        if classes[c].stamp == state[STAMP]:
            if not _room(M):
                return MORE_NODES
            at = np.int64(classes[c].listed)
            sets[at, 1] = meld(_nodes(M), _scalars(M), _spine(M), sets[at, 1], node, state[CUT])
            continue
        at = state[SETS]
        if at == sets.shape[0]:
            return MORE_SETS
        state[SETS] = at + 1
        sets[at, 0] = c
        sets[at, 1] = node
        classes[c].stamp = state[STAMP]
        classes[c].listed = at
    return CHOSEN


@inner
def _leave_contained(M: Any, first: int) -> int:
    """Take what another one contains out of the list that begins at `first`. Largest sets first."""
    state, sets, classes = _state(M), _sets(M), _classes(M)
    last = state[SETS]
    _sort(sets, classes, first, last)
    to = first
    for i in range(first, last):
        c = sets[i, 0]
        contained = False
        for j in range(first, to):
            if classes[sets[j, 0]].depth == classes[c].depth:
                break
            if _contains(M, sets[j, 0], c):
                contained = True
                break
        if state[STEPS] > state[MOST_STEPS]:
            return TOO_MANY_STEPS
        if not contained:
            sets[to, 0] = c
            sets[to, 1] = sets[i, 1]
            to += 1
    state[SETS] = to
    return CHOSEN


@inner
def _sort(sets: Any, classes: Any, first: int, last: int) -> None:
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
