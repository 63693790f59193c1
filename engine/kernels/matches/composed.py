"""Matches counted without nodes: what each step does to the sets of prefixes is a linear map, and a window is the
composition of its steps' maps (answers.md 1.7, tier S). For both runners: a step is an event of the determinised
automaton, or what an instant has for the automaton of live keys, of which several rows then add up.

A partition has two stacks. `back` holds the rows since the last flip, newest first, and `maps` the composition of
their steps' maps: line s is what state s has of each state before. `front` holds older rows, oldest first, the first
of each step with the vector of what has come of the matches that began there or later, up to the flip. So state s has
maps[s] · vector of the oldest. What leaves the window is taken off `front`; when that is empty, it is made of `back`,
from the newest step to the oldest. No map has an inverse, and none is needed. State 0 is before a match begins: it
always has one match.

A row's symbol says which arcs it takes and in which states its coming lets the others stay. Nothing is changed before a
step is through, so the kernel may return what it needs, and repeats the step.

Where all matches of the window are told of whenever some end, they are in a state of their own, SO_FAR, that no row
leaves. Over several partitions `totals` adds them up, a tree, since nothing can be subtracted; a queue says whose rows
leave the window next. Where they are told of at moments of *reports* instead, each with its place among the rows of the
batch, ends are not told of, and SO_FAR is read then: of each partition, or of all together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
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
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array, Ptr

PART = np.dtype(
    [
        ("clock", "i8"),  # steps so far, or the number of the last one's instant
        ("epoch", "i8"),  # its matches are forgotten if an earlier one than the run's
        ("oldest", "i8"),  # clock of the oldest row of `back`,
        ("newest", "i8"),  # and of the newest row of both
        ("front", "i4"),  # entries; -1: none
        ("back", "i4"),
        ("begun", "i4"),  # 1: its maps are more than the identity
        ("fill", "i4"),
    ],
    align=True,
)
"""A partition."""
ENTRY = np.dtype([("clock", "i8"), ("symbol", "i4"), ("next", "i4")], align=True)
"""A row of a stack. `symbol`: and the flags below; `next`: in `back` the one before, in `front` the one after, of free
ones another."""
MORE, GAP = 1 << 30, 1 << 29
"""Flags: the row before it is of the same step; there was an instant between its step and the one before."""
_SYMBOL = GAP - 1
ARC = np.dtype([("source", "i4"), ("target", "i4"), ("place", "i4"), ("fill", "i4")], align=True)
"""What a row does: matches of state `source` go on to `target`, or END there, with the values that count at `place` (0:
none do)."""
END = -1

(
    AT,  # row in work
    BASE,  # position of the batch's first row
    EPOCH,
    COUNT,  # rows of the batch
    TERMS,  # of the step in work
    FREE,  # a free entry; -1: there is none
    OUT,  # rows written
    KEEP,  # states (bits) in which the step in work lets matches stay
    WANTED,  # records of what is needed
    ENTRIES,  # in use
    SCALARS,
) = range(11)
NEED_ENTRIES, NEED_TERMS, NEED_QUEUE = MATCH_NEEDS + 20, MATCH_NEEDS + 21, MATCH_NEEDS + 22
"""Beside the needs of all runners' kernels."""

UNBOUNDED, BY_CLOCK, BY_COUNT, TUMBLING = range(4)
"""Kinds of windows: rows have clocks and cuts; the partition's steps are counted; what was before the cut is forgotten
as a whole."""
KIND, SIZE, LEAST, CONSUME, STATES, ONCE, MERGES, SO_FAR, REPORTS, SETTINGS = range(10)
"""Places in `settings`. SIZE: steps of a window; LEAST: fewer matches are not told of; ONCE: states (bits) that only
the next instant leaves; MERGES: 1 if what ends at one instant is told of together, of whichever partitions; SO_FAR: the
state of all matches of the window so far, where these are told of, before an instant and after it; 0: there is none;
REPORTS: how they are told of by reports instead."""
NO_REPORTS, OF_ALL, OF_EACH = range(3)
"""Of all partitions together, or of each that has some, with where its first end was since it had none."""
NEXT, FROM, CURSOR = range(3)
"""Places in `at`: the next report, and from which partition on it is still to be made."""
HEAD, QUEUED, DIRTY, LATEST, TALLY = range(5)
"""Places in `tally`: the first of the queue, and how many there are; the partition whose total is old, -1: none; the
clock of the last end, in a window that does not slide."""


