"""Complex events counted without nodes: what each event does to the sets of prefixes is a linear map, and a window is
the composition of its events' maps (answers.md 1.7, tier S).

A partition has two stacks. `back` holds the events since the last flip, newest first, and `maps` the composition of
their maps: line s is what state s has of each state before. `front` holds older events, oldest first, each with the
vector of what has come of the matches that began there or later, up to the flip. So state s has maps[s] · vector of the
oldest. What leaves the window is taken off `front`; when that is empty, it is made of `back`, from the newest event to
the oldest. No map has an inverse, and none is needed. State 0 is before a match begins: it always has one match.

Nothing is changed before an event is through, so the kernel may return what it needs, and repeats the event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oxiseq.engine.kernels.cea import views as v
from oxiseq.engine.kernels.cea.records import (
    BY_EVENTS,
    CONSUME,
    KIND,
    KNOWN,
    LEAST,
    MARKED_ENDS,
    NEED_STATE,
    NEED_SYMBOL,
    NONE,
    OTHER_BEGINS,
    OTHER_ENDS,
    SIZE,
    STRIDE,
    UNBOUNDED,
    Cache,
    Events,
)
from oxiseq.engine.kernels.cea.symbols import is_read, number_of, recall
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.matches.clocks import window_start
from oxiseq.engine.kernels.matches.records import (
    DONE,
    EVERYTHING,
    MATCH_NEEDS,
    NEED_LIMBS,
    OUT_FULL,
    THE_PARTITION,
)
from oxiseq.engine.kernels.matches.weights import add, add_held, add_product, present, put_one, reaches, width
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr, view_of

PART = np.dtype(
    [
        ("clock", "i8"),  # events so far
        ("epoch", "i8"),  # its matches are forgotten if an earlier one than the run's
        ("oldest", "i8"),  # clock of the oldest event of `back`,
        ("newest", "i8"),  # and of the newest event of both
        ("front", "i4"),  # entries; -1: none
        ("back", "i4"),
        ("begun", "i4"),  # 1: its maps are more than the identity
        ("fill", "i4"),
    ],
    align=True,
)
"""A partition."""
ENTRY = np.dtype([("clock", "i8"), ("symbol", "i4"), ("next", "i4")], align=True)
"""An event of a stack; `next`: in `back` the one before, in `front` the one after, of free ones another."""

(
    AT,  # event in work
    BASE,  # position of the batch's first event
    EPOCH,
    STATES,  # that have numbers
    RESTLESS,  # 1: an event that no letter reads may change something
    FREE,  # a free entry; -1: there is none
    OUT,  # rows written
    WANTED_STATE,
    WANTED_SYMBOL,
    ENTRIES,  # in use
    SCALARS,
) = range(11)
NEED_ENTRIES = MATCH_NEEDS + 20
"""Beside the needs of the automaton's kernels."""


class Composed(NamedTuple):
    """The running state. N: states that there may be; a line of N weights, of one in a window without bounds."""

    scalars: Array
    form: Array  # i64: of weights
    parts: Array
    maps: Array  # u64[parts * N, line]
    entries: Array
    vectors: Array  # u64[entries, N weights]
    values: Array  # i64[entries, sums + leasts]: of the entry's event
    flags: Array  # u64[entries]: the same
    held: Array  # u8[places, sums + leasts]: which values the event counts with at a place
    masks: Array  # u64[places]: the same of flags
    work: Array  # u64[2 * N + 1, N + 2 weights]
    dirty: Array  # i64[N]
    out_at: Array  # i64: number of the event in the batch
    out: Array  # u64[n, weight]


class Values(NamedTuple):
    """Of the events of a batch."""

    values: Array  # i64[n, sums + leasts]
    flags: Array  # u64[n]


scalars = view_of(Composed, "scalars", np.int64)
form = view_of(Composed, "form", np.int64)
parts = view_of(Composed, "parts", PART)
maps = view_of(Composed, "maps", np.uint64, 2)
entries = view_of(Composed, "entries", ENTRY)
vectors = view_of(Composed, "vectors", np.uint64, 2)
values = view_of(Composed, "values", np.int64, 2)
flags = view_of(Composed, "flags", np.uint64)
held = view_of(Composed, "held", np.uint8, 2)
masks = view_of(Composed, "masks", np.uint64)
work = view_of(Composed, "work", np.uint64, 2)
dirty = view_of(Composed, "dirty", np.int64)
out_at = view_of(Composed, "out_at", np.int64)
out = view_of(Composed, "out", np.uint64, 2)
batch_values = view_of(Values, "values", np.int64, 2)
batch_flags = view_of(Values, "flags", np.uint64)


