"""Operators tick by tick, where what is found at a tick decides about what comes at the next: RSEP-QL's consumption
(operators.md, 4.2).

Each tick has four phases: events come and go, and those that were used up before go; each operator takes its input;
what has been found is put aside; the items that justify it are used up. A kernel that lacks room is left to Python,
which steps that operator and calls again: the place stands in the scalars.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arranging import arrange
from oxiseq.engine.kernels.flow.copying import pick
from oxiseq.engine.kernels.flow.counting import consolidate, distinct
from oxiseq.engine.kernels.flow.following import extreme, follow
from oxiseq.engine.kernels.flow.joining import join
from oxiseq.engine.kernels.flow.moments import time_in
from oxiseq.engine.kernels.memory.pointers import Array, view_of

PICK, FOLLOW, EXTREME, DISTINCT, CONSOLIDATE, ARRANGE, JOIN = range(7)
"""Kinds of operators."""
ARGUMENTS = 6
"""Of a kernel, at the most."""
INPUTS = {PICK: (1,), FOLLOW: (3, 4), EXTREME: (2,), DISTINCT: (1,), CONSOLIDATE: (1,), ARRANGE: (1,), JOIN: (2, 4)}
"""Which of a kernel's arguments are the deltas that it reads. The last one is that which it writes."""

FEED, WORK, KEEP, USE = range(4)
"""Phases of a tick."""

DONE, NEED_FED, NEED_STEP, NEED_KEPT, NEED_USED = range(5)
"""What the kernel answers: that it is through; that a source's delta, an operator, what is put aside or a source's list
of used rows lacks room. `WHICH` says which one."""

(
    STRETCH,  # whose tick is worked on
    EXTRA,  # ticks of this stretch that are done
    TICK,  # number of the tick
    PHASE,
    NODE,  # operator that comes next; what is put aside next
    WHICH,
    SCALARS,
) = range(7)


class Stepped(NamedTuple):
    """What is driven."""

    scalars: Array
    nodes: Array
    """i64[operators, 3 + ARGUMENTS]: kind; the deltas that it reads, the same one twice if there is one; arguments."""
    outs: Array
    """i64: the deltas that operators write."""
    sources: Array
    """i64[sources, 3]: address of its Source, its delta, its stream."""
    kept: Array
    """i64[kept, 2]: a delta, and the one to which it is added tick by tick."""
    used: Array
    """i64[events, 3]: a delta of items that are used up, the column of an event's place, its stream."""
    more: Array
    """i64[stretches]: further ticks at which windows hold the same."""
    counts: Array
    """i64[stretches]: how many ticks have been worked on. Those at which nothing changes any more are not."""


class Source(NamedTuple):
    """Event mappings, in the order of their items' places."""

    rows: Array
    place: Array
    used: Array
    """bool: the item has been used up."""
    at: Array
    """i64[changes], ascending: stretches at which a row comes into the window or leaves it."""
    row: Array
    weight: Array
    starts: Array
    """i64[stretches]: the window holds the places from there on, `stops` not included."""
    stops: Array
    going: Array
    """i64: rows that go at the next tick, since they have been used up while they were in the window."""
    state: Array
    """i64[SOURCE_STATE]."""


(
    NEXT,  # change that comes next
    GOING,  # rows that go at the next tick
    LIVE,  # rows in use
    SOURCE_STATE,
) = range(4)

_scalars: Any = view_of(Stepped, "scalars", np.int64)
_nodes: Any = view_of(Stepped, "nodes", np.int64, 2)
_outs: Any = view_of(Stepped, "outs", np.int64)
_sources: Any = view_of(Stepped, "sources", np.int64, 2)
_kept: Any = view_of(Stepped, "kept", np.int64, 2)
_used: Any = view_of(Stepped, "used", np.int64, 2)
_more: Any = view_of(Stepped, "more", np.int64)
_counts: Any = view_of(Stepped, "counts", np.int64)

_rows: Any = view_of(Source, "rows", np.uint32, 2)
_place: Any = view_of(Source, "place", np.int64)
_is_used: Any = view_of(Source, "used", np.bool_)
_at: Any = view_of(Source, "at", np.int64)
_row: Any = view_of(Source, "row", np.int64)
_weight: Any = view_of(Source, "weight", np.int64)
_starts: Any = view_of(Source, "starts", np.int64)
_stops: Any = view_of(Source, "stops", np.int64)
_going: Any = view_of(Source, "going", np.int64)
_state: Any = view_of(Source, "state", np.int64)


