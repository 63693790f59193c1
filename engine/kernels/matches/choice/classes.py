"""Sets of positions, interned as classes: (class without the largest position, that position); which is better."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.choice import memory as m
from oxiseq.engine.kernels.memory.hashing import mix
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


@inner
def with_row(M: Ptr[m.ChoiceMemory], parent: int, node: int) -> int:
    """The class of `parent`'s positions and that of the node's row; -1: there is no room for it."""
    if m.nodes(M)[node].pos & m.PLACE == m.state(M)[m.SILENT]:
        return parent
    return _class_of(M, parent, m.position_of(M, node))


@inner
def _class_of(M: Ptr[m.ChoiceMemory], parent: int, position: int) -> int:
    """The class of `parent`'s positions and a larger one; -1: there is no room for it."""
    state, classes, table = m.state(M), m.classes(M), m.table(M)
    mask = u64(table.shape[0] - 1)
    i = mix(mix(u64(1), parent), position) & mask
    while True:
        c = i64(table[i])
        if c < 0:
            break
        if classes[c].parent == parent and classes[c].position == position:
            return c
        i = (i + u64(1)) & mask
    c = state[m.CLASSES]
    if c == classes.shape[0]:
        return -1
    state[m.CLASSES] = c + 1
    table[i] = c
    made = classes[c]
    made.position = position
    made.parent = parent
    made.depth = classes[parent].depth + 1
    made.slot = i64(i)
    made.stamp = 0
    jump = i64(classes[parent].jump)
    far = i64(classes[jump].jump)
    even = classes[parent].depth - classes[jump].depth == classes[jump].depth - classes[far].depth
    made.jump = far if even else parent
    return c


@inner
def wins(M: Ptr[m.ChoiceMemory], a: int, b: int) -> bool:
    """Whether class `a` wins against another class `b`, as prefixes with the same continuation."""
    return _first_wins(m.classes(M), a, b) if m.state(M)[m.STRATEGY] == m.FIRST_WINS else _last_wins(m.classes(M), a, b)


@inner
def _first_wins(classes: Array, a: int, b: int) -> bool:
    """The smallest position in which they differ is `a`'s. Logarithmic, by jumps to where they are still one."""
    x, y = a, b
    while classes[x].depth > classes[y].depth:
        jump = i64(classes[x].jump)
        x = jump if classes[jump].depth >= classes[y].depth else i64(classes[x].parent)
    while classes[y].depth > classes[x].depth:
        jump = i64(classes[y].jump)
        y = jump if classes[jump].depth >= classes[x].depth else i64(classes[y].parent)
    if x == y:
        return classes[a].depth > classes[b].depth
    while classes[x].parent != classes[y].parent:
        if classes[x].jump != classes[y].jump:
            x, y = i64(classes[x].jump), i64(classes[y].jump)
        else:
            x, y = i64(classes[x].parent), i64(classes[y].parent)
    return classes[x].position < classes[y].position


@inner
def _last_wins(classes: Array, a: int, b: int) -> bool:
    """The largest position in which they differ is `a`'s."""
    while a != 0 and b != 0 and classes[a].position == classes[b].position:
        a, b = i64(classes[a].parent), i64(classes[b].parent)
    return a != 0 and (b == 0 or classes[a].position > classes[b].position)


@inner
def contains(M: Ptr[m.ChoiceMemory], a: int, b: int) -> bool:
    """Whether every position of class `b` is one of class `a`."""
    classes, state = m.classes(M), m.state(M)
    while b != 0 and a != b:
        state[m.STEPS] += 1
        while a != 0 and classes[a].position > classes[b].position:
            state[m.STEPS] += 1
            a = i64(classes[a].parent)
        if a == 0 or classes[a].position != classes[b].position:
            return False
        a, b = i64(classes[a].parent), i64(classes[b].parent)
    return True
