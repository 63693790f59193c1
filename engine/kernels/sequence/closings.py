"""Groups that become matches when their window has closed, or a bound has passed: a heap by that time."""

from __future__ import annotations

from typing import Any

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.records import DONE, FINALS, MatchMemory
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.groups import killed, remove_group
from oxiseq.engine.kernels.sequence.queues import is_queue, pop, turn
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL, CLOSINGS, LAPSES, MOMENT, NEED_FINALS, Memory, Tables


@inner
def _closes_before(a: Any, b: Any) -> bool:
    return a.close < b.close or (a.close == b.close and a.serial < b.serial)


@inner
def _swap(closings: Array, i: int, j: int) -> None:
    close, serial, group = closings[i].close, closings[i].serial, closings[i].group
    closings[i].close, closings[i].serial, closings[i].group = (
        closings[j].close,
        closings[j].serial,
        closings[j].group,
    )
    closings[j].close, closings[j].serial, closings[j].group = close, serial, group


@inner
def push_closing(S: Ptr[Memory], close: int, g: int) -> None:
    """`g` becomes a match when the clock has passed `close`."""
    _push(v.closings(S), v.scalars(S), CLOSINGS, close, v.groups(S)[g].serial, g)


@inner
def push_lapse(S: Ptr[Memory], time: int, g: int) -> None:
    """When `time` (µs) has passed `g` is dead, for what LASTING bounds has lasted too long, or it goes on to the next
    edge of its gap, which has a negated group, or it is a match (ages.py)."""
    _push(v.lapses(S), v.scalars(S), LAPSES, time, v.groups(S)[g].serial, g)


@inner
def pop_lapse(S: Ptr[Memory]) -> None:
    """Remove the earliest lapse."""
    _pop(v.lapses(S), v.scalars(S), LAPSES)


@inner
def _push(heap: Array, scalars: Array, count: int, close: int, serial: int, g: int) -> None:
    """One more in a heap, whose size is the scalar `count`."""
    i = scalars[count]
    scalars[count] = i + 1
    heap[i].close = close
    heap[i].serial = serial
    heap[i].group = g
    while i > 0 and _closes_before(heap[i], heap[(i - 1) // 2]):
        _swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@inner
def _pop(heap: Array, scalars: Array, count: int) -> None:
    """Remove the earliest."""
    last = scalars[count] - 1
    scalars[count] = last
    _swap(heap, 0, last)
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            return
        if child + 1 < last and _closes_before(heap[child + 1], heap[child]):
            child += 1
        if not _closes_before(heap[child], heap[i]):
            return
        _swap(heap, i, child)
        i = child


@inner
def end_wait(T: Ptr[Tables], S: Ptr[Memory], g: int, close: int) -> bool:
    """Make group `g`, whose wait ends at `close`, final unless something has killed it; False: there is no room."""
    edge = i64(v.groups(S)[g].edge)
    if not killed(T, S, g):
        cut, query = cut_of(T, S, g, close), i64(v.edges(T)[edge].query)
        if is_queue(T, edge):
            while v.groups(S)[g].old >= 0 or v.groups(S)[g].new >= 0:
                turn(T, S, g)  # it has no unions, so it needs no nodes
                if not add_final(S, i64(v.aged(S)[v.groups(S)[g].old].node), cut, query):
                    return False
                pop(T, S, g)
        elif not add_final(S, i64(v.groups(S)[g].node), cut, query):
            return False
    remove_group(T, S, g)
    return True


@inner
def cut_of(T: Ptr[Tables], S: Ptr[Memory], g: int, close: int) -> int:
    """What starts before does not belong to the window of group `g`, whose wait ends at `close`."""
    window = v.windows(T)[v.edges(T)[v.groups(S)[g].edge].query]
    if window.size == 0:
        return i64(BEFORE_ALL)
    if window.slides == 1:  # all its prefixes start together, not before this: the same cut for all of a moment
        return close - window.size
    return v.groups(S)[g].close - window.size + 1


@inner
def add_final(S: Ptr[MatchMemory], node: int, cut: int, query: int) -> bool:
    """The matches of a query below `node` (-1: dead) that start at `cut` or later are complete; False: there is no
    room."""
    scalars = v.scalars(S)
    if scalars[FINALS] == v.finals(S).shape[0]:
        return False
    if node >= 0:
        v.finals(S)[scalars[FINALS], 0] = node
        v.finals(S)[scalars[FINALS], 1] = cut
        v.finals(S)[scalars[FINALS], 2] = query
        scalars[FINALS] += 1
    return True


@inner
def close_waits(T: Ptr[Tables], S: Ptr[Memory], clock: int) -> int:
    """Groups of the first window that has closed before `clock` become final; those of the next one when these have
    been emitted, since bounds are of an instant, however many are passed at once."""
    scalars = v.scalars(S)
    while scalars[CLOSINGS] > 0 and v.closings(S)[0].close < clock:
        moment = v.closings(S)[0].close
        if scalars[FINALS] > 0 and moment != scalars[MOMENT]:
            return DONE
        scalars[MOMENT] = moment
        if not close_first(T, S):
            return NEED_FINALS
    return DONE


@inner
def close_first(T: Ptr[Tables], S: Ptr[Memory]) -> bool:
    """The earliest closing comes; False: there is no room."""
    first, groups = v.closings(S)[0], v.groups(S)
    g = i64(first.group)
    alive = groups[g].edge >= 0 and groups[g].serial == first.serial
    if alive and not end_wait(T, S, g, first.close):
        return False
    _pop(v.closings(S), v.scalars(S), CLOSINGS)
    return True
