"""Entries come into their view's chains, are refreshed, and leave."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_number, put_slot
from oxiseq.engine.kernels.windows import views as v
from oxiseq.engine.kernels.windows.hashing import (
    bucket_key,
    enter_bucket,
    fetch_bucket,
    fetch_pair,
    leave_bucket,
    pair_hash,
)
from oxiseq.engine.kernels.windows.records import (
    COUNT,
    FREE,
    INDEX_OBJECT,
    INDEX_PREDICATE,
    INDEX_SUBJECT,
    TOP,
    Memory,
    Tables,
)


@inner
def refresh_entry(T: Ptr[Tables], S: Ptr[Memory], e: int, clock: int) -> None:
    """An event of this clock, its source's largest so far, holds the triple again: the entry goes to the end of the
    list."""
    entry = v.entries(S)[e]
    source = i64(v.views(T)[entry.of].source)
    entry.last = clock
    if v.listed(S)[source].last == e:
        return
    _unlist(S, e, source)
    _append(S, e, source)


@inner
def _append(S: Ptr[Memory], e: int, source: int) -> None:
    ends, entries = v.listed(S)[source], v.entries(S)
    last = ends.last
    entries[e].lp = last
    entries[e].ln = -1
    if last >= 0:
        entries[last].ln = e
    else:
        ends.first = e
    ends.last = e


@inner
def _unlist(S: Ptr[Memory], e: int, source: int) -> None:
    ends, entries = v.listed(S)[source], v.entries(S)
    following, previous = i64(entries[e].ln), i64(entries[e].lp)
    if previous >= 0:
        entries[previous].ln = following
    else:
        ends.first = following
    if following >= 0:
        entries[following].lp = previous
    else:
        ends.last = previous


@inner
def store_entry(T: Ptr[Tables], S: Ptr[Memory], h: int, view: int, s: int, p: int, o: int, clock: int) -> int:
    """A new entry, whose pair hash is `h`; there is room in all tables."""
    scalars, entries, index = v.scalars(S), v.entries(S), v.views(T)[view].index
    e = scalars[FREE]
    if e >= 0:
        scalars[FREE] = i64(entries[e].ln)
    else:
        e = scalars[TOP]
        scalars[TOP] = e + 1
    scalars[COUNT] += 1
    entry = entries[e]
    entry.s, entry.p, entry.o, entry.of, entry.last = s, p, o, view, clock
    entry.sp, entry.pp, entry.op, entry.vp = -1, -1, -1, -1
    if index & INDEX_SUBJECT:
        head = enter_bucket(S, bucket_key(view, 0, s), e)
        entry.sn = head
        if head >= 0:
            entries[head].sp = e
    if index & INDEX_PREDICATE:
        head = enter_bucket(S, bucket_key(view, 1, p), e)
        entry.pn = head
        if head >= 0:
            entries[head].pp = e
    if index & INDEX_OBJECT:
        head = enter_bucket(S, bucket_key(view, 2, o), e)
        entry.on = head
        if head >= 0:
            entries[head].op = e
    stored = v.stored(S)[view]
    head = i64(stored.head)
    entry.vn = head
    if head >= 0:
        entries[head].vp = e
    stored.head = e
    stored.count += 1
    _append(S, e, v.views(T)[view].source)
    put_slot(v.pairs(S), h, e)
    return e


@inner
def fetch_stored(T: Ptr[Tables], S: Ptr[Memory], view: int, s: int, p: int, o: int) -> None:
    """A triple of this view will be sought, stored or removed soon."""
    index = v.views(T)[view].index
    fetch_pair(S, view, s, p, o)
    if index & INDEX_SUBJECT:
        fetch_bucket(S, bucket_key(view, 0, s))
    if index & INDEX_OBJECT:
        fetch_bucket(S, bucket_key(view, 2, o))


@inner
def remove_entry(T: Ptr[Tables], S: Ptr[Memory], e: int) -> None:
    """An entry leaves; its record will be used again."""
    scalars, entries = v.scalars(S), v.entries(S)
    entry = entries[e]
    view = i64(entry.of)
    index = v.views(T)[view].index
    tag = pair_hash(view, entry.s, entry.p, entry.o)
    drop_slot(v.pairs(S), find_number(v.pairs(S), tag, e))
    if index & INDEX_SUBJECT:
        leave_bucket(S, bucket_key(view, 0, entry.s), entry.sp, entry.sn)
        if entry.sp >= 0:
            entries[entry.sp].sn = entry.sn
        if entry.sn >= 0:
            entries[entry.sn].sp = entry.sp
    if index & INDEX_PREDICATE:
        leave_bucket(S, bucket_key(view, 1, entry.p), entry.pp, entry.pn)
        if entry.pp >= 0:
            entries[entry.pp].pn = entry.pn
        if entry.pn >= 0:
            entries[entry.pn].pp = entry.pp
    if index & INDEX_OBJECT:
        leave_bucket(S, bucket_key(view, 2, entry.o), entry.op, entry.on)
        if entry.op >= 0:
            entries[entry.op].on = entry.on
        if entry.on >= 0:
            entries[entry.on].op = entry.op
    stored = v.stored(S)[view]
    if entry.vp >= 0:
        entries[entry.vp].vn = entry.vn
    else:
        stored.head = entry.vn
    if entry.vn >= 0:
        entries[entry.vn].vp = entry.vp
    stored.count -= 1
    _unlist(S, e, v.views(T)[view].source)
    entry.of = -1
    entry.ln = scalars[FREE]
    scalars[FREE] = e
    scalars[COUNT] -= 1
