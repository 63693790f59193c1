"""Rows come into a timeline, change their weight, and leave it (moments.py)."""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow import moments as v
from oxiseq.engine.kernels.flow.buffers import Delta
from oxiseq.engine.kernels.flow.moments import (
    COUNT,
    ENTRIES,
    FREE,
    GROUP_FREE,
    GROUP_TOP,
    GROUPS,
    LACK,
    LEAST,
    LESS,
    MOMENT_FREE,
    MOMENT_TOP,
    MOMENTS,
    NONE,
    TIME,
    TOP,
    time_in,
)
from oxiseq.engine.kernels.flow.treap import drop_moment, last_until, put_moment
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_key, find_number, put_slot, slot_of_row

_SPARSE: Final = 16
"""Tables shrink when they have so many times the room that they need."""


@inner
def is_sparse(S: Ptr[v.Timeline], more: int) -> bool:
    """Whether a timeline that will take in so many rows has far too much room; it says then that it wants less."""
    scalars, room = v.scalars(S), v.entries(S).shape[0]
    if room <= scalars[LEAST] or room <= _SPARSE * (scalars[COUNT] + more):
        return False
    scalars[LACK] = LESS
    return True


@inner
def lacks_room(S: Ptr[v.Timeline]) -> bool:
    """Whether something is wanted before a row may come: an entry, a moment, a group."""
    scalars = v.scalars(S)
    if scalars[FREE] < 0 and scalars[TOP] == v.entries(S).shape[0]:
        scalars[LACK] = ENTRIES
    elif scalars[MOMENT_FREE] < 0 and scalars[MOMENT_TOP] == v.moments(S).shape[0]:
        scalars[LACK] = MOMENTS
    elif scalars[GROUP_FREE] < 0 and scalars[GROUP_TOP] == v.groups(S).shape[0]:
        scalars[LACK] = GROUPS
    else:
        return False
    return True


# --- found -------------------------------------------------------------------------------------------


@inner
def tag_of_row(S: Ptr[v.Timeline], given: Array, i: int) -> int:
    """The hash of line `i` of a table of rows."""
    return row_tag(given, i, 0, v.rows(S).shape[1])


@inner
def tag_of_key(S: Ptr[v.Timeline], given: Array, i: int) -> int:
    """The hash of its key, the same on both sides of a join."""
    return key_tag(given, i, 0, v.key(S), v.key(S), 0, 0)


@inner
def entry_of(S: Ptr[v.Timeline], given: Array, i: int, tag: int) -> int:
    """The entry of a row, or NONE."""
    slot = slot_of_row(v.slots(S), tag, v.rows(S), 0, given, i, v.rows(S).shape[1])
    return i64(v.slots(S)[slot].number) - 1 if slot >= 0 else i64(NONE)


@inner
def group_of(S: Ptr[v.Timeline], given: Array, i: int, places: Array, tag: int) -> int:
    """The group whose key a row has at `places`, or NONE."""
    return find_key(v.group_slots(S), tag, v.keys(S), given, i, places)


# --- changed -----------------------------------------------------------------------------------------


@inner
def change_row(S: Ptr[v.Timeline], given: Array, i: int, tag: int, key: int, weight: int) -> None:
    """Row `i` comes or goes so many times; there is room. tag, key: hashes of the row and of its key."""
    e = entry_of(S, given, i, tag)
    if e < 0:
        _add(S, given, i, tag, key, weight)
        return
    entry = v.entries(S)[e]
    entry.weight += weight
    if entry.weight == 0:
        _remove(S, e)


@inner
def _add(S: Ptr[v.Timeline], given: Array, i: int, tag: int, key: int, weight: int) -> None:
    scalars, rows = v.scalars(S), v.rows(S)
    e = scalars[FREE]
    if e >= 0:
        scalars[FREE] = v.entries(S)[e].next
    else:
        e = scalars[TOP]
        scalars[TOP] += 1
    scalars[COUNT] += 1
    for c in range(rows.shape[1]):
        rows[e, c] = given[i, c]
    g = group_of(S, given, i, v.key(S), key)
    if g < 0:
        g = _new_group(S, given, i, key)
    m = _moment_for(S, g, time_in(given, i, scalars[TIME]))
    entry, moment = v.entries(S)[e], v.moments(S)[m]
    first = i64(moment.first)
    entry.weight = weight
    entry.tag = tag
    entry.moment = m
    entry.previous = NONE
    entry.next = first
    if first >= 0:
        v.entries(S)[first].previous = e
    moment.first = e
    put_slot(v.slots(S), tag, e)


