"""One entry joined with all that is stored: depth first, always along the shortest chain at hand.

Each level binds one pattern to an entry. For every open pattern that has a newly bound variable the bucket of that
value, or the one entry if all is known, is looked up at once: nothing there, and the level continues with its next
entry; else the shortest of a pattern's chains is kept. The next level takes the pattern with the shortest. No order
is planned and no statistics are kept (windows.md, section 5).

A join stops when the output is full and continues where it stopped: levels and values are memory, not locals.
"""

from __future__ import annotations

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED, truth
from oxiseq.engine.kernels.matching.match import lowest
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Ptr
from oxiseq.engine.kernels.terms import columns
from oxiseq.engine.kernels.terms.columns import Columns
from oxiseq.engine.kernels.windows import views as v
from oxiseq.engine.kernels.windows.hashing import bucket_key, find_bucket, find_pair, pair_hash
from oxiseq.engine.kernels.windows.records import (
    BY_OBJECT,
    BY_PREDICATE,
    BY_SUBJECT,
    DEPTH,
    DONE,
    DOUBTFUL,
    INSTANT,
    KIND,
    OF_QUERY,
    OUT_FULL,
    ROWS,
    SINGLE,
    SKIP,
    START_PATTERN,
    STEPS,
    WHOLE,
    Memory,
    Tables,
)

_FAILED = -1


@inner
def begin_join(
    T: Ptr[Tables], S: Ptr[Memory], query: int, pattern: int, e: int, side: int, skip: int, kind: int
) -> None:
    """Set out to join entry `e`, or the chain that begins with it, as `pattern` of `query` (numbered within it)."""
    scalars, q, level = v.scalars(S), v.queries(T)[query], v.levels(S)[0]
    scalars[OF_QUERY], scalars[START_PATTERN], scalars[SKIP], scalars[KIND] = query, pattern, skip, kind
    scalars[DEPTH] = 0
    level.bound = 0
    level.open = ((1 << i64(q.pattern1 - q.pattern0)) - 1) & ~(1 << pattern)
    level.pattern = pattern
    level.next = e
    level.side = side
    level.doubt = 0


@inner
def join(T: Ptr[Tables], S: Ptr[Memory], C: Columns) -> int:
    """Continue the join in work: DONE, or OUT_FULL."""
    scalars, entries, levels, patterns = v.scalars(S), v.entries(S), v.levels(S), v.patterns(T)
    values, best = v.values(S), v.best(S)
    query, skip, start = scalars[OF_QUERY], scalars[SKIP], scalars[START_PATTERN]
    pattern0 = i64(v.queries(T)[query].pattern0)
    steps = i64(0)
    d = scalars[DEPTH]
    while d >= 0:
        level = levels[d]
        e = i64(level.next)
        if e < 0:
            d -= 1
            continue
        side = level.side
        level.next = _following(S, e, side)
        if e == skip and level.pattern > start:
            continue
        steps += 1
        pattern, entry = patterns[pattern0 + level.pattern], entries[e]
        before = level.bound
        bound = before
        if pattern.s >= 0:
            if bound >> pattern.s & 1:
                if values[pattern.s] != entry.s:
                    continue
            else:
                values[pattern.s] = entry.s
                bound |= 1 << i64(pattern.s)
        if pattern.o >= 0:
            if bound >> pattern.o & 1:
                if values[pattern.o] != entry.o:
                    continue
            else:
                values[pattern.o] = entry.o
                bound |= 1 << i64(pattern.o)
        if pattern.p >= 0:
            if bound >> pattern.p & 1:
                if values[pattern.p] != entry.p:
                    continue
            else:
                values[pattern.p] = entry.p
                bound |= 1 << i64(pattern.p)
        doubt = _passes(T, S, C, query, before, bound, d) | level.doubt
        if doubt == _FAILED:
            continue
        if level.open == 0:
            if not _emit(T, S, query, doubt):
                level.next = e
                scalars[DEPTH] = d
                scalars[STEPS] += steps
                return OUT_FULL
            continue
        chosen = _look_ahead(T, S, query, d, bound & ~before, bound, level.open)
        if chosen < 0:
            continue
        following, at = levels[d + 1], best[(d + 1) * 64 + chosen]
        following.bound = bound
        following.open = level.open & ~(1 << chosen)
        following.pattern = chosen
        following.next = at.head
        following.side = at.side
        following.doubt = doubt
        d += 1
    scalars[DEPTH] = -1
    scalars[STEPS] += steps
    return DONE


@inner
def _following(S: Ptr[Memory], e: int, side: int) -> int:
    """The entry after `e` in a chain."""
    entry = v.entries(S)[e]
    if side == SINGLE:
        return -1
    if side == BY_SUBJECT:
        return i64(entry.sn)
    if side == BY_OBJECT:
        return i64(entry.on)
    if side == BY_PREDICATE:
        return i64(entry.pn)
    return i64(entry.vn)


