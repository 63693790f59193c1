"""What one event does to its partition: every live state moves on, with the event in D and without it, and runs begin.

What comes to one state is melded, so an event costs one step per live state, however many prefixes these represent
and whatever the window. New states are written aside (`fresh`) and nothing changes before the event is through.
Where all states stay what they are and few of them get the event into D, as with `;`, they are changed in place.

A window of an attribute forgets, too. The attribute may fall: then an event that many others have left behind is in
the window again, and who wants every match can never forget one. Where the attribute does not fall, as with a
timestamp, that would keep all for nothing. So what begins a match is forgotten when it was outside the windows of all
of the last DISORDER events of its partition, and an event whose window reaches back behind what has ever been
forgotten is counted (BEHIND): matches that end there may be missing.

What is forgotten is dropped when there is occasion (`tau`), unseen as long as no window reaches back there. When one
does it is dropped at once (NEED_PURGE) and nothing is any more until DISORDER events later, so that
what begins there later is kept. Events are counted only while something has begun in the partition: one in which
nothing has is as one that is new, so it may be given up (engine/matches/partitions.py). None of it depends on batches.
"""

from __future__ import annotations

from typing import Any

from oxiseq.engine.kernels.cea import records as v
from oxiseq.engine.kernels.cea.clocks import query_of
from oxiseq.engine.kernels.cea.records import (
    BASE,
    BEFORE_ALL,
    BEHIND,
    BY_ATTRIBUTE,
    BY_EVENTS,
    BY_TIME,
    CANNOT_END,
    CUT,
    DISORDER,
    EPOCH,
    KIND,
    KNOWN,
    LIVE_TOP,
    MARKED_ENDS,
    NEED_FRESH,
    NEED_LIVE,
    NEED_PURGE,
    NEED_STATE,
    NEED_SYMBOL,
    NEVER,
    NONE,
    OTHER_BEGINS,
    OTHER_ENDS,
    SERIAL,
    SIZE,
    STRIDE,
    TOUCHED,
    WANTED_STATE,
    WANTED_SYMBOL,
    Cache,
    Events,
    Memory,
)
from oxiseq.engine.kernels.cea.symbols import is_read, number_of, recall
from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.matches.nodes import meld, output
from oxiseq.engine.kernels.matches.records import DONE, FINALS, NEED_NODES, NODE_TOP, PLACE_BITS, SPINE, MatchMemory
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr

FEW = 8
"""As many live records may be marked in place, by searching for the states that they come to."""


@inner
def read(A: Ptr[Cache], S: Ptr[Memory], E: Ptr[Events], at: int) -> int:
    """READ for one event."""
    scalars, sizes = v.scalars(S), v.sizes(A)
    symbol = number_of(A, v.symbol(E), at)
    if symbol < 0:
        return NEED_SYMBOL
    part = v.parts(S)[v.partition(E)[at]]
    if part.epoch != scalars[EPOCH]:
        part.epoch = scalars[EPOCH]
        part.count = 0
        part.restless = 0
    if sizes[KIND] == BY_ATTRIBUTE and part.count == 0:
        begin_anew(part)
    scalars[FINALS] = 0
    scalars[TOUCHED] += part.count
    if 2 * part.count + 2 > v.fresh(S).shape[0]:
        return NEED_FRESH
    kind = sizes[KIND]
    clock, cut = i64(0), i64(BEFORE_ALL)
    if kind == BY_EVENTS:
        clock = i64(part.clock)
        cut = window_start(clock, sizes[SIZE], 1, 0)
    elif kind == BY_TIME:
        clock = v.clock(E)[at]
        cut = window_start(clock, v.queries(A)[query_of(A, v.partition(E)[at])].back, 1, 0)
    elif kind == BY_ATTRIBUTE:
        clock, cut = v.clock(E)[at], v.cut(E)[at]
    scalars[CUT] = cut
    tau = cut
    if kind == BY_ATTRIBUTE:
        if cut < part.tau and is_read(A, E, at):  # what may not have been dropped yet is in its window
            return NEED_PURGE
        tau = i64(part.tau)
    changed = _scan(A, S, part, symbol, tau)
    if changed == 0 and v.moves(A)[symbol].flags == KNOWN and not v.moves(A)[symbol].place:
        passed(A, S, E, part, at)
        return DONE
    base = scalars[NODE_TOP]
    pos = (scalars[BASE] + v.event(E)[at]) << PLACE_BITS
    in_place = changed >= 0 and _has_room(S, part, changed)
    if in_place:
        made = _mark_in_place(A, S, part, symbol, pos, tau, changed)
    else:
        scalars[SERIAL] += 1
        made = _move_all(A, S, part, symbol, pos, tau)
    if made >= 0 and clock != NEVER:
        made = _begin(A, S, part, in_place, symbol, pos, clock, tau, made)
    if made >= 0:
        made = _keep_in_place(A, S, part, made) if in_place else _keep(A, S, part, made)
    if made < 0:
        scalars[NODE_TOP] = base
        scalars[FINALS] = 0
        return -made
    scalars[TOUCHED] += scalars[NODE_TOP] - base
    passed(A, S, E, part, at)
    return DONE