class Automaton(Arrays):
    """What rows of each symbol do."""


settings = array(Automaton, "settings", np.int64)  # i64[SETTINGS]
keep = array(Automaton, "keep", np.int64, rows="symbols")  # states (bits) in which matches stay when such a row comes
spans = array(Automaton, "spans", np.int32, 2, rows="symbols", columns=2)  # its arcs, first and end
arcs = array(Automaton, "arcs", ARC, rows="arcs")


class Steps(Arrays):
    """The rows of a batch; those of one step follow each other."""


symbol = array(Steps, "symbol", np.int32)  # i32[n]; -1: it does nothing
partition = array(Steps, "partition", np.int64)  # i64[n]; -1: in none
row_clock = array(Steps, "clock", np.int64)  # i64[n]
row_cut = array(Steps, "cut", np.int64)  # i64[n]: what ends here must start at this clock or later
instant = array(Steps, "instant", np.int64)  # i64[n]: numbers; i64[0]: each row is a step of its own
moment = array(Steps, "moment", np.int64)
"""i64[n]: the same where what ends then is told of together, though partitions count their own."""


class Reports(Arrays):
    """The reports of a batch, in order; those at which nothing is told of are none."""


report_row = array(Reports, "row", np.int64)  # i64[n]: it comes before this row
report_cut = array(Reports, "cut", np.int64)  # i64[n]: what it tells of starts at this clock or later
report_at = array(Reports, "at", np.int64)  # i64[CURSOR]
report_order = array(Reports, "order", np.int64)  # i64[rows]: their numbers in the batch; i64[0]: they are in order


class Composed(Arrays):
    """The running state. N: states that there may be; a line of N weights, of one in a window that does not slide."""


scalars = array(Composed, "scalars", np.int64, rows=SCALARS)
form = array(Composed, "form", np.int64)  # of weights
parts = array(Composed, "parts", PART, rows="parts", fill={"front": -1, "back": -1})
maps = array(Composed, "maps", np.uint64, 2, columns="line")
entries = array(Composed, "entries", ENTRY, rows="entries")
vectors = array(Composed, "vectors", np.uint64, 2, rows="entries", columns="vector")
values = array(Composed, "values", np.int64, 2, rows="entries", columns="values")  # of the entry's row
flags = array(Composed, "flags", np.uint64, rows="entries")  # the same
held = array(Composed, "held", np.uint8, 2)  # u8[places, sums + leasts]: which values the row counts with at a place
masks = array(Composed, "masks", np.uint64)  # u64[places]: the same of flags
work = array(Composed, "work", np.uint64, 2)  # u64[2 * N + 1, N weights, at least 3]
terms = array(Composed, "terms", np.int64, 2, rows="terms", columns=4)
"""Of the step in work: source, target, place, row."""
out_at = array(Composed, "out_at", np.int64, rows="out")  # number of the row in the batch, or of the report
out = array(Composed, "out", np.uint64, 2, rows="out", columns="told")
"""u64[n, weight], with SO_FAR u64[n, 2 weights]: before the instant, and after it."""
out_of = array(Composed, "out_of", np.int64, 2, rows="out", each="apart", columns=2)
"""i64[n, 2], with OF_EACH, else n = 0: partition, and as in `began`."""
totals = array(Composed, "totals", np.uint64, 2, rows="totals", columns="weight")
"""u64[2 * 2^k, weight]: of partition p at 2^k + p, of n at 2 n and 2 n + 1; in all others k = 0."""
queue = array(Composed, "queue", np.int64, 2, rows=1, columns=2)  # a ring of steps that have not left: clock, partition
tally = array(Composed, "tally", np.int64)  # i64[TALLY]
began = array(Composed, "began", np.int64)
"""i64[parts], with OF_EACH, else n = 0: number of the row that ended the first of the matches it has."""


class Values(Arrays):
    """Of the rows of a batch."""


batch_values = array(Values, "values", np.int64, 2)  # i64[n, sums + leasts]
batch_flags = array(Values, "flags", np.uint64)  # u64[n]


