"""Operators tick by tick, where what is found at a tick decides about what comes at the next: RSEP-QL's consumption
(operators.md, 4.2).

Each tick has four phases: events come and go, and those that were used up before go; each operator takes its input;
what has been found is put aside; the items that justify it are used up. A kernel that lacks room is left to Python,
which steps that operator and calls again: the place is in the scalars.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.copying import append, put_row
from oxiseq.engine.kernels.flow.driving import ALL_DONE, driven
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

FEED, WORK, KEEP, USE = range(4)
"""Phases of a tick."""

DONE, NEED_FED, NEED_STEP, NEED_KEPT, NEED_USED = range(5)
"""What the kernel answers: that it is through; that a source's delta, an operator, what is put aside or a source's list
of used rows lacks room. `WHICH` says which one."""

(
    STRETCH,  # whose tick is in work
    EXTRA,  # ticks of this stretch that are done
    TICK,  # number of the tick
    PHASE,
    NEXT_KEPT,  # what is put aside next
    WHICH,
    STEPS,  # address of the operators' table (driving.py)
    SCALARS,
) = range(8)


class Stepped(Arrays):
    """What is driven."""


_scalars = array(Stepped, "scalars", np.int64)
_sources = array(Stepped, "sources", np.int64, 2)  # i64[sources, 3]: address of its Source, its delta, its stream
_kept = array(Stepped, "kept", np.int64, 2)  # i64[kept, 2]: a delta, and the one to which it is added tick by tick
_used = array(Stepped, "used", np.int64, 2)
"""i64[events, 3]: a delta of items that are used up, the column of an event's place, its stream."""
_more = array(Stepped, "more", np.int64)  # i64[stretches]: further ticks at which windows hold the same
_counts = array(Stepped, "counts", np.int64)
"""i64[stretches]: how many ticks are done. Those at which nothing changes any more are not."""


class Source(Arrays):
    """Event mappings, in the order of their items' places."""


_rows = array(Source, "rows", np.uint32, 2)
_place = array(Source, "place", np.int64)
_is_used = array(Source, "used", np.bool_)  # bool: the item has been used up
_at = array(Source, "at", np.int64)
"""i64[changes], ascending: stretches at which a row comes into the window or leaves it."""
_row = array(Source, "row", np.int64)
_weight = array(Source, "weight", np.int64)
_starts = array(Source, "starts", np.int64)
"""i64[stretches]: the window holds the places from there on, `stops` not included."""
_stops = array(Source, "stops", np.int64)
_going = array(Source, "going", np.int64, rows="going")
"""Rows that go at the next tick, since they have been used up while they were in the window."""
_state = array(Source, "state", np.int64)  # i64[SOURCE_STATE]


(
    NEXT,  # change that comes next
    GOING,  # rows that go at the next tick
    LIVE,  # rows in use
    SOURCE_STATE,
) = range(4)


@kernel
def step_by_tick(M: Ptr[Stepped]) -> int:
    """Work through all stretches from where the scalars say."""
    scalars, more, counts = _scalars(M), _more(M), _counts(M)
    while scalars[STRETCH] < more.shape[0]:
        if scalars[PHASE] == FEED:
            if not _feed(M):
                return NEED_FED
            scalars[PHASE] = WORK
        if scalars[PHASE] == WORK:
            scalars[WHICH] = driven(scalars[STEPS])
            if scalars[WHICH] != ALL_DONE:
                return NEED_STEP
            scalars[PHASE], scalars[NEXT_KEPT] = KEEP, 0
        if scalars[PHASE] == KEEP:
            if not _keep(M):
                return NEED_KEPT
            scalars[PHASE] = USE
        if not _use(M):
            return NEED_USED
        scalars[PHASE] = FEED
        scalars[TICK] += 1
        scalars[EXTRA] += 1
        if scalars[EXTRA] > more[scalars[STRETCH]] or not _is_going(M):
            counts[scalars[STRETCH]] = scalars[EXTRA]
            scalars[STRETCH] += 1
            scalars[EXTRA] = 0
    return DONE