@inner
def passed(A: Ptr[Cache], S: Ptr[Memory], E: Ptr[Events], part: Any, at: int) -> None:
    """The partition has had an event."""
    part.clock += 1
    if v.sizes(A)[KIND] == BY_ATTRIBUTE:
        age(A, S, E, part, at)


@inner
def _scan(A: Ptr[Cache], S: Ptr[Memory], part: Any, symbol: int, tau: int) -> int:
    """How many live records do more than wait; they are copied to `fresh`. -1: more than FEW, or something leaves
    its state, is dead or not known."""
    moves, live, fresh = v.moves(A), v.live(S), v.fresh(S)
    stride = v.sizes(A)[STRIDE]
    if not moves[symbol].flags & KNOWN:
        return i64(-1)
    changed = i64(0)
    first = i64(part.first)
    for i in range(first, first + part.count):
        entry = live[i]
        state = i64(entry.state)
        move = moves[state * stride + symbol]
        if move.other != state or entry.maxs < tau or not move.flags & KNOWN:
            return i64(-1)
        if move.flags != KNOWN or move.place:
            if changed == FEW:
                return i64(-1)
            there = fresh[changed]
            there.maxs = entry.maxs
            there.state = entry.state
            there.node = entry.node
            changed += 1
    return changed


@inner
def _has_room(S: Ptr[MatchMemory], part: Any, changed: int) -> bool:
    """Whether nothing can be lacking when so many records are marked and runs begin: then nothing need be undone."""
    most = v.scalars(S)[NODE_TOP] + (changed + 2) * (SPINE + 2)
    return most <= v.nodes(S).shape[0] and part.count + changed + 2 <= part.room


@inner
def _mark_in_place(A: Ptr[Cache], S: Ptr[Memory], part: Any, symbol: int, pos: int, tau: int, changed: int) -> int:
    """The moves of the records that `_scan` has copied; the others stay where they are. As `_move_all`."""
    moves, fresh = v.moves(A), v.fresh(S)
    stride = v.sizes(A)[STRIDE]
    made = i64(part.count)
    for i in range(changed):
        if moves[fresh[i].state * stride + symbol].flags & OTHER_ENDS:
            _end(S, i64(fresh[i].node))
    for i in range(changed):
        move = moves[fresh[i].state * stride + symbol]
        if move.place:
            made = _mark(A, S, part, True, fresh[i], move, pos, tau, made)
    return made