@kernel
def compose(A: Ptr[Cache], S: Ptr[Composed], E: Ptr[Events], V: Ptr[Values]) -> int:
    """Work through the events from scalars[AT] on. DONE, or what is needed."""
    state, partition = scalars(S), v.partition(E)
    count = partition.shape[0]
    while state[AT] < count:
        at = state[AT]
        p = partition[at]
        if p >= 0:
            if state[RESTLESS] or is_read(A, E, at):
                need = _read(A, S, E, V, at, p)
                if need != DONE:
                    return need
            parts(S)[p].clock += 1
        state[AT] = at + 1
    return DONE


@inner
def _read(A: Ptr[Cache], S: Ptr[Composed], E: Ptr[Events], V: Ptr[Values], at: int, p: int) -> int:
    """One event of partition `p`."""
    state, part = scalars(S), parts(S)[p]
    symbol = number_of(A, v.symbol(E), at)
    if symbol < 0:
        return NEED_SYMBOL
    for s in range(state[STATES]):
        if not v.moves(A)[s * v.sizes(A)[STRIDE] + symbol].flags & KNOWN and not recall(A, i64(s), symbol):
            state[WANTED_STATE], state[WANTED_SYMBOL] = s, symbol
            return NEED_STATE
    if part.epoch != state[EPOCH]:
        clear(S, p)
        part.epoch = state[EPOCH]
    kind = v.sizes(A)[KIND]
    clock, cut = i64(part.clock), window_start(i64(part.clock), v.sizes(A)[SIZE], 1, 0)
    if kind != BY_EVENTS:
        clock, cut = v.clock(E)[at], v.cut(E)[at]
    if part.begun and kind != UNBOUNDED:
        need = expire(A, S, p, cut)
        if need != DONE:
            return need
    if not part.begun and not _begins(v.moves(A)[symbol]):
        return DONE
    total = 2 * dirty(S).shape[0]
    if not _end(A, S, V, at, p, symbol):
        return NEED_LIMBS
    ends = present(work(S), total, 0)
    told = ends and reaches(form(S), work(S), total, 0, v.sizes(A)[LEAST])
    if told and state[OUT] == out_at(S).shape[0]:
        return OUT_FULL
    need = _move(A, S, V, at, p, symbol, clock, kind)
    if need != DONE:
        return need
    if told:
        row = state[OUT]
        out_at(S)[row] = at
        for w in range(width(form(S))):
            out(S)[row, w] = work(S)[total, w]
        state[OUT] = row + 1
    if ends and v.sizes(A)[CONSUME] == EVERYTHING:
        state[EPOCH] += 1
    elif ends and v.sizes(A)[CONSUME] == THE_PARTITION:
        clear(S, p)
    return DONE


@inner
def _begins(move: Any) -> bool:
    return move.place != 0 or move.flags & OTHER_BEGINS != 0


@inner
def _leads(move: Any, s: int) -> int:
    """The other state that those of state `s` are in without the event; NONE: there is none, or they stay."""
    if s == 0:
        return i64(move.other) if move.flags & OTHER_BEGINS else i64(NONE)
    return i64(NONE) if move.other == s else i64(move.other)


@inner
def _stays(move: Any, s: int) -> bool:
    return s == 0 or move.other == s


@inner
def _end(A: Ptr[Cache], S: Ptr[Composed], V: Ptr[Values], at: int, p: int, symbol: int) -> bool:
    """The weight of what ends at the event, in the last line of `work`; False: numbers need more limbs."""
    room, stride = work(S), v.sizes(A)[STRIDE]
    total, second = 2 * dirty(S).shape[0], width(form(S))
    room[total, 0] = np.uint64(0)
    fits = True
    for s in range(scalars(S)[STATES]):
        move = v.moves(A)[s * stride + symbol]
        if not move.flags & (MARKED_ENDS | OTHER_ENDS):
            continue
        room[total, second] = np.uint64(0)
        fits = _reached(A, S, p, s, total, second) and fits
        if move.flags & MARKED_ENDS:
            mask = batch_flags(V)[at] & masks(S)[move.place]
            place = i64(move.place)
            fits = (
                add_held(form(S), room, total, 0, room, total, second, mask, batch_values(V), at, held(S), place)
                and fits
            )
        if move.flags & OTHER_ENDS:
            fits = add(form(S), room, total, 0, room, total, second) and fits
    return fits


@inner
def _reached(A: Ptr[Cache], S: Ptr[Composed], p: int, s: int, to: int, second: int) -> bool:
    """The weight of state `s` of a partition, into a line of `work`."""
    states, words = dirty(S).shape[0], width(form(S))
    line, front = p * states + s, i64(parts(S)[p].front)
    if v.sizes(A)[KIND] == UNBOUNDED or front < 0:
        return add(form(S), work(S), to, second, maps(S), line, 0)
    fits = True
    for c in range(scalars(S)[STATES]):
        fits = (
            add_product(form(S), work(S), to, second, maps(S), line, c * words, vectors(S), front, c * words) and fits
        )
    return fits


