"""Rows come into a timeline, change their weight, and leave it (moments.py). The moments of a key are in order of
time: a treap with a list through it."""

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
from oxiseq.engine.kernels.memory.hashing import key_tag, row_tag, times
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.memory.slots import drop_slot, find_key, find_number, put_slot, slot_of_row

_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
"""Odd, without a pattern in their bits."""


# --- a treap of moments ----------------------------------------------------------------------------


@inner
def last_until(S: Ptr[v.Timeline], g: int, time: int, inclusive: bool) -> int:
    """The last moment of a group before a time, or (`inclusive`) at it; NONE: there is none."""
    moments, group = v.moments(S), v.groups(S)[g]
    m = i64(group.tail)
    if _lies_before(moments[m].time, time, inclusive):
        return m
    if not _lies_before(moments[group.head].time, time, inclusive):
        return i64(NONE)
    m, found = i64(group.root), i64(NONE)
    while m >= 0:
        if _lies_before(moments[m].time, time, inclusive):
            found, m = m, i64(moments[m].higher)
        else:
            m = i64(moments[m].lower)
    return found


@inner
def _lies_before(time: int, other: int, inclusive: bool) -> bool:
    return time < other or (inclusive and time == other)


@inner
def next_after(S: Ptr[v.Timeline], g: int, m: int) -> int:
    """The moment after one; after NONE the first."""
    return i64(v.groups(S)[g].head) if m < 0 else i64(v.moments(S)[m].after)


@inner
def put_moment(S: Ptr[v.Timeline], g: int, before: int, m: int) -> None:
    """Put a moment, whose time is set, into a group. before: the one that it comes after; NONE: it is the first."""
    moments, group = v.moments(S), v.groups(S)[g]
    after = next_after(S, g, before)
    new = moments[m]
    new.group = g
    new.lower = NONE
    new.higher = NONE
    new.before = before
    new.after = after
    # of two neighbours in order one has no child on the side of the other
    if before >= 0 and moments[before].higher < 0:
        new.parent = before
        moments[before].higher = m
    elif after >= 0:
        new.parent = after
        moments[after].lower = m
    else:
        new.parent = NONE
        group.root = m
    if before >= 0:
        moments[before].after = m
    else:
        group.head = m
    if after >= 0:
        moments[after].before = m
    else:
        group.tail = m
    while moments[m].parent >= 0 and _priority(m) > _priority(moments[m].parent):
        _rotate_up(S, g, m)


@inner
def drop_moment(S: Ptr[v.Timeline], m: int) -> None:
    """Take a moment out of its group."""
    moments = v.moments(S)
    old = moments[m]
    g = i64(old.group)
    while old.lower >= 0 and old.higher >= 0:
        lower = _priority(old.lower) > _priority(old.higher)
        _rotate_up(S, g, old.lower if lower else old.higher)
    child = i64(old.lower if old.lower >= 0 else old.higher)
    if child >= 0:
        moments[child].parent = old.parent
    _set_child(S, g, old.parent, m, child)
    group, before, after = v.groups(S)[g], i64(old.before), i64(old.after)
    if before >= 0:
        moments[before].after = after
    else:
        group.head = after
    if after >= 0:
        moments[after].before = before
    else:
        group.tail = before


@inner
def _priority(m: int) -> int:
    h = times(m + 1, _A)
    h ^= (h >> 29) & 0x7FFFFFFFF
    return times(h, _B)


@inner
def _rotate_up(S: Ptr[v.Timeline], g: int, m: int) -> None:
    """A moment takes the place of its parent, which becomes its child."""
    moments = v.moments(S)
    child, p = moments[m], i64(moments[m].parent)
    parent = moments[p]
    above = i64(parent.parent)
    if parent.lower == m:
        inner_child = i64(child.higher)
        parent.lower = inner_child
        child.higher = p
    else:
        inner_child = i64(child.lower)
        parent.higher = inner_child
        child.lower = p
    if inner_child >= 0:
        moments[inner_child].parent = p
    parent.parent = m
    child.parent = above
    _set_child(S, g, above, p, m)


@inner
def _set_child(S: Ptr[v.Timeline], g: int, parent: int, old: int, new: int) -> None:
    """Put another child where one was; without a parent it was the root."""
    if parent < 0:
        v.groups(S)[g].root = new
    elif v.moments(S)[parent].lower == old:
        v.moments(S)[parent].lower = new
    else:
        v.moments(S)[parent].higher = new


_SPARSE: Final = 16
"""Tables shrink when they have so many times the room that they need."""


# --- room ------------------------------------------------------------------------------------------


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