@kernel
def compose(A: Ptr[Automaton], S: Ptr[Composed], E: Ptr[Steps], V: Ptr[Values], R: Ptr[Reports]) -> int:
    """Work through the rows from scalars[AT] on, and through the reports. DONE, or what is needed."""
    state, partitions, instants, due = scalars(S), partition(E), instant(E), report_at(R)
    count, several, reports = state[COUNT], instants.shape[0] > 0, report_row(R).shape[0]
    while True:
        while due[NEXT] < reports and report_row(R)[due[NEXT]] <= state[AT]:
            need = _report(A, S, R)
            if need != DONE:
                return need
            due[NEXT] += 1
            due[FROM] = 0
        if state[AT] >= count:
            return DONE
        at = state[AT]
        p, end = partitions[at], at + 1
        if several:
            while end < count and partitions[end] == p and instants[end] == instants[at]:
                end += 1
        if p >= 0:
            if symbol(E)[at] >= 0:
                need = _read(A, S, E, V, R, at, end, p)
                if need != DONE:
                    return need
            if several:
                parts(S)[p].clock = instants[at]
            else:
                parts(S)[p].clock += 1
        state[AT] = end


@inner
def _report(A: Ptr[Automaton], S: Ptr[Composed], R: Ptr[Reports]) -> int:
    """The next report: all matches of the window so far, into `out`. DONE, or what is needed: it goes on then with the
    same partition; of all together it begins anew. A report of each is not cut by OUT_FULL: `out` has room for all."""
    state, due, each = scalars(S), report_at(R), settings(A)[REPORTS] == OF_EACH
    total, words, count = 2 * states_of(S), width(form(S)), parts(S).shape[0]
    room = out_at(S).shape[0] - state[OUT]
    if room == 0 or (each and due[FROM] == 0 and room < count and state[OUT] > 0):
        return OUT_FULL
    for p in range(due[FROM] if each else i64(0), count):
        if each or p == 0:
            for w in range(words):
                work(S)[total, w] = u64(0)
        need = _so_far(A, S, p, report_cut(R)[due[NEXT]])
        if need != DONE:
            due[FROM] = p
            return need
        if each and present(work(S), total, 0):
            out_of(S)[state[OUT], 0] = p
            out_of(S)[state[OUT], 1] = began(S)[p]
            _put_report(S, due[NEXT])
    if not each:
        _put_report(S, due[NEXT])
    return DONE


@inner
def _so_far(A: Ptr[Automaton], S: Ptr[Composed], p: int, cut: int) -> int:
    """The matches of a partition in the window from `cut` on are added to the last line of `work`. DONE, or what is
    needed."""
    part = parts(S)[p]
    if not part.begun or part.epoch != scalars(S)[EPOCH]:
        return DONE
    if settings(A)[KIND] == TUMBLING and part.newest < cut:
        return DONE
    if _slides(A):
        need = expire(A, S, p, cut)
        if need != DONE:
            return need
    return DONE if _reached(A, S, p, settings(A)[SO_FAR], 2 * states_of(S), 0) else i64(NEED_LIMBS)


@inner
def _put_report(S: Ptr[Composed], number: int) -> None:
    row = scalars(S)[OUT]
    out_at(S)[row] = number
    for w in range(width(form(S))):
        out(S)[row, w] = work(S)[2 * states_of(S), w]
    scalars(S)[OUT] = row + 1


@inner
def _begins(A: Ptr[Automaton], S: Ptr[Composed], R: Ptr[Reports], p: int) -> None:
    """Note the row with which a partition has matches that had none, if the step in work does that."""
    found, state, order = terms(S), scalars(S), report_order(R)
    if _is_there(A, S, p, settings(A)[SO_FAR]):
        return
    for t in range(state[TERMS]):
        if found[t, 1] == END and _is_there(A, S, p, found[t, 0]):
            row = found[t, 3]
            began(S)[p] = state[BASE] + (order[row] if order.shape[0] > 0 else row)
            return


@inner
def _is_there(A: Ptr[Automaton], S: Ptr[Composed], p: int, s: int) -> bool:
    """Whether state `s` of a partition has something."""
    states, words = states_of(S), width(form(S))
    line, front = p * states + s, i64(parts(S)[p].front)
    if not _slides(A) or front < 0:
        return present(maps(S), line, 0)
    for x in range(0, settings(A)[STATES] * words, words):
        if present(maps(S), line, x) and present(vectors(S), front, x):
            return True
    return False