# --- events come and go ------------------------------------------------------------------------------


@inner
def _is_going(M: Ptr[Stepped]) -> bool:
    sources = _sources(M)
    going = i64(0)
    for s in range(sources.shape[0]):
        going += _state(sources[s, 0])[GOING]
    return going > 0


@inner
def _feed(M: Ptr[Stepped]) -> bool:
    """What comes and goes at the tick. False: there is no room for it; nothing has been changed then that is not
    changed again."""
    scalars, sources = _scalars(M), _sources(M)
    stretch = scalars[STRETCH] if scalars[EXTRA] == 0 else i64(-1)
    for s in range(sources.shape[0]):
        S, out = sources[s, 0], sources[s, 1]
        state, at, row, weight, used = _state(S), _at(S), _row(S), _weight(S), _is_used(S)
        last = state[NEXT]
        while last < at.shape[0] and at[last] == stretch:
            last += 1
        if state[GOING] + last - state[NEXT] > buffers.at(out).shape[0]:
            scalars[WHICH] = s
            return False
    for s in range(sources.shape[0]):
        S, out = sources[s, 0], sources[s, 1]
        state, at, row, weight, used = _state(S), _at(S), _row(S), _weight(S), _is_used(S)
        buffers.count(out)[0] = 0
        for i in range(state[GOING]):
            put_row(out, scalars[TICK], -1, _rows(S), _going(S)[i], 0, _rows(S).shape[1])
        state[GOING] = 0
        while state[NEXT] < at.shape[0] and at[state[NEXT]] == stretch:
            i = state[NEXT]
            if not used[row[i]]:
                put_row(out, scalars[TICK], weight[i], _rows(S), row[i], 0, _rows(S).shape[1])
            state[NEXT] = i + 1
    return True


# --- what is found ------------------------------------------------------------------------------------


@inner
def _keep(M: Ptr[Stepped]) -> bool:
    """Put what has been found behind what was before. False: there is no room for it."""
    scalars, kept = _scalars(M), _kept(M)
    for k in range(scalars[NEXT_KEPT], kept.shape[0]):
        if not append(kept[k, 0], kept[k, 1]):
            scalars[NEXT_KEPT] = scalars[WHICH] = k
            return False
    return True


# --- items are used up -------------------------------------------------------------------------------


@inner
def _use(M: Ptr[Stepped]) -> bool:
    """Use up the items of all that has been found at the tick. False: a list of rows lacks room; what has been used up
    is not used up again."""
    used = _used(M)
    for u in range(used.shape[0]):
        D, column, stream = used[u, 0], used[u, 1], used[u, 2]
        rows, weight = buffers.rows(D), buffers.weight(D)
        for i in range(buffers.count(D)[0]):
            if weight[i] > 0 and not _use_item(M, time_in(rows, i, column), stream):
                return False
    return True


@inner
def _use_item(M: Ptr[Stepped], place: int, stream: int) -> bool:
    """The rows of an item in all sources of its stream."""
    scalars, sources = _scalars(M), _sources(M)
    for s in range(sources.shape[0]):
        S = sources[s, 0]
        if sources[s, 2] != stream:
            continue
        places, used, state, going = _place(S), _is_used(S), _state(S), _going(S)
        there = _starts(S)[scalars[STRETCH]] <= place < _stops(S)[scalars[STRETCH]]
        e = _first_at(places, state[LIVE], place)
        while e < state[LIVE] and places[e] == place:
            if not used[e]:
                if there:
                    if state[GOING] == going.shape[0]:
                        scalars[WHICH] = s
                        return False
                    going[state[GOING]] = e
                    state[GOING] += 1
                used[e] = True
            e += 1
    return True


@inner
def _first_at(places: Array, count: int, place: int) -> int:
    """The first of so many ascending places that is not below one."""
    low, high = i64(0), count
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low