@inner
def _move(A: Ptr[Cache], S: Ptr[Composed], V: Ptr[Values], at: int, p: int, symbol: int, clock: int, kind: int) -> int:
    """The event's map comes behind those of the partition, the event onto `back`."""
    state, changed = scalars(S), dirty(S)
    if not _mark(A, S, symbol):
        return DONE
    if kind != UNBOUNDED and state[FREE] < 0:
        return NEED_ENTRIES
    states, stride, room, here = changed.shape[0], v.sizes(A)[STRIDE], work(S), p * changed.shape[0]
    columns = i64(1) if kind == UNBOUNDED else state[STATES]
    words, fits = width(form(S)), True
    for s in range(state[STATES]):
        if changed[s]:
            stays = _stays(v.moves(A)[s * stride + symbol], s)
            for w in range(columns * words):
                room[states + s, w] = maps(S)[here + s, w] if stays else np.uint64(0)
    for s in range(state[STATES]):
        move = v.moves(A)[s * stride + symbol]
        other = _leads(move, s)
        if move.place and move.marked != NONE:
            mask, place, to = batch_flags(V)[at] & masks(S)[move.place], i64(move.place), states + i64(move.marked)
            for x in range(0, columns * words, words):
                fits = (
                    add_held(form(S), room, to, x, maps(S), here + s, x, mask, batch_values(V), at, held(S), place)
                    and fits
                )
        if other != NONE:
            for x in range(0, columns * words, words):
                fits = add(form(S), room, states + other, x, maps(S), here + s, x) and fits
    if not fits:
        return NEED_LIMBS
    for s in range(state[STATES]):
        if changed[s]:
            for w in range(columns * words):
                maps(S)[here + s, w] = room[states + s, w]
    part = parts(S)[p]
    part.begun = 1
    part.newest = clock
    if kind != UNBOUNDED:
        _push(S, V, at, part, symbol, clock)
    return DONE


@inner
def _mark(A: Ptr[Cache], S: Ptr[Composed], symbol: int) -> bool:
    """Mark the states whose line an event changes; whether there are some."""
    changed, stride, some = dirty(S), v.sizes(A)[STRIDE], False
    for s in range(changed.shape[0]):
        changed[s] = 0
    for s in range(scalars(S)[STATES]):
        move = v.moves(A)[s * stride + symbol]
        other = _leads(move, s)
        if not _stays(move, s):
            changed[s], some = 1, True
        if other != NONE:
            changed[other], some = 1, True
        if move.place and move.marked != NONE:
            changed[move.marked], some = 1, True
    return some


@inner
def _push(S: Ptr[Composed], V: Ptr[Values], at: int, part: Any, symbol: int, clock: int) -> None:
    state = scalars(S)
    e = state[FREE]
    entry = entries(S)[e]
    state[FREE] = entry.next
    state[ENTRIES] += 1
    entry.clock = clock
    entry.symbol = symbol
    entry.next = part.back
    for c in range(values(S).shape[1]):
        values(S)[e, c] = batch_values(V)[at, c]
    flags(S)[e] = batch_flags(V)[at]
    if part.back < 0:
        part.oldest = clock
    part.back = e


@inner
def expire(A: Ptr[Cache], S: Ptr[Composed], p: int, cut: int) -> int:
    """What begins before `cut` leaves the window. DONE, or what is needed."""
    part = parts(S)[p]
    while True:
        while part.front >= 0 and entries(S)[part.front].clock < cut:
            part.front = _release(S, i64(part.front))
        if part.front >= 0:
            return DONE
        if part.back < 0:
            clear(S, p)
            return DONE
        if part.oldest >= cut:
            return DONE
        if not _flip(A, S, p, cut):
            return NEED_LIMBS


@inner
def _release(S: Ptr[Composed], e: int) -> int:
    """Free an entry; the next one of its stack."""
    state, entry = scalars(S), entries(S)[e]
    behind = i64(entry.next)
    entry.next = state[FREE]
    state[FREE] = e
    state[ENTRIES] -= 1
    return behind


@inner
def clear(S: Ptr[Composed], p: int) -> None:
    """A partition has nothing in its window."""
    part = parts(S)[p]
    while part.front >= 0:
        part.front = _release(S, i64(part.front))
    while part.back >= 0:
        part.back = _release(S, i64(part.back))
    part.begun = 0
    identity(S, p)