@inner
def _read(
    A: Ptr[Automaton], S: Ptr[Composed], E: Ptr[Steps], V: Ptr[Values], R: Ptr[Reports], at: int, end: int, p: int
) -> int:
    """One step of partition `p`."""
    state, part, kind = scalars(S), parts(S)[p], settings(A)[KIND]
    if part.epoch != state[EPOCH]:
        clear(S, p)
        part.epoch = state[EPOCH]
    clock, cut = i64(part.clock), window_start(i64(part.clock), settings(A)[SIZE], 1, 0)
    if kind != BY_COUNT:
        clock, cut = row_clock(E)[at], row_cut(E)[at]
    if part.begun and kind == TUMBLING and part.newest < cut:
        clear(S, p)
    elif part.begun and kind != UNBOUNDED and kind != TUMBLING:
        need = expire(A, S, p, cut)
        if need != DONE:
            return need
    so_far, merges = settings(A)[SO_FAR] != 0, settings(A)[MERGES] != 0
    if so_far and merges:
        need = _total(A, S, cut)
        if need != DONE:
            return need
    gap = instant(E).shape[0] > 0 and part.clock + 1 != instant(E)[at]
    begins = _terms_of_rows(A, S, E, at, end, gap)
    if state[TERMS] > terms(S).shape[0]:
        state[WANTED] = state[TERMS]
        return NEED_TERMS
    if not part.begun and not begins:
        return DONE
    if settings(A)[REPORTS] != NO_REPORTS:
        if settings(A)[REPORTS] == OF_EACH:
            _begins(A, S, R, p)
        return _move(A, S, E, V, at, end, p, clock, gap)
    total, words = 2 * states_of(S), width(form(S))
    first = _end(A, S, V, at, p)
    if first == _NO_LIMBS:
        return NEED_LIMBS
    ends = first >= 0
    row = state[OUT]
    if ends and merges and row > 0 and moment(E)[out_at(S)[row - 1]] == moment(E)[at]:
        row -= 1
    if ends and not _told_of(A, S, p, row):
        return NEED_LIMBS
    told = ends and (merges or so_far or reaches(form(S), work(S), total, 0, settings(A)[LEAST]))
    if told and row == out_at(S).shape[0]:
        return OUT_FULL
    need = _move(A, S, E, V, at, end, p, clock, gap)
    if need != DONE:
        return need
    if told:
        if row == state[OUT]:
            out_at(S)[row] = first
            state[OUT] = row + 1
            if so_far:
                for w in range(words):
                    out(S)[row, w] = work(S)[total, 2 * words + w]
        behind = words if so_far else i64(0)
        for w in range(words):
            out(S)[row, behind + w] = work(S)[total, w]
        if so_far and merges:
            _note(A, S, p, clock)
    if ends and settings(A)[CONSUME] == EVERYTHING:
        state[EPOCH] += 1
    elif ends and settings(A)[CONSUME] == THE_PARTITION:
        clear(S, p)
    return DONE


@inner
def _told_of(A: Ptr[Automaton], S: Ptr[Composed], p: int, row: int) -> bool:
    """What is told of an end that the last line of `work` has, in its place: with what ended at the instant before, or
    with SO_FAR all matches of the window, and behind those there were before. False: it does not fit."""
    room, total, words = work(S), 2 * states_of(S), width(form(S))
    before = 2 * words
    if settings(A)[SO_FAR] == 0:
        return row == scalars(S)[OUT] or add(form(S), room, total, 0, out(S), row, 0)
    if settings(A)[MERGES]:
        for w in range(words):
            room[total, before + w] = totals(S)[1, w]
    else:
        for w in range(words):
            room[total, before + w] = u64(0)
        if not _reached(A, S, p, settings(A)[SO_FAR], total, before):
            return False
    return add(form(S), room, total, 0, room, total, before)


@inner
def _slides(A: Ptr[Automaton]) -> bool:
    kind = settings(A)[KIND]
    return kind != UNBOUNDED and kind != TUMBLING


