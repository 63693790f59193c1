"""Reclamation: nodes by mark and slide, blocks of live records by packing, states by renumbering."""

from __future__ import annotations

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.clocks import query_of
from oxiseq.engine.kernels.cea.records import (
    BEFORE_ALL,
    BY_ATTRIBUTE,
    BY_EVENTS,
    BY_TIME,
    EPOCH,
    KIND,
    LIVE_TOP,
    SIZE,
    Cache,
    Memory,
)
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.matches.collect import reach, root, slide
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr


@kernel
def collect(A: Ptr[Cache], S: Ptr[Memory], marks: Array, floors: Array, now: int) -> int:
    """Drop what is dead and slide the nodes down; the smallest position still referred to.

    `marks`: i32[nodes], zeros; `floors`: i64[partitions], scratch. What its query's window has left behind at `now`
    (µs) is dead, in windows of events at the partition's clock, in those of an attribute what it has forgotten.
    Must not run while matches are being enumerated.
    """
    scalars, parts, live = v.scalars(S), v.parts(S), v.live(S)
    for p in range(parts.shape[0]):
        dead = _dead_before(A, S, i64(p), now)
        floors[p] = dead
        count = i64(0)
        if parts[p].epoch == scalars[EPOCH]:
            first = i64(parts[p].first)
            for i in range(first, first + parts[p].count):
                if live[i].maxs >= dead:
                    root(marks, floors, live[i].node, p)
                    there = live[first + count]
                    there.maxs = live[i].maxs
                    there.state = live[i].state
                    there.node = live[i].node
                    count += 1
        else:
            parts[p].epoch = scalars[EPOCH]
        parts[p].count = count
        if count == 0:
            parts[p].restless = 0
    reach(S, marks, floors)
    oldest = slide(S, marks)
    for p in range(parts.shape[0]):
        for i in range(parts[p].first, parts[p].first + parts[p].count):
            live[i].node = marks[live[i].node]
    return oldest


@inner
def _dead_before(A: Ptr[Cache], S: Ptr[Memory], p: int, now: int) -> int:
    if v.sizes(A)[KIND] == BY_EVENTS:
        return window_start(i64(v.parts(S)[p].clock), v.sizes(A)[SIZE], 1, 0)
    if v.sizes(A)[KIND] == BY_ATTRIBUTE:
        return i64(v.parts(S)[p].tau)
    if v.sizes(A)[KIND] == BY_TIME and now != BEFORE_ALL:
        return window_start(now, v.queries(A)[query_of(A, p)].back, 1, 0)
    return i64(BEFORE_ALL)


@kernel
def pack(S: Ptr[Memory], target: Array) -> int:
    """Move the partitions' blocks of live records to `target`, without what lies between; records in use.

    With an empty `target` nothing is moved, only counted.
    """
    scalars, parts, live = v.scalars(S), v.parts(S), v.live(S)
    top = i64(0)
    for p in range(parts.shape[0]):
        count = i64(parts[p].count) if parts[p].epoch == scalars[EPOCH] else i64(0)
        room = i64(0)
        if count > 0:
            room = i64(2)
        while room < count:
            room *= 2
        if target.shape[0] > 0:
            for i in range(count):
                target[top + i] = live[parts[p].first + i]
            parts[p].first = top
            parts[p].count = count
            parts[p].room = room
        top += room
    if target.shape[0] > 0:
        scalars[LIVE_TOP] = top
    return top


@kernel
def renumber(S: Ptr[Memory], numbers: Array) -> None:
    """States in use get `numbers[state]`; where that is -1 it becomes the next number from `numbers[0]` on.

    `numbers` is i32[states], all -1 but numbers[0], which is the first number to give.
    """
    scalars, parts, live = v.scalars(S), v.parts(S), v.live(S)
    for p in range(parts.shape[0]):
        if parts[p].epoch == scalars[EPOCH]:
            for i in range(parts[p].first, parts[p].first + parts[p].count):
                state = live[i].state
                if numbers[state] < 0:
                    numbers[state] = numbers[0]
                    numbers[0] += 1
                live[i].state = numbers[state]