@inner
def identity(S: Ptr[Composed], p: int) -> None:
    """A partition's maps are those of no event."""
    states, words = dirty(S).shape[0], width(form(S))
    for s in range(states):
        for w in range(maps(S).shape[1]):
            maps(S)[p * states + s, w] = np.uint64(0)
        if s * words < maps(S).shape[1]:
            put_one(form(S), maps(S), p * states + s, s * words)


@inner
def _flip(A: Ptr[Cache], S: Ptr[Composed], p: int, cut: int) -> bool:
    """`front`, which is empty, is made of those of `back` that are not before `cut`; False: it needs more limbs.

    Line s of `work` is what becomes of state s from the event in work up to now.
    """
    room, part, states = work(S), parts(S)[p], dirty(S).shape[0]
    words = width(form(S))
    for s in range(states):
        for w in range(states * words):
            room[s, w] = np.uint64(0)
        put_one(form(S), room, s, s * words)
    e = i64(part.back)
    while e >= 0 and entries(S)[e].clock >= cut:
        if not _before(A, S, e):
            return False
        for w in range(states * words):
            vectors(S)[e, w] = room[0, w]
        e = i64(entries(S)[e].next)
    newer, at = i64(-1), i64(part.back)
    while at != e:
        behind = i64(entries(S)[at].next)
        entries(S)[at].next = newer
        newer, at = at, behind
    while e >= 0:
        e = _release(S, e)
    part.front = newer
    part.back = -1
    identity(S, p)
    return True


@inner
def _before(A: Ptr[Cache], S: Ptr[Composed], e: int) -> bool:
    """The map of an entry's event comes before those that lines of `work` are composed of."""
    room, states, stride = work(S), dirty(S).shape[0], v.sizes(A)[STRIDE]
    symbol, words, fits = i64(entries(S)[e].symbol), width(form(S)), True
    columns = scalars(S)[STATES] * words
    for s in range(scalars(S)[STATES]):
        dirty(S)[s] = 0
        move = v.moves(A)[s * stride + symbol]
        if not move.flags & KNOWN and not recall(A, i64(s), symbol):
            continue  # nothing was in this state then
        other, stays = _leads(move, s), _stays(move, s)
        if stays and other == NONE and not (move.place and move.marked != NONE):
            continue
        dirty(S)[s] = 1
        for w in range(columns):
            room[states + s, w] = room[s, w] if stays else np.uint64(0)
        for x in range(0, columns, words):
            if move.place and move.marked != NONE:
                mask, place, to = flags(S)[e] & masks(S)[move.place], i64(move.place), i64(move.marked)
                fits = add_held(form(S), room, states + s, x, room, to, x, mask, values(S), e, held(S), place) and fits
            if other != NONE:
                fits = add(form(S), room, states + s, x, room, other, x) and fits
    for s in range(scalars(S)[STATES]):
        if dirty(S)[s]:
            for w in range(columns):
                room[s, w] = room[states + s, w]
    return fits


@kernel
def settle(A: Ptr[Cache], S: Ptr[Composed], used: Array, tau: int) -> None:
    """Clear partitions all of whose events have left; `used`: u8[n], in which of them something may go on. What begins
    before `tau` has left, in a window of events what the partition's clock has left behind."""
    kind = v.sizes(A)[KIND]
    for p in range(used.shape[0]):
        part = parts(S)[p]
        floor = window_start(i64(part.clock), v.sizes(A)[SIZE], 1, 0) if kind == BY_EVENTS else tau
        if part.begun and (part.epoch != scalars(S)[EPOCH] or (kind != UNBOUNDED and part.newest < floor)):
            clear(S, p)
        used[p] = part.begun


@kernel
def wipe(S: Ptr[Composed]) -> None:
    """Nothing is left of what has left the windows: in free entries, and in vectors of `back`, which has none."""
    e = i64(scalars(S)[FREE])
    while e >= 0:
        for x in range(values(S).shape[1]):
            values(S)[e, x] = 0
        _no_vector(S, e)
        e = i64(entries(S)[e].next)
    for p in range(parts(S).shape[0]):
        e = i64(parts(S)[p].back)
        while e >= 0:
            _no_vector(S, e)
            e = i64(entries(S)[e].next)


@inner
def _no_vector(S: Ptr[Composed], e: int) -> None:
    for x in range(vectors(S).shape[1]):
        vectors(S)[e, x] = np.uint64(0)


@kernel
def begin(S: Ptr[Composed], fresh: Array) -> None:
    """These partitions have not seen anything; `fresh`: i64."""
    for i in range(fresh.shape[0]):
        p = fresh[i]
        clear(S, p)
        part = parts(S)[p]
        part.clock = 0
        part.epoch = scalars(S)[EPOCH]