@inner
def _look_ahead(T: Ptr[Tables], S: Ptr[Memory], query: int, d: int, fresh: int, bound: int, left: int) -> int:
    """The best chains of the open patterns `left` on level d + 1: which of them is shortest, or _FAILED.

    `fresh`: the variables that level d has bound; `bound`: all.
    """
    best, contains, stored = v.best(S), v.contains(T), v.stored(S)
    patterns, q = v.patterns(T), v.queries(T)[query]
    here, below, with0, pattern0 = (d + 1) * 64, d * 64, i64(q.with0), i64(q.pattern0)
    touched = i64(0)
    rest = fresh
    while rest != 0:
        touched |= contains[with0 + lowest(rest)]
        rest &= rest - 1
    touched &= left
    chosen, fewest = i64(_FAILED), i64(0)
    rest = touched
    while rest != 0:
        j = lowest(rest)
        rest &= rest - 1
        if d > 0:
            best[here + j].head = best[below + j].head
            best[here + j].count = best[below + j].count
            best[here + j].side = best[below + j].side
        else:
            best[here + j].count = np.int32(2147483647)
        if not _narrow(T, S, pattern0 + j, here + j, fresh, bound):
            return _FAILED
        if chosen < 0 or best[here + j].count < fewest:
            chosen, fewest = j, i64(best[here + j].count)
    rest = left & ~touched
    while rest != 0:
        j = lowest(rest)
        rest &= rest - 1
        if d > 0:
            best[here + j].head = best[below + j].head
            best[here + j].count = best[below + j].count
            best[here + j].side = best[below + j].side
        else:
            view = i64(patterns[pattern0 + j].of)
            best[here + j].head = stored[view].head
            best[here + j].count = stored[view].count
            best[here + j].side = WHOLE
            if stored[view].count == 0:
                return _FAILED
        if chosen < 0 or best[here + j].count < fewest:
            chosen, fewest = j, i64(best[here + j].count)
    return chosen


@inner
def _narrow(T: Ptr[Tables], S: Ptr[Memory], number: int, at: int, fresh: int, bound: int) -> bool:
    """Shorten the chain best[at] of a pattern by the variables `fresh`; False: nothing agrees with them."""
    pattern, best, values = v.patterns(T)[number], v.best(S)[at], v.values(S)
    view = i64(pattern.of)
    known = (
        (pattern.s < 0 or bound >> pattern.s & 1)
        and (pattern.o < 0 or bound >> pattern.o & 1)
        and (pattern.p < 0 or bound >> pattern.p & 1)
    )
    if known:
        shape = v.views(T)[view]
        s = values[pattern.s] if pattern.s >= 0 else i64(shape.s)
        p = values[pattern.p] if pattern.p >= 0 else i64(shape.p)
        o = values[pattern.o] if pattern.o >= 0 else i64(shape.o)
        e = find_pair(S, pair_hash(view, s, p, o), view, s, p, o)
        if e < 0:
            return False
        best.head = e
        best.count = 1
        best.side = SINGLE
        return True
    if pattern.s >= 0 and fresh >> pattern.s & 1 and not _shorten(S, view, 0, values[pattern.s], at, BY_SUBJECT):
        return False
    if pattern.o >= 0 and fresh >> pattern.o & 1 and not _shorten(S, view, 2, values[pattern.o], at, BY_OBJECT):
        return False
    return not (
        pattern.p >= 0 and fresh >> pattern.p & 1 and not _shorten(S, view, 1, values[pattern.p], at, BY_PREDICATE)
    )


@inner
def _shorten(S: Ptr[Memory], view: int, position: int, term: int, at: int, side: int) -> bool:
    """Take the bucket of a term if it is shorter; False: there is none."""
    buckets, best = v.buckets(S), v.best(S)[at]
    i = find_bucket(S, bucket_key(view, position, term))
    if i < 0:
        return False
    if buckets[i].count < best.count:
        best.head = buckets[i].head
        best.count = buckets[i].count
        best.side = side
    return True


@inner
def _passes(T: Ptr[Tables], S: Ptr[Memory], C: Columns, query: int, before: int, bound: int, d: int) -> int:
    """The query's filters whose last variable has just been bound: 0 pass, 1 one is undecided, _FAILED."""
    q, joint = v.queries(T)[query], v.joint(T)
    doubt = i64(0)
    for f in range(q.joint0, q.joint1):
        mask = joint[f].mask
        if mask & ~bound or (d > 0 and mask & ~before == 0):
            continue
        outcome = truth(
            v.code(T),
            joint[f].code0,
            joint[f].code1,
            v.values(S),
            columns.kind(C),
            columns.number(C),
            columns.exact(C),
            columns.quality(C),
            v.memo(S),
            v.numbers(S),
            v.machine(S),
        )
        if outcome == UNDECIDED:
            doubt = i64(1)
        elif outcome != TRUE:
            return _FAILED
    return doubt


@inner
def _emit(T: Ptr[Tables], S: Ptr[Memory], query: int, doubt: int) -> bool:
    """Write the row; False: there is no room."""
    scalars, out, cells, values = v.scalars(S), v.out(S), v.out_values(S), v.values(S)
    row = scalars[ROWS]
    if row == out.shape[0]:
        return False
    out[row].at = scalars[INSTANT]
    out[row].query = query
    out[row].kind = scalars[KIND]
    out[row].doubt = doubt
    for i in range(v.queries(T)[query].width):
        cells[row, i] = values[i]
    scalars[ROWS] = row + 1
    scalars[DOUBTFUL] += doubt
    return True