@inner
def _total(A: Ptr[Automaton], S: Ptr[Composed], cut: int) -> int:
    """The first of `totals` is of the matches in the window from `cut` on; there is room for a step in the queue. DONE,
    or what is needed."""
    at = tally(S)
    if not _slides(A):
        if settings(A)[KIND] == TUMBLING and at[LATEST] < cut:
            for w in range(width(form(S))):
                totals(S)[1, w] = u64(0)
        return DONE
    if at[DIRTY] >= 0 and not _add_up(A, S, at[DIRTY]):
        return NEED_LIMBS
    at[DIRTY] = -1
    size = queue(S).shape[0]
    while at[QUEUED] > 0 and queue(S)[at[HEAD], 0] < cut:
        p = queue(S)[at[HEAD], 1]
        need = expire(A, S, p, cut)
        if need != DONE:
            return need
        if present(totals(S), totals(S).shape[0] // 2 + p, 0) and not _add_up(A, S, p):
            return NEED_LIMBS
        at[HEAD] = (at[HEAD] + 1) % size
        at[QUEUED] -= 1
    return NEED_QUEUE if at[QUEUED] == size else i64(DONE)


@inner
def _add_up(A: Ptr[Automaton], S: Ptr[Composed], p: int) -> bool:
    """What a partition's matches so far are, and all totals that they are in; False: some do not fit."""
    room, total, words = work(S), 2 * states_of(S), width(form(S))
    second, node = words, totals(S).shape[0] // 2 + p
    for w in range(words):
        room[total, second + w] = u64(0)
    fits = _reached(A, S, p, settings(A)[SO_FAR], total, second)
    for w in range(words):
        totals(S)[node, w] = room[total, second + w]
    while node > 1:
        node >>= 1
        for w in range(words):
            totals(S)[node, w] = totals(S)[2 * node, w]
        fits = add(form(S), totals(S), node, 0, totals(S), 2 * node + 1, 0) and fits
    return fits


@inner
def _note(A: Ptr[Automaton], S: Ptr[Composed], p: int, clock: int) -> None:
    """A partition has more matches, as the last line of `work` says."""
    if _slides(A):
        tally(S)[DIRTY] = p
        return
    tally(S)[LATEST] = clock
    for w in range(width(form(S))):
        totals(S)[1, w] = work(S)[2 * states_of(S), w]


@inner
def states_of(S: Ptr[Composed]) -> int:
    """How many states there is room for."""
    return (work(S).shape[0] - 1) // 2


@inner
def _terms_of_rows(A: Ptr[Automaton], S: Ptr[Composed], E: Ptr[Steps], at: int, end: int, gap: bool) -> bool:
    """What the rows at..end of a step do, into `terms` and KEEP; whether a match may begin with one."""
    state, begins = scalars(S), False
    state[TERMS], state[KEEP] = 0, -1
    for row in range(at, end):
        begins = _terms_of(A, S, i64(symbol(E)[row]), row, gap) or begins
    return begins


@inner
def _terms_of(A: Ptr[Automaton], S: Ptr[Composed], number: int, row: int, gap: bool) -> bool:
    """The same of one row; those for which there is no room are only counted."""
    state, room, begins = scalars(S), terms(S), False
    count, once = state[TERMS], settings(A)[ONCE] if gap else i64(0)
    state[KEEP] &= keep(A)[number]
    for a in range(spans(A)[number, 0], spans(A)[number, 1]):
        arc = arcs(A)[a]
        if once >> arc.source & 1:
            continue
        if arc.source == 0:
            begins = True
        if count < room.shape[0]:
            room[count, 0] = arc.source
            room[count, 1] = arc.target
            room[count, 2] = arc.place
            room[count, 3] = row
        count += 1
    state[TERMS] = count
    return begins


_NO_LIMBS = -2


@inner
def _end(A: Ptr[Automaton], S: Ptr[Composed], V: Ptr[Values], at: int, p: int) -> int:
    """The weight of what ends at a step, in the last line of `work`: the first row with which something ends, -1: there
    is none; or _NO_LIMBS."""
    room, found = work(S), terms(S)
    total, second = 2 * states_of(S), width(form(S))
    room[total, 0] = u64(0)
    fits, first, reached = True, i64(-1), i64(-1)
    for t in range(scalars(S)[TERMS]):
        if found[t, 1] != END:
            continue
        if found[t, 0] != reached:
            reached = found[t, 0]
            room[total, second] = u64(0)
            fits = _reached(A, S, p, reached, total, second) and fits
        if not present(room, total, second):
            continue
        row, place = found[t, 3], found[t, 2]
        if first < 0:
            first = row
        if place:
            mask = batch_flags(V)[row] & masks(S)[place]
            fits = (
                add_held(form(S), room, total, 0, room, total, second, mask, batch_values(V), row, held(S), place)
                and fits
            )
        else:
            fits = add(form(S), room, total, 0, room, total, second) and fits
    return first if fits else i64(_NO_LIMBS)


@inner
def _reached(A: Ptr[Automaton], S: Ptr[Composed], p: int, s: int, to: int, second: int) -> bool:
    """The weight of state `s` of a partition, into a line of `work`."""
    states, words = states_of(S), width(form(S))
    line, front, kind = p * states + s, i64(parts(S)[p].front), settings(A)[KIND]
    if kind == UNBOUNDED or kind == TUMBLING or front < 0:
        return add(form(S), work(S), to, second, maps(S), line, 0)
    fits = True
    for x in range(0, settings(A)[STATES] * words, words):
        if present(maps(S), line, x) and present(vectors(S), front, x):
            fits = add_product(form(S), work(S), to, second, maps(S), line, x, vectors(S), front, x) and fits
    return fits


@inner
def _changed(S: Ptr[Composed], states: int) -> int:
    """The states (bits) that a step changes: what they have, or what comes of them."""
    state, found = scalars(S), terms(S)
    changed = ~state[KEEP] & ((i64(1) << states) - 1)
    for t in range(state[TERMS]):
        if found[t, 1] != END:
            changed |= i64(1) << found[t, 1]
    return changed


@inner
def _move(
    A: Ptr[Automaton],
    S: Ptr[Composed],
    E: Ptr[Steps],
    V: Ptr[Values],
    at: int,
    end: int,
    p: int,
    clock: int,
    gap: bool,
) -> int:
    """The step's map comes behind those of the partition, its rows onto `back`."""
    state, number = scalars(S), settings(A)[STATES]
    changed = _changed(S, number)
    if changed == 0:
        return DONE
    slides = _slides(A)
    if slides and entries(S).shape[0] - state[ENTRIES] < end - at:
        state[WANTED] = end - at
        return NEED_ENTRIES
    room, found, states, words = work(S), terms(S), states_of(S), width(form(S))
    here, fits = p * states, True
    columns = number * words if slides else words
    for s in range(number):
        if changed >> s & 1:
            stays = state[KEEP] >> s & 1
            for w in range(columns):
                room[states + s, w] = maps(S)[here + s, w] if stays else u64(0)
    for t in range(state[TERMS]):
        if found[t, 1] == END:
            continue
        line, to, place, row = here + found[t, 0], states + found[t, 1], found[t, 2], found[t, 3]
        mask = batch_flags(V)[row] & masks(S)[place]
        for x in range(0, columns, words):
            if not present(maps(S), line, x):
                continue
            if place:
                fits = (
                    add_held(form(S), room, to, x, maps(S), line, x, mask, batch_values(V), row, held(S), place)
                    and fits
                )
            else:
                fits = add(form(S), room, to, x, maps(S), line, x) and fits
    if not fits:
        return NEED_LIMBS
    for s in range(number):
        if changed >> s & 1:
            for w in range(columns):
                maps(S)[here + s, w] = room[states + s, w]
    part = parts(S)[p]
    part.begun = 1
    part.newest = clock
    if slides:
        mark = i64(GAP) if gap else i64(0)
        for row in range(at, end):
            _push(S, V, row, part, i64(symbol(E)[row]) | mark, clock)
            mark |= MORE
        if settings(A)[SO_FAR] and settings(A)[MERGES]:
            last = (tally(S)[HEAD] + tally(S)[QUEUED]) % queue(S).shape[0]
            queue(S)[last, 0] = clock
            queue(S)[last, 1] = p
            tally(S)[QUEUED] += 1
    return DONE


@inner
def _push(S: Ptr[Composed], V: Ptr[Values], at: int, part: Any, number: int, clock: int) -> None:
    state = scalars(S)
    e = state[FREE]
    entry = entries(S)[e]
    state[FREE] = entry.next
    state[ENTRIES] += 1
    entry.clock = clock
    entry.symbol = number
    entry.next = part.back
    for c in range(values(S).shape[1]):
        values(S)[e, c] = batch_values(V)[at, c]
    flags(S)[e] = batch_flags(V)[at]
    if part.back < 0:
        part.oldest = clock
    part.back = e


@inner
def expire(A: Ptr[Automaton], S: Ptr[Composed], p: int, cut: int) -> int:
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
        need = _flip(A, S, p, cut)
        if need != DONE:
            return need


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
    """A partition's maps are those of no step."""
    states, words = states_of(S), width(form(S))
    for s in range(states):
        for w in range(maps(S).shape[1]):
            maps(S)[p * states + s, w] = u64(0)
        if s * words < maps(S).shape[1]:
            put_one(form(S), maps(S), p * states + s, s * words)


@inner
def _flip(A: Ptr[Automaton], S: Ptr[Composed], p: int, cut: int) -> int:
    """`front`, which is empty, is made of those of `back` that are not before `cut`. DONE, or what is needed.

    Line s of `work` is what becomes of state s from the step in work up to now.
    """
    state, room, part, states = scalars(S), work(S), parts(S)[p], states_of(S)
    words = width(form(S))
    for s in range(states):
        for w in range(states * words):
            room[s, w] = u64(0)
        put_one(form(S), room, s, s * words)
    e = i64(part.back)
    while e >= 0 and entries(S)[e].clock >= cut:
        state[TERMS], state[KEEP] = 0, -1
        while True:
            number = i64(entries(S)[e].symbol)
            _terms_of(A, S, number & _SYMBOL, e, number & GAP != 0)
            if not number & MORE:
                break
            e = i64(entries(S)[e].next)
        if state[TERMS] > terms(S).shape[0]:
            state[WANTED] = state[TERMS]
            return NEED_TERMS
        if not _before(A, S):
            return NEED_LIMBS
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
    return DONE


@inner
def _before(A: Ptr[Automaton], S: Ptr[Composed]) -> bool:
    """The map of the entries' step in `terms` comes before those that lines of `work` are composed of."""
    state, room, found, states, words = scalars(S), work(S), terms(S), states_of(S), width(form(S))
    number, fits = settings(A)[STATES], True
    columns = number * words
    changed = ~state[KEEP] & ((i64(1) << number) - 1)
    for t in range(state[TERMS]):
        if found[t, 1] != END:
            changed |= i64(1) << found[t, 0]
    for s in range(number):
        if changed >> s & 1:
            stays = state[KEEP] >> s & 1
            for w in range(columns):
                room[states + s, w] = room[s, w] if stays else u64(0)
    for t in range(state[TERMS]):
        if found[t, 1] == END:
            continue
        s, to, place, e = states + found[t, 0], found[t, 1], found[t, 2], found[t, 3]
        mask = flags(S)[e] & masks(S)[place]
        for x in range(0, columns, words):
            if not present(room, to, x):
                continue
            if place:
                fits = add_held(form(S), room, s, x, room, to, x, mask, values(S), e, held(S), place) and fits
            else:
                fits = add(form(S), room, s, x, room, to, x) and fits
    for s in range(number):
        if changed >> s & 1:
            for w in range(columns):
                room[s, w] = room[states + s, w]
    return fits


@kernel
def settle(A: Ptr[Automaton], S: Ptr[Composed], used: Array, tau: int) -> None:
    """Clear partitions all of whose rows have left; `used`: u8[n], in which of them something may go on. What begins
    before `tau` has left, in a window of steps what the partition's clock has left behind."""
    kind = settings(A)[KIND]
    for p in range(used.shape[0]):
        part = parts(S)[p]
        floor = window_start(i64(part.clock), settings(A)[SIZE], 1, 0) if kind == BY_COUNT else tau
        if part.begun and (part.epoch != scalars(S)[EPOCH] or (kind != UNBOUNDED and part.newest < floor)):
            clear(S, p)
        used[p] = part.begun


@kernel
def wipe(S: Ptr[Composed]) -> None:
    """Nothing is left of what has left the windows: in free entries, and in vectors where there is none: of
    `back`, and of all rows of a step but the first."""
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
        e = i64(parts(S)[p].front)
        while e >= 0:
            if i64(entries(S)[e].symbol) & MORE:
                _no_vector(S, e)
            e = i64(entries(S)[e].next)


@inner
def _no_vector(S: Ptr[Composed], e: int) -> None:
    for x in range(vectors(S).shape[1]):
        vectors(S)[e, x] = u64(0)


@kernel
def begin(S: Ptr[Composed], fresh: Array) -> None:
    """These partitions have not seen anything; `fresh`: i64."""
    for i in range(fresh.shape[0]):
        p = fresh[i]
        clear(S, p)
        part = parts(S)[p]
        part.clock = 0
        part.epoch = scalars(S)[EPOCH]
