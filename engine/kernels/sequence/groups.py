"""Groups, and the indexes that find them: hash tables, buckets, skew heaps, the expiry queue.

A group is (edge, live key). It is found by its whole key, or through a bucket (the equalities of one probe)
that holds skew heaps over the probe's inequality or a plain list (engine.md, sections 3 and 7).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.sequence import views as v
from oxiseq.engine.kernels.sequence.records import (
    BUCKET_COUNT,
    BUCKET_FREE,
    BUCKET_TOP,
    CLOSINGS,
    FIRED,
    GROUP_COUNT,
    GROUP_FREE,
    GROUP_TOP,
    HEAP,
    HEAP_NUMBER,
    HEAP_TIME,
    LIST,
    LISTED,
    NEVER,
    PROBES,
    QUEUE_BACK,
    QUEUE_FRONT,
    SERIAL,
    STAMP,
)


@inner
def mix(h: Any, value: Any) -> Any:
    """One step of the hash: fixed, without a random seed, so that runs repeat."""
    x = h ^ np.uint64(value)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return x ^ (x >> np.uint64(29))


@inner
def hash_key(number: int, key: Any, width: int) -> Any:
    """Hash of the first `width` values of `key` for edge or probe `number`."""
    h = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    for i in range(width):
        h = mix(h, key[i])
    return h


@inner
def hash_row(number: int, keys: Any, at: int, width: int) -> Any:
    """`hash_key` of row `at` of a table of keys."""
    h = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    for i in range(width):
        h = mix(h, keys[at, i])
    return h


@inner
def find_group(S: Any, edge: int, h: Any, key: Any, width: int) -> int:
    """The group of `edge` with this key, or -1."""
    table, groups, keys = v.table(S), v.groups(S), v.keys(S)
    mask = np.uint64(table.shape[0] - 1)
    i = h & mask
    while True:
        g = np.int64(table[i])
        if g < 0:
            return -1
        if groups[g].hash == h and groups[g].edge == edge:
            same = True
            for k in range(width):
                if keys[g, k] != key[k]:
                    same = False
                    break
            if same:
                return g
        i = (i + np.uint64(1)) & mask


@inner
def _put(table: Any, h: Any, value: int) -> None:
    mask = np.uint64(table.shape[0] - 1)
    i = h & mask
    while table[i] >= 0:
        i = (i + np.uint64(1)) & mask
    table[i] = value


@inner
def _drop(table: Any, records: Any, h: Any, value: int) -> None:
    """Backward-shift deletion: no tombstones, so that tables never fill up with them."""
    mask = np.uint64(table.shape[0] - 1)
    i = h & mask
    while table[i] != value:
        i = (i + np.uint64(1)) & mask
    j = i
    while True:
        j = (j + np.uint64(1)) & mask
        other = table[j]
        if other < 0:
            break
        home = records[other].hash & mask
        # move back unless its home lies cyclically in (i, j]
        if ((j - home) & mask) >= ((j - i) & mask):
            table[i] = other
            i = j
    table[i] = -1


@kernel
def rehash_groups(table: Any, records: Any, top: int) -> None:
    """Fill a table again after it has grown."""
    table[:] = -1
    for r in range(top):
        if records[r].edge >= 0:
            _put(table, records[r].hash, r)


@kernel
def rehash_buckets(table: Any, records: Any, top: int) -> None:
    """`rehash_groups` for buckets."""
    table[:] = -1
    for r in range(top):
        if records[r].probe >= 0:
            _put(table, records[r].hash, r)


# --- buckets ----------------------------------------------------------------------------------------


@inner
def find_bucket(S: Any, probe: int, h: Any, key: Any, width: int) -> int:
    """The bucket of `probe` with these equality values, or -1."""
    table, buckets, keys = v.bucket_table(S), v.buckets(S), v.bucket_keys(S)
    mask = np.uint64(table.shape[0] - 1)
    i = h & mask
    while True:
        b = np.int64(table[i])
        if b < 0:
            return -1
        if buckets[b].hash == h and buckets[b].probe == probe:
            same = True
            for k in range(width):
                if keys[b, k] != key[k]:
                    same = False
                    break
            if same:
                return b
        i = (i + np.uint64(1)) & mask


@inner
def new_bucket(S: Any, probe: int, h: Any, key: Any, width: int) -> int:
    """Make a bucket; the caller has seen to it that there is room."""
    scalars, buckets = v.scalars(S), v.buckets(S)
    b = scalars[BUCKET_FREE]
    if b >= 0:
        scalars[BUCKET_FREE] = buckets[b].next
    else:
        b = scalars[BUCKET_TOP]
        scalars[BUCKET_TOP] = b + 1
    scalars[BUCKET_COUNT] += 1
    bucket = buckets[b]
    bucket.kill = -1
    bucket.hash = h
    bucket.probe = probe
    bucket.count = 0
    bucket.number = -1
    bucket.time = -1
    bucket.list = -1
    for k in range(width):
        v.bucket_keys(S)[b, k] = key[k]
    _put(v.bucket_table(S), h, b)
    return b


@inner
def _free_bucket(S: Any, b: int) -> None:
    bucket = v.buckets(S)[b]
    _drop(v.bucket_table(S), v.buckets(S), bucket.hash, b)
    bucket.probe = -1
    bucket.next = v.scalars(S)[BUCKET_FREE]
    v.scalars(S)[BUCKET_FREE] = b
    v.scalars(S)[BUCKET_COUNT] -= 1


# --- skew heaps and lists ---------------------------------------------------------------------------


@inner
def _merge(links: Any, probes: int, local: int, a: int, b: int) -> int:
    """Merge two skew heaps of groups; the root (its parent is -1)."""
    if a < 0:
        if b >= 0:
            links[b * probes + local].parent = -1
        return b
    if b < 0:
        links[a * probes + local].parent = -1
        return a
    if links[b * probes + local].value < links[a * probes + local].value:
        a, b = b, a
    root = a
    links[root * probes + local].parent = -1
    while True:
        here = links[a * probes + local]
        right = np.int64(here.right)
        here.right = here.left
        if right < 0:
            here.left = b
            links[b * probes + local].parent = a
            return root
        if links[b * probes + local].value < links[right * probes + local].value:
            right, b = b, right
        here.left = right
        links[right * probes + local].parent = a
        a = right


@inner
def link(S: Any, probes: int, local: int, g: int, b: int, kind: int, value: float) -> None:
    """Put group `g` into bucket `b` in the order that `kind` names."""
    links = v.links(S)
    bucket = v.buckets(S)[b]
    bucket.count += 1
    own = links[g * probes + local]
    own.bucket = b
    own.kind = kind
    own.value = value
    own.left = -1
    own.right = -1
    own.parent = -1
    if kind == HEAP_NUMBER:
        bucket.number = _merge(links, probes, local, bucket.number, g)
    elif kind == HEAP_TIME:
        bucket.time = _merge(links, probes, local, bucket.time, g)
    elif kind == LISTED:
        first = np.int64(bucket.list)
        own.left = first
        if first >= 0:
            links[first * probes + local].right = g
        bucket.list = g


@inner
def _unlink(S: Any, probes: int, local: int, g: int) -> None:
    links = v.links(S)
    own = links[g * probes + local]
    b = np.int64(own.bucket)
    bucket = v.buckets(S)[b]
    kind = own.kind
    if kind == LISTED:
        following, before = np.int64(own.left), np.int64(own.right)
        if following >= 0:
            links[following * probes + local].right = before
        if before >= 0:
            links[before * probes + local].left = following
        else:
            bucket.list = following
    elif kind != NEVER:
        parent = np.int64(own.parent)
        merged = _merge(links, probes, local, np.int64(own.left), np.int64(own.right))
        if merged >= 0:
            links[merged * probes + local].parent = parent
        if parent < 0:
            if kind == HEAP_NUMBER:
                bucket.number = merged
            else:
                bucket.time = merged
        elif links[parent * probes + local].left == g:
            links[parent * probes + local].left = merged
        else:
            links[parent * probes + local].right = merged
    bucket.count -= 1
    if bucket.count == 0:
        _free_bucket(S, b)


# --- groups -----------------------------------------------------------------------------------------


@inner
def new_group(S: Any, edge: int, h: Any, key: Any, width: int) -> int:
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
    for k in range(width):
        v.keys(S)[g, k] = key[k]
    _put(v.table(S), h, g)
    return g


@inner
def enqueue(S: Any, g: int, clock: int) -> None:
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
def _dequeue(S: Any, g: int) -> None:
    scalars, groups = v.scalars(S), v.groups(S)
    before, after = np.int64(groups[g].prev), np.int64(groups[g].next)
    if before >= 0:
        groups[before].next = after
    else:
        scalars[QUEUE_FRONT] = after
    if after >= 0:
        groups[after].prev = before
    else:
        scalars[QUEUE_BACK] = before


@inner
def remove_group(T: Any, S: Any, g: int) -> None:
    """Take `g` out of every index and free it."""
    groups = v.groups(S)
    edge = v.edges(T)[groups[g].edge]
    probes = v.sizes(T)[PROBES]
    for p in range(edge.probe0, edge.probe1):
        index = v.probes(T)[p].index
        if index in (LIST, HEAP, STAMP):
            _unlink(S, probes, v.probes(T)[p].local, g)
    _drop(v.table(S), groups, groups[g].hash, g)
    if edge.waits == 0:
        _dequeue(S, g)
    groups[g].edge = -1
    groups[g].next = v.scalars(S)[GROUP_FREE]
    v.scalars(S)[GROUP_FREE] = g
    v.scalars(S)[GROUP_COUNT] -= 1


@inner
def expire(T: Any, S: Any, tau: int, clock: int) -> None:
    """Drop dead groups from the front of the queue; one that has been refreshed gets a second turn.

    Amortised constant: an insert since it was queued has paid for the second turn.
    """
    scalars, groups = v.scalars(S), v.groups(S)
    while True:
        g = scalars[QUEUE_FRONT]
        if g < 0:
            return
        if groups[g].maxs < tau:
            remove_group(T, S, g)
        elif groups[g].queued < tau:
            _dequeue(S, g)
            enqueue(S, g, clock)
        else:
            return


@inner
def mark(S: Any, g: int, attempt: int) -> None:
    """Note `g` for removal at the end of the instant's reading, once."""
    if v.groups(S)[g].fired != attempt:
        v.groups(S)[g].fired = attempt
        v.fired(S)[v.scalars(S)[FIRED]] = g
        v.scalars(S)[FIRED] += 1


