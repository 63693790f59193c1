"""The moments of a key, in order of time: a treap with a list through it (moments.py)."""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.flow import moments as v
from oxiseq.engine.kernels.flow.moments import NONE
from oxiseq.engine.kernels.memory.hashing import times
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr

_A: Final = -7046029254386353131
_B: Final = -4417276706812531889
"""Odd, without a pattern in their bits."""


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
