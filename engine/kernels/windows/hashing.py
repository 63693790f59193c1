"""Hash tables of pairs and buckets: open addressing, linear probing, half full at the most, a power of two long.

Deletion shifts back what follows, so that nothing is left behind. Entries do not know their places: these move.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.hashing import times
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Ptr
from oxiseq.engine.kernels.memory.raw import fetch, get
from oxiseq.engine.kernels.memory.slots import fetch_slot, put_slot
from oxiseq.engine.kernels.windows import views as v
from oxiseq.engine.kernels.windows.records import (
    BUCKET,
    BUCKETS,
    INDEX_OBJECT,
    INDEX_PREDICATE,
    INDEX_SUBJECT,
    TOP,
    Memory,
    Tables,
)

_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
_C: Final = 1609587929392839161
"""Odd, without a pattern in their bits."""
_LOW: Final = 0xFFFFFFFF
_PAIRS: Final = WORDS * Memory._fields.index("pairs")
_BUCKETS: Final = WORDS * Memory._fields.index("buckets")
_BUCKET_SIZE: Final = BUCKET.itemsize


@inner
def pair_hash(view: int, s: int, p: int, o: int) -> int:
    """32 bits of hash of a triple in a view."""
    x = times(s ^ (o << 32), _A)
    x = times(x ^ (x >> 29) ^ times(p ^ (view << 32), _B), _C)
    return (x >> 32) & _LOW


@inner
def bucket_key(view: int, position: int, term: int) -> int:
    """The key of the entries of a view that have this term as subject (0), predicate (1) or object (2)."""
    return ((3 * view + position) << 32) | term


@inner
def _bucket_home(key: int) -> int:
    x = times(key, _A)
    return (x ^ (x >> 32)) & _LOW


@inner
def find_pair(S: Ptr[Memory], h: int, view: int, s: int, p: int, o: int) -> int:
    """The entry of a triple in a view, or -1."""
    pairs, entries = v.pairs(S), v.entries(S)
    mask = pairs.shape[0] - 1
    i = h & mask
    while True:
        e = i64(pairs[i].number) - 1
        if e < 0:
            return -1
        if pairs[i].tag == h:
            entry = entries[e]
            if entry.s == s and entry.o == o and entry.of == view and entry.p == p:
                return e
        i = (i + 1) & mask


@inner
def fetch_pair(S: Ptr[Memory], view: int, s: int, p: int, o: int) -> None:
    """`find_pair` will be called soon."""
    fetch_slot(S, _PAIRS, pair_hash(view, s, p, o))


@inner
def fetch_bucket(S: Ptr[Memory], key: int) -> None:
    """A bucket will be looked for soon."""
    mask = get(S, _BUCKETS + 1) - 1
    fetch(get(S, _BUCKETS) + (_bucket_home(key) & mask) * _BUCKET_SIZE)


@inner
def find_bucket(S: Ptr[Memory], key: int) -> int:
    """The place of a bucket, or -1."""
    buckets = v.buckets(S)
    mask = buckets.shape[0] - 1
    i = _bucket_home(key) & mask
    while buckets[i].count != 0:
        if buckets[i].key == key:
            return i
        i = (i + 1) & mask
    return -1


@inner
def enter_bucket(S: Ptr[Memory], key: int, e: int) -> int:
    """Make `e` the first of a bucket, which may be new; there is room. The entry that was the first, or -1."""
    buckets = v.buckets(S)
    mask = buckets.shape[0] - 1
    i = _bucket_home(key) & mask
    while buckets[i].count != 0 and buckets[i].key != key:
        i = (i + 1) & mask
    bucket = buckets[i]
    head = i64(-1)
    if bucket.count == 0:
        bucket.key = key
        v.scalars(S)[BUCKETS] += 1
    else:
        head = i64(bucket.head)
    bucket.head = e
    bucket.count += 1
    return head


@inner
def leave_bucket(S: Ptr[Memory], key: int, previous: int, following: int) -> None:
    """An entry with these neighbours leaves a bucket, which goes when it is empty."""
    buckets = v.buckets(S)
    i = find_bucket(S, key)
    if previous < 0:
        buckets[i].head = following
    buckets[i].count -= 1
    if buckets[i].count == 0:
        v.scalars(S)[BUCKETS] -= 1
        _close_gap(S, i)


@inner
def _close_gap(S: Ptr[Memory], i: int) -> None:
    """Shift back what a bucket that has become empty would hide."""
    buckets = v.buckets(S)
    mask = buckets.shape[0] - 1
    j = i
    while True:
        j = (j + 1) & mask
        if buckets[j].count == 0:
            break
        home = _bucket_home(buckets[j].key) & mask
        if ((j - home) & mask) >= ((j - i) & mask):
            buckets[i].key = buckets[j].key
            buckets[i].head = buckets[j].head
            buckets[i].count = buckets[j].count
            i = j
    buckets[i].count = 0


@kernel
def fill_pairs(S: Ptr[Memory]) -> None:
    """Fill an empty table from the entries."""
    entries = v.entries(S)
    for e in range(v.scalars(S)[TOP]):
        entry = entries[e]
        if entry.of >= 0:
            put_slot(v.pairs(S), pair_hash(entry.of, entry.s, entry.p, entry.o), e)


@kernel
def fill_buckets(T: Ptr[Tables], S: Ptr[Memory]) -> None:
    """Fill an empty table from the chains of the entries."""
    entries, views, scalars = v.entries(S), v.views(T), v.scalars(S)
    scalars[BUCKETS] = 0
    for e in range(scalars[TOP]):
        entry = entries[e]
        if entry.of < 0:
            continue
        index = views[entry.of].index
        if index & INDEX_SUBJECT and entry.sp < 0:
            _refill(S, bucket_key(entry.of, 0, entry.s), e, 0)
        if index & INDEX_PREDICATE and entry.pp < 0:
            _refill(S, bucket_key(entry.of, 1, entry.p), e, 1)
        if index & INDEX_OBJECT and entry.op < 0:
            _refill(S, bucket_key(entry.of, 2, entry.o), e, 2)


@inner
def _refill(S: Ptr[Memory], key: int, head: int, position: int) -> None:
    """The bucket of a chain that begins with `head`."""
    buckets, entries = v.buckets(S), v.entries(S)
    count = i64(0)
    e = i64(head)
    while e >= 0:
        count += 1
        if position == 0:
            e = i64(entries[e].sn)
        elif position == 1:
            e = i64(entries[e].pn)
        else:
            e = i64(entries[e].on)
    enter_bucket(S, key, head)
    buckets[find_bucket(S, key)].count = count