# --- groups that wait for their window to close -----------------------------------------------------


@inner
def _closes_before(a: Any, b: Any) -> bool:
    return a.close < b.close or (a.close == b.close and a.serial < b.serial)


@inner
def _swap(closings: Any, i: int, j: int) -> None:
    close, serial, group = closings[i].close, closings[i].serial, closings[i].group
    closings[i].close, closings[i].serial, closings[i].group = (
        closings[j].close,
        closings[j].serial,
        closings[j].group,
    )
    closings[j].close, closings[j].serial, closings[j].group = close, serial, group


@inner
def push_closing(S: Any, close: int, g: int) -> None:
    """`g` becomes a match when the clock has passed `close`."""
    closings = v.closings(S)
    i = v.scalars(S)[CLOSINGS]
    v.scalars(S)[CLOSINGS] = i + 1
    closings[i].close = close
    closings[i].serial = v.groups(S)[g].serial
    closings[i].group = g
    while i > 0 and _closes_before(closings[i], closings[(i - 1) // 2]):
        _swap(closings, i, (i - 1) // 2)
        i = (i - 1) // 2


@inner
def pop_closing(S: Any) -> None:
    """Remove the earliest closing."""
    closings = v.closings(S)
    last = v.scalars(S)[CLOSINGS] - 1
    v.scalars(S)[CLOSINGS] = last
    _swap(closings, 0, last)
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            return
        if child + 1 < last and _closes_before(closings[child + 1], closings[child]):
            child += 1
        if not _closes_before(closings[child], closings[i]):
            return
        _swap(closings, i, child)
        i = child


@inner
def killed(T: Any, S: Any, g: int) -> bool:
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
