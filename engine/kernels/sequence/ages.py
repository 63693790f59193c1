"""Time passes for runs in age segments, and in gaps with negated groups: they go on to the next edge of their gap,
become matches, or are dropped.

Entries leave an edge in the order in which their runs came to the gap, one by one: the next segment's order stays
that of time (answers.md 3.3).
"""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.records import DONE, FINALS
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.sequence import records as v
from oxiseq.engine.kernels.sequence.closings import add_final, close_first, cut_of, pop_lapse
from oxiseq.engine.kernels.sequence.groups import killed, remove_group
from oxiseq.engine.kernels.sequence.queues import is_queue, pop, turn
from oxiseq.engine.kernels.sequence.records import (
    AGEING,
    BEFORE_ALL,
    CLOSINGS,
    DUE,
    LAPSES,
    MOMENT,
    MOVING,
    NEED_FINALS,
    NEVER_CLOSES,
    NO_AGE,
    NUMBERED,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.sequence.writing import insert_run
from oxiseq.engine.kernels.terms.columns import Columns


@inner
def pass_time(T: Ptr[Tables], S: Ptr[Memory], C: Columns, now: int, clock: int, rows: bool) -> int:
    """No event before `now` (µs; `clock` in the window's unit) will come: runs that are too old by then leave their
    segments. Where some become matches so, what else waits for its window to close before `now` does too; it returns
    with the finals of one moment, and is called again.

    `rows`: rows come at `now`. Only then do those runs move that rows may join: how they are joined decides the order
    of matches, which must not depend on how events are batched.
    """
    if rows and v.scalars(S)[DUE] < now:
        for i in range(v.sizes(T)[MOVING]):
            edge = i64(v.aged_edges(T)[i])
            while _due(T, S, edge) < now:
                need = _leave(T, S, C, edge, now, clock)
                if need != DONE:
                    return need
    if v.sizes(T)[MOVING] < v.sizes(T)[AGEING]:
        need = _decide(T, S, C, now, clock)
        if need != DONE or v.scalars(S)[FINALS] > 0:
            return need
    if v.scalars(S)[DUE] < now:
        due = i64(NEVER_CLOSES)
        for i in range(v.sizes(T)[AGEING]):
            due = min(due, _due(T, S, i64(v.aged_edges(T)[i])))
        v.scalars(S)[DUE] = due
    return DONE


@inner
def _due(T: Ptr[Tables], S: Ptr[Memory], edge: int) -> int:
    """How long the oldest run of an edge may stay; NEVER_CLOSES if there is none."""
    x = i64(v.ages(S)[edge].oldest)
    return v.aged(S)[x].time + v.edges(T)[edge].limit if x >= 0 else i64(NEVER_CLOSES)


@inner
def _decide(T: Ptr[Tables], S: Ptr[Memory], C: Columns, now: int, clock: int) -> int:
    """Whatever becomes a match before `now`, as far as the first moment at which something does."""
    scalars = v.scalars(S)
    in_groups = v.edges(T)[v.aged_edges(T)[v.sizes(T)[AGEING] - 1]].limit == NO_AGE
    while True:
        first, moment = i64(-1), i64(NEVER_CLOSES)
        for i in range(v.sizes(T)[MOVING], v.sizes(T)[AGEING]):
            edge = i64(v.aged_edges(T)[i])
            due = _due(T, S, edge)
            if due < moment:
                first, moment = edge, due
        lapses = in_groups and scalars[LAPSES] > 0 and v.lapses(S)[0].close < moment
        if lapses:
            moment = v.lapses(S)[0].close
        timed = scalars[CLOSINGS] > 0 and v.sizes(T)[NUMBERED] == 0  # else `advance` closes windows
        closes = timed and v.closings(S)[0].close <= moment
        if closes:
            moment = v.closings(S)[0].close
        if moment >= now or (scalars[FINALS] > 0 and moment != scalars[MOMENT]):
            return DONE
        scalars[MOMENT] = moment
        need = DONE
        if closes:
            need = DONE if close_first(T, S) else NEED_FINALS
        elif lapses:
            need = _lapse(T, S, C, clock)
        else:
            need = _leave(T, S, C, first, now, clock)
        if need != DONE:
            return need


@inner
def _leave(T: Ptr[Tables], S: Ptr[Memory], C: Columns, edge: int, now: int, clock: int) -> int:
    """The oldest run of `edge` leaves it. Nothing has changed for it where something is full."""
    groups, x = v.groups(S), i64(v.ages(S)[edge].oldest)
    g, then = i64(v.aged(S)[x].group), i64(v.edges(T)[edge].then)
    if killed(T, S, g):
        remove_group(T, S, g)
        return DONE
    need = turn(T, S, g)
    if need != DONE:
        return need
    node = i64(v.aged(S)[x].node)
    if then >= 0 and node >= 0:
        for c in range(v.edges(T)[edge].width):
            v.key(S)[c] = v.keys(S)[g, c]
        # a negation of the next segment is one of this segment too: the group is alive, so none came since its insert
        need = insert_run(
            T, S, C, then, node, groups[g].inserted, clock, v.aged(S)[x].time, i64(BEFORE_ALL), groups[g].close
        )
        if need != DONE:
            return need
    elif v.edges(T)[edge].waits == 1 and not add_final(S, node, _cut(T, S, g), i64(v.edges(T)[edge].query)):
        return NEED_FINALS
    if pop(T, S, g):
        remove_group(T, S, g)
    return DONE


@inner
def _cut(T: Ptr[Tables], S: Ptr[Memory], g: int) -> int:
    """What starts before does not belong to the window of group `g`, which becomes a match at MOMENT."""
    if v.windows(T)[v.edges(T)[v.groups(S)[g].edge].query].slides == 1 and v.sizes(T)[NUMBERED] == 1:
        return i64(BEFORE_ALL)  # all its prefixes start together, in the window
    return cut_of(T, S, g, v.scalars(S)[MOMENT])


@inner
def pass_lapses(T: Ptr[Tables], S: Ptr[Memory], C: Columns, now: int, clock: int) -> int:
    """What bounds groups has passed at `now` (µs): they are dropped, or go on. Only before rows are read: which groups
    there are then decides the order of matches, which must not depend on how events are batched. Where it makes
    matches, that is done already, one moment after the other, however events are batched."""
    scalars = v.scalars(S)
    while scalars[LAPSES] > 0 and v.lapses(S)[0].close < now:
        need = _lapse(T, S, C, clock)
        if need != DONE:
            return need
    return DONE


@inner
def _lapse(T: Ptr[Tables], S: Ptr[Memory], C: Columns, clock: int) -> int:
    """The bound that passes first has passed for its group. Nothing has changed where something is full."""
    groups, g = v.groups(S), i64(v.lapses(S)[0].group)
    if groups[g].edge >= 0 and groups[g].serial == v.lapses(S)[0].serial:
        need = _outlive(T, S, C, g, clock)
        if need != DONE:
            return need
        remove_group(T, S, g)
    pop_lapse(S)  # the same: what has gone on lapses later, or has a later serial
    return DONE


@inner
def _outlive(T: Ptr[Tables], S: Ptr[Memory], C: Columns, g: int, clock: int) -> int:
    """The runs of `g` go on to the next edge of their gap, if there is one, or are matches at the end of SEQ. Nothing
    has changed for them where something is full."""
    groups = v.groups(S)
    edge = i64(groups[g].edge)
    then = i64(v.edges(T)[edge].then)
    if is_queue(T, edge) or killed(T, S, g):
        return DONE
    if then < 0:
        if v.edges(T)[edge].waits != 1:
            return DONE
        query = i64(v.edges(T)[edge].query)
        return DONE if add_final(S, i64(groups[g].node), _cut(T, S, g), query) else NEED_FINALS
    for c in range(v.edges(T)[then].width):
        v.key(S)[c] = v.keys(S)[g, v.chain(T)[v.edges(T)[edge].chain0 + c]]
    # a negation there is one of this edge too: the group is alive, so none came since its insert
    node, inserted, close = i64(groups[g].node), groups[g].inserted, groups[g].close
    return insert_run(T, S, C, then, node, inserted, clock, groups[g].time, i64(BEFORE_ALL), close)
