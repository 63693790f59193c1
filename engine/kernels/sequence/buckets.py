"""Buckets: the groups of one signature with one set of equality values, of whatever edge.

A bucket holds skew heaps over the signature's inequality, one for numbers and one for times, and a plain list of those
that have no order (engine.md, sections 3 and 7).
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_number, put_slot
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.hashing import same_key, tag_in
from oxiseq.engine.kernels.sequence.records import (
    BUCKET_COUNT,
    BUCKET_FREE,
    BUCKET_TOP,
    HEAP_NUMBER,
    HEAP_TIME,
    LISTED,
    NEVER,
    Memory,
)


@inner
def find_bucket(S: Ptr[Memory], signature: int, h: np.uint64, key: Array, width: int) -> int:
    """The bucket of `signature` with these equality values, or -1."""
    slots, buckets, tag = v.bucket_table(S), v.buckets(S), tag_in(h)
    mask = slots.shape[0] - 1
    i = tag & mask
    while slots[i].number != 0:
        b = i64(slots[i].number) - 1
        same = slots[i].tag == tag and buckets[b].signature == signature
        if same and same_key(v.bucket_keys(S), b, 0, key, width):
            return b
        i = (i + 1) & mask
    return i64(-1)


@inner
def new_bucket(S: Ptr[Memory], signature: int, h: np.uint64, key: Array, width: int) -> int:
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
    bucket.signature = signature
    bucket.count = 0
    bucket.number = -1
    bucket.time = -1
    bucket.list = -1
    for k in range(width):
        v.bucket_keys(S)[b, k] = key[k]
    put_slot(v.bucket_table(S), tag_in(h), b)
    return b


@inner
def _free_bucket(S: Ptr[Memory], b: int) -> None:
    bucket = v.buckets(S)[b]
    drop_slot(v.bucket_table(S), find_number(v.bucket_table(S), tag_in(bucket.hash), b))
    bucket.signature = -1
    bucket.next = v.scalars(S)[BUCKET_FREE]
    v.scalars(S)[BUCKET_FREE] = b
    v.scalars(S)[BUCKET_COUNT] -= 1


# --- skew heaps and lists ---------------------------------------------------------------------------


@inner
def _merge(links: Array, a: int, b: int) -> int:
    """Merge two skew heaps of links; the root (its parent is -1)."""
    if a < 0:
        if b >= 0:
            links[b].parent = -1
        return b
    if b < 0:
        links[a].parent = -1
        return a
    if links[b].value < links[a].value:
        a, b = b, a
    root = a
    links[root].parent = -1
    while True:
        here = links[a]
        right = i64(here.right)
        here.right = here.left
        if right < 0:
            here.left = b
            links[b].parent = a
            return root
        if links[b].value < links[right].value:
            right, b = b, right
        here.left = right
        links[right].parent = a
        a = right


@inner
def link(S: Ptr[Memory], x: int, b: int, kind: int, value: float) -> None:
    """Put the group of link `x` into bucket `b` in the order that `kind` names."""
    links = v.links(S)
    bucket = v.buckets(S)[b]
    bucket.count += 1
    own = links[x]
    own.bucket = b
    own.kind = kind
    own.value = value
    own.left = -1
    own.right = -1
    own.parent = -1
    if kind == HEAP_NUMBER:
        bucket.number = _merge(links, bucket.number, x)
    elif kind == HEAP_TIME:
        bucket.time = _merge(links, bucket.time, x)
    elif kind == LISTED:
        first = i64(bucket.list)
        own.left = first
        if first >= 0:
            links[first].right = x
        bucket.list = x


@inner
def unlink(S: Ptr[Memory], x: int) -> None:
    """Take the group of link `x` out of its bucket, which goes with its last link."""
    links = v.links(S)
    own = links[x]
    b = i64(own.bucket)
    bucket = v.buckets(S)[b]
    kind = own.kind
    if kind == LISTED:
        following, before = i64(own.left), i64(own.right)
        if following >= 0:
            links[following].right = before
        if before >= 0:
            links[before].left = following
        else:
            bucket.list = following
    elif kind != NEVER:
        parent = i64(own.parent)
        merged = _merge(links, i64(own.left), i64(own.right))
        if merged >= 0:
            links[merged].parent = parent
        if parent < 0:
            if kind == HEAP_NUMBER:
                bucket.number = merged
            else:
                bucket.time = merged
        elif links[parent].left == x:
            links[parent].left = merged
        else:
            links[parent].right = merged
    bucket.count -= 1
    if bucket.count == 0:
        _free_bucket(S, b)