@inner
def _new_group(S: Ptr[v.Timeline], given: Array, i: int, tag: int) -> int:
    """A group without moments; the one that it is made for comes at once."""
    scalars, key, keys = v.scalars(S), v.key(S), v.keys(S)
    g = scalars[GROUP_FREE]
    if g >= 0:
        scalars[GROUP_FREE] = v.groups(S)[g].head
    else:
        g = scalars[GROUP_TOP]
        scalars[GROUP_TOP] += 1
    for c in range(key.shape[0]):
        keys[g, c] = given[i, key[c]]
    group = v.groups(S)[g]
    group.tag = tag
    group.root = NONE
    group.head = NONE
    group.tail = NONE
    put_slot(v.group_slots(S), tag, g)
    return g


@inner
def _moment_for(S: Ptr[v.Timeline], g: int, time: int) -> int:
    """The moment of a group at a time, which may be new."""
    scalars, moments = v.scalars(S), v.moments(S)
    before = last_until(S, g, time, True) if v.groups(S)[g].root >= 0 else i64(NONE)
    if before >= 0 and moments[before].time == time:
        return before
    m = scalars[MOMENT_FREE]
    if m >= 0:
        scalars[MOMENT_FREE] = moments[m].parent
    else:
        m = scalars[MOMENT_TOP]
        scalars[MOMENT_TOP] += 1
    moments[m].time = time
    moments[m].first = NONE
    put_moment(S, g, before, m)
    return m


@inner
def _remove(S: Ptr[v.Timeline], e: int) -> None:
    """Free an entry, and its moment and its group if they are empty then."""
    scalars, entries = v.scalars(S), v.entries(S)
    entry = entries[e]
    drop_slot(v.slots(S), find_number(v.slots(S), entry.tag, e))
    m, before, after = i64(entry.moment), i64(entry.previous), i64(entry.next)
    if before >= 0:
        entries[before].next = after
    else:
        v.moments(S)[m].first = after
    if after >= 0:
        entries[after].previous = before
    entry.moment = NONE
    entry.next = scalars[FREE]
    scalars[FREE] = e
    scalars[COUNT] -= 1
    if v.moments(S)[m].first < 0:
        _remove_moment(S, m)


@inner
def _remove_moment(S: Ptr[v.Timeline], m: int) -> None:
    scalars, moment = v.scalars(S), v.moments(S)[m]
    g = i64(moment.group)
    drop_moment(S, m)
    moment.group = NONE
    moment.parent = scalars[MOMENT_FREE]
    scalars[MOMENT_FREE] = m
    group = v.groups(S)[g]
    if group.root < 0:
        drop_slot(v.group_slots(S), find_number(v.group_slots(S), group.tag, g))
        group.head = scalars[GROUP_FREE]
        scalars[GROUP_FREE] = g


# --- filled again ------------------------------------------------------------------------------------


@kernel
def fill_row_slots(S: Ptr[v.Timeline]) -> None:
    """Fill an empty table of rows' hashes."""
    for e in range(v.scalars(S)[TOP]):
        if v.entries(S)[e].moment >= 0:
            put_slot(v.slots(S), v.entries(S)[e].tag, e)


@kernel
def fill_group_slots(S: Ptr[v.Timeline]) -> None:
    """Fill an empty table of keys' hashes."""
    for g in range(v.scalars(S)[GROUP_TOP]):
        if v.groups(S)[g].root >= 0:
            put_slot(v.group_slots(S), v.groups(S)[g].tag, g)


@kernel
def keep_rows(S: Ptr[v.Timeline], D: Delta, first: int) -> int:
    """Take in rows of a delta from one on, without emitting anything. How many lack room, below 0 if there are none;
    with what is wanted in `LACK`."""
    given, count = buffers.rows(D), buffers.count(D)[0]
    for i in range(first, count):
        if lacks_room(S):
            return count - i
        change_row(S, given, i, tag_of_row(S, given, i), tag_of_key(S, given, i), buffers.weight(D)[i])
    return i64(NONE)