@kernel
def step_by_tick(M: int) -> int:
    """Work through all stretches from where the scalars say."""
    scalars, more, counts = _scalars(M), _more(M), _counts(M)
    while scalars[STRETCH] < more.shape[0]:
        if scalars[PHASE] == FEED:
            if not _feed(M):
                return NEED_FED
            scalars[PHASE], scalars[NODE] = WORK, 0
        if scalars[PHASE] == WORK:
            if not _work(M):
                return NEED_STEP
            scalars[PHASE], scalars[NODE] = KEEP, 0
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
def _is_going(M: Any) -> bool:
    sources = _sources(M)
    going = np.int64(0)
    for s in range(sources.shape[0]):
        going += _state(sources[s, 0])[GOING]
    return going > 0


@inner
def _feed(M: Any) -> bool:
    """What comes and goes at the tick. False: there is no room for it; nothing has been changed then that is not
    changed again."""
    scalars, sources, outs = _scalars(M), _sources(M), _outs(M)
    stretch = scalars[STRETCH] if scalars[EXTRA] == 0 else np.int64(-1)
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
            _write(S, out, _going(S)[i], -1, scalars[TICK])
        state[GOING] = 0
        while state[NEXT] < at.shape[0] and at[state[NEXT]] == stretch:
            i = state[NEXT]
            if not used[row[i]]:
                _write(S, out, row[i], weight[i], scalars[TICK])
            state[NEXT] = i + 1
    for n in range(outs.shape[0]):
        buffers.count(outs[n])[0] = 0
    return True


@inner
def _write(S: Any, out: Any, row: int, weight: int, tick: int) -> None:
    n, rows, made = buffers.count(out)[0], _rows(S), buffers.rows(out)
    buffers.at(out)[n], buffers.weight(out)[n] = tick, weight
    for c in range(made.shape[1]):
        made[n, c] = rows[row, c]
    buffers.count(out)[0] = n + 1


# --- operators ---------------------------------------------------------------------------------------


@inner
def _work(M: Any) -> bool:
    """Step the operators that have input. False: one lacks room."""
    scalars, nodes = _scalars(M), _nodes(M)
    for n in range(scalars[NODE], nodes.shape[0]):
        if buffers.count(nodes[n, 1])[0] or buffers.count(nodes[n, 2])[0]:
            kind, a, b, c = nodes[n, 0], nodes[n, 3], nodes[n, 4], nodes[n, 5]
            if kind == PICK:
                answer = pick(a, b, c)
            elif kind == FOLLOW:
                answer = follow(a, b, c, nodes[n, 6], nodes[n, 7], nodes[n, 8])
            elif kind == EXTREME:
                answer = extreme(a, b, c, nodes[n, 6])
            elif kind == DISTINCT:
                answer = distinct(a, b, c)
            elif kind == CONSOLIDATE:
                answer = consolidate(a, b, c)
            elif kind == ARRANGE:
                answer = arrange(a, b)
            else:
                answer = join(a, b, c, nodes[n, 6], nodes[n, 7], nodes[n, 8])
            if answer != buffers.DONE:
                scalars[WHICH] = n
                scalars[NODE] = n + 1  # Python finishes this one
                return False
    return True


@inner
def _keep(M: Any) -> bool:
    """Put what has been found behind what was before. False: there is no room for it."""
    scalars, kept = _scalars(M), _kept(M)
    for k in range(scalars[NODE], kept.shape[0]):
        D, out = kept[k, 0], kept[k, 1]
        count, top, rows, made = buffers.count(D)[0], buffers.count(out)[0], buffers.rows(D), buffers.rows(out)
        if top + count > buffers.at(out).shape[0]:
            scalars[NODE] = scalars[WHICH] = k
            return False
        at, weight, new_at, new_weight = buffers.at(D), buffers.weight(D), buffers.at(out), buffers.weight(out)
        for i in range(count):
            new_at[top + i], new_weight[top + i] = at[i], weight[i]
            for c in range(rows.shape[1]):
                made[top + i, c] = rows[i, c]
        buffers.count(out)[0] = top + count
    return True


# --- items are used up -------------------------------------------------------------------------------


@inner
def _use(M: Any) -> bool:
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
def _use_item(M: Any, place: int, stream: int) -> bool:
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
def _first_at(places: Any, count: int, place: int) -> int:
    """The first of so many ascending places that is not below one."""
    low, high = np.int64(0), count
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low
