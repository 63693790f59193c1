"""Groups in an age segment: a queue of runs in order of their time, and the union of their prefixes.

A queue is two stacks (answers.md 3.3). The back takes new entries, newest on top, and the group's `node` is the union
of all that is in it. The front gives old ones away, oldest on top; each of its entries knows the union of itself and
all newer ones in the front. When the front is empty the back is turned into one. So an entry costs two melds in its
life, however many there are, and the prefixes of a queue are one more meld.

A group that waits to be a match is only listed, never joined by a row: it has no unions.
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.nodes import meld
from oxiseq.engine.kernels.matches.records import DONE, NEED_NODES, NODE_TOP, SPINE
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.records import (
    AGED_COUNT,
    AGED_FREE,
    AGED_TOP,
    BEFORE_ALL,
    DUE,
    NO_AGE,
    Memory,
    Tables,
)


@inner
def is_queue(T: Ptr[Tables], edge: int) -> bool:
    """Whether groups of this edge are queues."""
    return v.edges(T)[edge].limit != NO_AGE


@inner
def has_room(S: Ptr[Memory]) -> bool:
    """Whether there is room for one more entry."""
    return v.scalars(S)[AGED_FREE] >= 0 or v.scalars(S)[AGED_TOP] < v.aged(S).shape[0]


@inner
def push(T: Ptr[Tables], S: Ptr[Memory], g: int, node: int, time: int, tau: int) -> None:
    """A run with the prefixes `node`, which came at `time`, joins group `g`. There is room for it and for a meld."""
    scalars, groups, ages = v.scalars(S), v.groups(S), v.ages(S)
    edge = i64(groups[g].edge)
    x = scalars[AGED_FREE]
    if x >= 0:
        scalars[AGED_FREE] = v.aged(S)[x].next
    else:
        x = scalars[AGED_TOP]
        scalars[AGED_TOP] = x + 1
    scalars[AGED_COUNT] += 1
    entry = v.aged(S)[x]
    entry.time = time
    entry.group = g
    entry.node = node
    entry.union = -1
    entry.next = groups[g].new
    newest = i64(ages[edge].newest)
    entry.before = newest
    entry.after = -1
    if newest >= 0:
        v.aged(S)[newest].after = x
    else:
        ages[edge].oldest = x
    ages[edge].newest = x
    groups[g].new = x
    scalars[DUE] = min(scalars[DUE], time + v.edges(T)[edge].limit)
    if v.edges(T)[edge].waits == 0:
        groups[g].node = meld(v.nodes(S), scalars, v.spine(S), node, i64(groups[g].node), tau)


@inner
def turn(T: Ptr[Tables], S: Ptr[Memory], g: int) -> int:
    """See to it that the oldest entry of `g` is on top of the front. Goes on where it stopped for want of nodes."""
    scalars, groups = v.scalars(S), v.groups(S)
    if groups[g].old >= 0 and groups[g].turning == 0:
        return DONE
    groups[g].turning = 1
    joined = v.edges(T)[groups[g].edge].waits == 0
    while groups[g].new >= 0:
        if joined and scalars[NODE_TOP] + SPINE > v.nodes(S).shape[0]:
            return NEED_NODES
        x, front = i64(groups[g].new), i64(groups[g].old)
        entry = v.aged(S)[x]
        if joined:
            union = i64(v.aged(S)[front].union) if front >= 0 else i64(-1)
            entry.union = meld(v.nodes(S), scalars, v.spine(S), i64(entry.node), union, BEFORE_ALL)
        groups[g].new = entry.next
        entry.next = front
        groups[g].old = x
    groups[g].turning = 0
    groups[g].node = -1
    return DONE


@inner
def content(S: Ptr[Memory], g: int, tau: int) -> int:
    """All prefixes of queue `g` that are alive, -1 for none. There is room for a meld."""
    group = v.groups(S)[g]
    union = i64(v.aged(S)[group.old].union) if group.old >= 0 else i64(-1)
    return meld(v.nodes(S), v.scalars(S), v.spine(S), union, i64(group.node), tau)


@inner
def pop(T: Ptr[Tables], S: Ptr[Memory], g: int) -> bool:
    """Drop the oldest entry of `g`, which is on top of the front; whether the group has no other."""
    groups = v.groups(S)
    x = i64(groups[g].old)
    groups[g].old = v.aged(S)[x].next
    _free(S, i64(groups[g].edge), x)
    return groups[g].old < 0 and groups[g].new < 0


@inner
def clear(S: Ptr[Memory], g: int) -> None:
    """Drop all entries of `g`; their pushes have paid for it."""
    groups = v.groups(S)
    edge = i64(groups[g].edge)
    for _ in range(2):
        x = i64(groups[g].old)
        while x >= 0:
            following = i64(v.aged(S)[x].next)
            _free(S, edge, x)
            x = following
        groups[g].old = groups[g].new
        groups[g].new = -1
    groups[g].turning = 0
    groups[g].node = -1


@inner
def _free(S: Ptr[Memory], edge: int, x: int) -> None:
    """Take an entry out of its edge's chain and free it."""
    scalars, aged, ages = v.scalars(S), v.aged(S), v.ages(S)
    before, after = i64(aged[x].before), i64(aged[x].after)
    if before >= 0:
        aged[before].after = after
    else:
        ages[edge].oldest = after
    if after >= 0:
        aged[after].before = before
    else:
        ages[edge].newest = before
    aged[x].group = -1
    aged[x].next = scalars[AGED_FREE]
    scalars[AGED_FREE] = x
    scalars[AGED_COUNT] -= 1