@inner
def _move_all(A: Ptr[Cache], S: Ptr[Memory], part: Any, symbol: int, pos: int, tau: int) -> int:
    """The live states' moves; how many new live records there are, or minus what is needed.

    First those without the event, then those with it in D: the order of the states.
    """
    scalars, live, moves = v.scalars(S), v.live(S), v.moves(A)
    stride = v.sizes(A)[STRIDE]
    made = i64(0)
    first = i64(part.first)
    for i in range(first, first + part.count):
        entry = live[i]
        if entry.maxs < tau:
            continue
        move = moves[entry.state * stride + symbol]
        if not move.flags & KNOWN and not recall(A, i64(entry.state), symbol):
            scalars[WANTED_STATE] = entry.state
            scalars[WANTED_SYMBOL] = symbol
            return -NEED_STATE
        if move.flags & OTHER_ENDS:
            _end(S, i64(entry.node))
        if move.other != NONE:
            made = _seat(A, S, i64(move.other), i64(entry.node), entry.maxs, tau, made)
            if made < 0:
                return made
    for i in range(first, first + part.count):
        move = moves[live[i].state * stride + symbol]
        if move.place and live[i].maxs >= tau:
            made = _mark(A, S, part, False, live[i], move, pos, tau, made)
            if made < 0:
                return made
    return made


@inner
def _mark(
    A: Ptr[Cache], S: Ptr[Memory], part: Any, in_place: bool, entry: Any, move: Any, pos: int, tau: int, made: int
) -> int:
    """The event comes into D after the prefixes of a live record."""
    scalars, nodes = v.scalars(S), v.nodes(S)
    if scalars[NODE_TOP] + SPINE + 2 > nodes.shape[0]:
        return -NEED_NODES
    node = output(nodes, scalars, i64(entry.node), pos | move.place, entry.maxs)
    if move.flags & MARKED_ENDS:
        _end(S, node)
    if move.marked == NONE:
        return made
    return _come(A, S, part, in_place, i64(move.marked), node, entry.maxs, tau, made)


@inner
def _begin(
    A: Ptr[Cache], S: Ptr[Memory], part: Any, in_place: bool, symbol: int, pos: int, clock: int, tau: int, made: int
) -> int:
    """Runs that begin with the event, not in D or in it; as `_move_all`."""
    scalars, nodes = v.scalars(S), v.nodes(S)
    move = v.moves(A)[symbol]
    if not move.flags & KNOWN and not recall(A, i64(0), symbol):
        scalars[WANTED_STATE] = 0
        scalars[WANTED_SYMBOL] = symbol
        return -NEED_STATE
    if move.flags & OTHER_BEGINS:
        if scalars[NODE_TOP] + 1 > nodes.shape[0]:
            return -NEED_NODES
        node = output(nodes, scalars, NONE, pos, clock)
        if move.flags & OTHER_ENDS:
            _end(S, node)
        if move.other != NONE:
            made = _come(A, S, part, in_place, i64(move.other), node, clock, tau, made)
    if made >= 0 and move.place:
        if scalars[NODE_TOP] + 1 > nodes.shape[0]:
            return -NEED_NODES
        node = output(nodes, scalars, NONE, pos | move.place, clock)
        if move.flags & MARKED_ENDS:
            _end(S, node)
        if move.marked != NONE:
            made = _come(A, S, part, in_place, i64(move.marked), node, clock, tau, made)
    return made


@inner
def _end(S: Ptr[MatchMemory], node: int) -> None:
    """Complex events end here: there is room for two per live state and two that begin."""
    scalars = v.scalars(S)
    v.finals(S)[scalars[FINALS], 0] = node
    v.finals(S)[scalars[FINALS], 1] = scalars[CUT]
    scalars[FINALS] += 1


@inner
def _come(
    A: Ptr[Cache], S: Ptr[Memory], part: Any, in_place: bool, state: int, node: int, maxs: int, tau: int, made: int
) -> int:
    """Prefixes come to a state; the number of live records, or minus what is needed."""
    if not in_place:
        return _seat(A, S, state, node, maxs, tau, made)
    live = v.live(S)
    at = i64(part.first)
    end = at + made
    while at < end and live[at].state != state:
        at += 1
    there = live[at]
    if at == end:
        there.state = state
        there.node = node
        there.maxs = maxs
        return made + 1
    there.node = meld(v.nodes(S), v.scalars(S), v.spine(S), node, i64(there.node), tau)
    there.maxs = max(there.maxs, maxs)
    return made


