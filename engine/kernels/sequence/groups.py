"""Groups: (edge, live key) and the prefixes that wait there. Made, found by the whole key, marked, expired, removed.

A group is also in the buckets of its probes, and in the expiry queue (engine.md, section 3).
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_number, put_slot
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.buckets import unlink
from oxiseq.engine.kernels.sequence.hashing import same_key, tag_in
from oxiseq.engine.kernels.sequence.queues import clear, is_queue
from oxiseq.engine.kernels.sequence.records import (
    CLOCK,
    COUNTED,
    FIRED,
    GROUP_COUNT,
    GROUP_FREE,
    GROUP_TOP,
    PARTITIONED,
    PROBES,
    QUEUE_BACK,
    QUEUE_FRONT,
    SERIAL,
    STAMP,
    WAITING,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.sequence.windows import window_begin


@inner
def find_group(S: Ptr[Memory], edge: int, h: np.uint64, key: Array, width: int) -> int:
    """The group of `edge` with this key, or -1."""
    slots, tag = v.table(S), tag_in(h)
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != 0:
        g = i64(slots[i].number) - 1
        if slots[i].tag == tag and v.groups(S)[g].edge == edge and same_key(v.keys(S), g, 0, key, width):
            return g
        i = (i + 1) & mask
    return i64(-1)


@inner
def new_group(T: Ptr[Tables], S: Ptr[Memory], edge: int, h: np.uint64, key: Array, width: int) -> int:
    """Make a group without a node; the caller has seen to it that there is room."""
    scalars, groups = v.scalars(S), v.groups(S)
    g = scalars[GROUP_FREE]
    if g >= 0:
        scalars[GROUP_FREE] = groups[g].next
    else:
        g = scalars[GROUP_TOP]
        scalars[GROUP_TOP] = g + 1
    scalars[GROUP_COUNT] += 1
    scalars[SERIAL] += 1
    group = groups[g]
    group.edge = edge
    group.hash = h
    group.fired = 0
    group.serial = scalars[SERIAL]
    group.node = -1
    group.old = -1
    group.new = -1
    group.turning = 0
    scalars[WAITING] += v.edges(T)[edge].waits
    for k in range(width):
        v.keys(S)[g, k] = key[k]
    put_slot(v.table(S), tag_in(h), g)
    return g


@inner
def enqueue(S: Ptr[Memory], g: int, clock: int) -> None:
    """Put `g` at the back of the expiry queue."""
    scalars, groups = v.scalars(S), v.groups(S)
    back = scalars[QUEUE_BACK]
    groups[g].prev = back
    groups[g].next = -1
    groups[g].queued = clock
    if back >= 0:
        groups[back].next = g
    else:
        scalars[QUEUE_FRONT] = g
    scalars[QUEUE_BACK] = g


@inner
def _dequeue(S: Ptr[Memory], g: int) -> None:
    scalars, groups = v.scalars(S), v.groups(S)
    before, after = i64(groups[g].prev), i64(groups[g].next)
    if before >= 0:
        groups[before].next = after
    else:
        scalars[QUEUE_FRONT] = after
    if after >= 0:
        groups[after].prev = before
    else:
        scalars[QUEUE_BACK] = before


@inner
def remove_group(T: Ptr[Tables], S: Ptr[Memory], g: int) -> None:
    """Take `g` out of every index and free it."""
    groups = v.groups(S)
    edge = v.edges(T)[groups[g].edge]
    probes = v.sizes(T)[PROBES]
    for p in range(edge.probe0, edge.probe1):
        if v.probes(T)[p].signature >= 0:
            unlink(S, g * probes + v.probes(T)[p].local)
    drop_slot(v.table(S), find_number(v.table(S), tag_in(groups[g].hash), g))
    if is_queue(T, i64(groups[g].edge)):
        clear(S, g)
    if edge.waits == 0:
        _dequeue(S, g)
    v.scalars(S)[WAITING] -= edge.waits
    groups[g].edge = -1
    groups[g].next = v.scalars(S)[GROUP_FREE]
    v.scalars(S)[GROUP_FREE] = g
    v.scalars(S)[GROUP_COUNT] -= 1


@inner
def expire(T: Ptr[Tables], S: Ptr[Memory], clock: int) -> None:
    """Drop dead groups from the front of the queue; one that has been refreshed gets a second turn.

    Amortised constant: an insert since it was queued has paid for the second turn.
    """
    scalars, groups = v.scalars(S), v.groups(S)
    while True:
        g = scalars[QUEUE_FRONT]
        if g < 0:
            return
        left = _left(T, S, i64(v.edges(T)[groups[g].edge].query), clock)
        if groups[g].maxs < left:
            remove_group(T, S, g)
        elif groups[g].queued < left:
            _dequeue(S, g)
            enqueue(S, g, clock)
        else:
            return


@inner
def expired(T: Ptr[Tables], S: Ptr[Memory], g: int) -> bool:
    """Whether a group in the queue is dead by now, wherever it is there."""
    group = v.groups(S)[g]
    edge = v.edges(T)[group.edge]
    if edge.waits != 0 or v.sizes(T)[COUNTED]:
        return False
    return group.maxs < _left(T, S, i64(edge.query), v.scalars(S)[CLOCK])


@inner
def _left(T: Ptr[Tables], S: Ptr[Memory], query: int, clock: int) -> int:
    """What starts before is dead for a query, in every partition."""
    begin = window_begin(T, S, query, clock)
    return begin if v.sizes(T)[PARTITIONED] else max(begin, v.floors(S)[0, query])


@inner
def mark(S: Ptr[Memory], g: int, attempt: int, goes: bool) -> None:
    """Note `g` for removal at the end of the instant's reading, once. `goes`: not only to take a step of a negated
    group."""
    if v.groups(S)[g].fired != attempt:
        v.groups(S)[g].fired = attempt
        v.groups(S)[g].reach = 0
        v.fired(S)[v.scalars(S)[FIRED]] = g
        v.scalars(S)[FIRED] += 1
    if goes:
        v.groups(S)[g].reach = 1


@inner
def killed(T: Ptr[Tables], S: Ptr[Memory], g: int) -> bool:
    """Whether a negated row came after the group's last insert."""
    group = v.groups(S)[g]
    edge = v.edges(T)[group.edge]
    if edge.stamps == 0:
        return False
    probes = v.sizes(T)[PROBES]
    for p in range(edge.probe0, edge.probe1):
        if v.probes(T)[p].index == STAMP:
            bucket = v.links(S)[g * probes + v.probes(T)[p].local].bucket
            if v.buckets(S)[bucket].kill > group.inserted:
                return True
    return False