@inner
def _seat(A: Ptr[Cache], S: Ptr[Memory], state: int, node: int, maxs: int, tau: int, made: int) -> int:
    """`_come` to the new live records."""
    scalars, fresh, seat, seated = v.scalars(S), v.fresh(S), v.seat(A), v.seated(A)
    if seated[state] != scalars[SERIAL]:
        seated[state] = scalars[SERIAL]
        seat[state] = made
        fresh[made].state = state
        fresh[made].node = node
        fresh[made].maxs = maxs
        return made + 1
    if scalars[NODE_TOP] + SPINE + 2 > v.nodes(S).shape[0]:
        return -NEED_NODES
    there = fresh[seat[state]]
    there.node = meld(v.nodes(S), scalars, v.spine(S), node, i64(there.node), tau)
    there.maxs = max(there.maxs, maxs)
    return made


@inner
def _keep_in_place(A: Ptr[Cache], S: Ptr[Memory], part: Any, made: int) -> int:
    """The records that have been added count; `made`."""
    live, restless = v.live(S), v.restless(A)
    first = i64(part.first)
    for i in range(first + part.count, first + made):
        part.restless |= restless[live[i].state]
    part.count = made
    return made


@inner
def _keep(A: Ptr[Cache], S: Ptr[Memory], part: Any, made: int) -> int:
    """The new live records become the partition's; `made`, or minus what is needed."""
    scalars, live, fresh, restless = v.scalars(S), v.live(S), v.fresh(S), v.restless(A)
    if made > part.room:
        room = max(i64(2), 2 * i64(part.room))
        while room < made:
            room *= 2
        if scalars[LIVE_TOP] + room > live.shape[0]:
            return -NEED_LIVE
        part.first = scalars[LIVE_TOP]
        part.room = room
        scalars[LIVE_TOP] += room
    waits = i64(0)
    for i in range(made):
        entry, there = fresh[i], live[part.first + i]
        there.state = entry.state
        there.node = entry.node
        there.maxs = entry.maxs
        waits |= restless[entry.state]
    part.count = made
    part.restless = waits
    return made


# --- what a window of an attribute may forget ---------------------------------------------------------


@inner
def age(A: Ptr[Cache], S: Ptr[Memory], E: Ptr[Events], part: Any, at: int) -> None:
    """The partition has had an event, whether a letter reads it or not. No live record is dead afterwards."""
    cut = v.cut(E)[at]
    if cut == CANNOT_END:
        return
    if cut < part.gone and is_read(A, E, at):
        v.scalars(S)[BEHIND] += 1
    if part.count == 0 or part.epoch != v.scalars(S)[EPOCH]:
        return
    part.low = min(i64(part.low), cut)
    part.aged += 1
    if part.aged >= v.sizes(A)[DISORDER]:
        part.tau = max(i64(part.tau), i64(part.low))  # what is forgotten stays so until it is dropped
        part.gone = max(i64(part.gone), i64(part.low))
        part.low = CANNOT_END
        part.aged = 0
        _drop(S, part)


@inner
def begin_anew(part: Any) -> None:
    """Nothing has begun in the partition: nothing of it is forgotten, but for how far it ever was (`gone`)."""
    part.tau = BEFORE_ALL
    part.low = CANNOT_END
    part.aged = 0


@inner
def _drop(S: Ptr[Memory], part: Any) -> None:
    """Live records that start before `tau` go, so that `count` tells whether something has begun."""
    live = v.live(S)
    first, count = i64(part.first), i64(0)
    for i in range(first, first + part.count):
        if live[i].maxs >= part.tau:
            there = live[first + count]
            there.maxs = live[i].maxs
            there.state = live[i].state
            there.node = live[i].node
            count += 1
    part.count = count
    if count == 0:
        part.restless = 0
