"""Instants of a batch: refresh, evict, insert, list (windows.md, section 5).

    refresh  triples that are stored already are alive longer; the others are noted
    evict    what has left the window, each entry after its last join: ENDED rows
    insert   what was noted, entry by entry, each followed by its join: NEW rows
    list     all rows, if they are wanted

Entries come in one after the other, so a match is found once, when its last triple comes: if that fills several
positions of the query, from the last of them (joining.py's skip rule). Going, it is the same backwards.

Whenever room or a decision is wanted the kernel returns, and is called again with the batch: all that it needs to go on
stands in the scalars.
"""

from __future__ import annotations

from typing import Any, Final

from oxiseq.engine.kernels.compiling.as_python import either
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.expressions.machine import FUSED, TRUE, UNDECIDED, fused, truth
from oxiseq.engine.kernels.matching.match import object_place
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr, address_of
from oxiseq.engine.kernels.memory.raw import get
from oxiseq.engine.kernels.terms import columns
from oxiseq.engine.kernels.terms.columns import Columns
from oxiseq.engine.kernels.windows import views as v
from oxiseq.engine.kernels.windows.hashing import find_pair, pair_hash
from oxiseq.engine.kernels.windows.joining import begin_join, join
from oxiseq.engine.kernels.windows.records import (
    ALL,
    ASKED_CONDITION,
    ASKED_TERM,
    BUCKETS,
    COUNT,
    DEPTH,
    DONE,
    ENDED,
    ENTRY_AT,
    EVENT,
    EVICT,
    FREE,
    INSERT,
    INSTANT,
    LIST,
    NEED_BUCKETS,
    NEED_DECISION,
    NEED_ENTRIES,
    NEED_NOTES,
    NEW,
    NOTE,
    NOTES,
    OUT_FULL,
    PHASE,
    QUERY_AT,
    REFRESH,
    SINGLE,
    START_AT,
    TOP,
    TRIPLE,
    WHOLE,
    Batch,
    Memory,
    Tables,
)
from oxiseq.engine.kernels.windows.storing import fetch_stored, refresh_entry, remove_entry, store_entry

_ACCEPTED, _REFUSED, _ASKED = 1, 0, -1
_FAR: Final = 1 << 13
"""Entries from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many triples."""
_BATCH: Final = WORDS * Memory._fields.index("batch")


@inner
def _address_in(array: Any) -> int:
    """The address of a kernel's argument."""
    return i64(array.ctypes.data)


_address: Final = either(_address_in, address_of)


@kernel
def advance(
    T: Ptr[Tables],
    S: Ptr[Memory],
    C: Columns,
    offset: Any,
    subject: Any,
    predicate: Any,
    object_: Any,
    clock: Any,
    source: Any,
    until: Any,
    low: Any,
) -> int:
    """Work through a batch (records.Batch) from where the scalars say; DONE, or what is wanted before it is called
    again."""
    scalars, batch = v.scalars(S), v.batch(S)
    _point(batch, 0, _address(offset), offset.shape[0], 1)
    _point(batch, 1, _address(subject), subject.shape[0], 1)
    _point(batch, 2, _address(predicate), predicate.shape[0], 1)
    _point(batch, 3, _address(object_), object_.shape[0], 1)
    _point(batch, 4, _address(clock), clock.shape[0], 1)
    _point(batch, 5, _address(source), source.shape[0], 1)
    _point(batch, 6, _address(until), until.shape[0], 1)
    _point(batch, 7, _address(low), low.shape[0], low.shape[1])
    B: Ptr[Batch] = get(S, _BATCH)
    instants = low.shape[0]
    while scalars[INSTANT] < instants:
        if scalars[PHASE] == REFRESH:
            need = _refresh(T, S, C, B)
            if need != DONE:
                return need
            scalars[PHASE] = EVICT
        if scalars[PHASE] == EVICT:
            need = _evict(T, S, C, B)
            if need != DONE:
                return need
            scalars[PHASE] = INSERT
        if scalars[PHASE] == INSERT:
            need = _insert(T, S, C)
            if need != DONE:
                return need
            scalars[NOTES] = scalars[NOTE] = scalars[QUERY_AT] = 0
            scalars[PHASE] = LIST
        need = _list(T, S, C)
        if need != DONE:
            return need
        scalars[PHASE] = REFRESH
        scalars[INSTANT] += 1
    return DONE


@inner
def _point(table: Array, number: int, address: int, rows: int, columns: int) -> None:
    """Array `number` of a pointer table, made here since that takes less time than in Python."""
    table[WORDS * number], table[WORDS * number + 1], table[WORDS * number + 2] = address, rows, columns


# --- refresh -----------------------------------------------------------------------------------------


@inner
def _refresh(T: Ptr[Tables], S: Ptr[Memory], C: Columns, B: Ptr[Batch]) -> int:
    """Take the triples of the instant's events one by one."""
    scalars, offset, clock, sources = v.scalars(S), v.offset(B), v.clock(B), v.source(B)
    instant, low = scalars[INSTANT], v.low(B)
    until = v.until(B)[instant + 1]
    event, t = scalars[EVENT], scalars[TRIPLE]
    first = v.until(B)[instant]
    triples, far = v.subject(B).shape[0], scalars[COUNT] > _FAR
    several, of = False, i64(-1)
    while event < until:
        end, source = offset[event + 1], i64(sources[event])
        if source != of:
            several, of = _several(B, first, event, until), source
        if clock[event] <= low[instant, source]:
            t = end
        while t < end:
            if far and t + _AHEAD < triples:
                _look_out(T, S, B, t + _AHEAD, source)
            need = _take(T, S, C, B, t, source, clock[event], several)
            if need != DONE:
                scalars[EVENT], scalars[TRIPLE] = event, t
                return need
            t += 1
        event += 1
    scalars[EVENT], scalars[TRIPLE] = event, t
    return DONE


@inner
def _several(B: Ptr[Batch], first: int, event: int, until: int) -> bool:
    """Whether the events of one instant that are of an event's source have several clocks."""
    sources, clock = v.source(B), v.clock(B)
    low, high = event, event
    while low > first and sources[low - 1] == sources[event]:
        low -= 1
    while high + 1 < until and sources[high + 1] == sources[event]:
        high += 1
    return clock[low] != clock[high]


@inner
def _look_out(T: Ptr[Tables], S: Ptr[Memory], B: Ptr[Batch], t: int, source: int) -> None:
    """Have the processor bring what a later triple, of the same source as likely as not, will need: in large windows it
    waits for memory half of the time."""
    p, predicate_number, view0 = i64(v.predicate(B)[t]), v.predicate_number(T), v.view0(T)
    if p >= predicate_number.shape[1] or predicate_number[source, p] == 0:
        return
    number = i64(predicate_number[source, p])
    s, o = i64(v.subject(B)[t]), i64(v.object_(B)[t])
    if view0[number] < view0[number + 1]:
        fetch_stored(T, S, v.view_at(T)[view0[number]], s, p, o)
    elif v.with_object(T)[number]:
        found = _object_list(T, number << 32 | o)
        if found >= 0:
            fetch_stored(T, S, v.object_at(T)[v.object0(T)[found]], s, p, o)


@inner
def _take(
    T: Ptr[Tables], S: Ptr[Memory], C: Columns, B: Ptr[Batch], t: int, source: int, clock: int, again: int
) -> int:
    """One triple for all views of its source. Taking it twice does no harm, so a question may interrupt."""
    scalars, predicate_number, view0, view_at = v.scalars(S), v.predicate_number(T), v.view0(T), v.view_at(T)
    if scalars[NOTES] + v.views(T).shape[0] > v.notes(S).shape[0]:
        return NEED_NOTES
    s, p, o = i64(v.subject(B)[t]), i64(v.predicate(B)[t]), i64(v.object_(B)[t])
    number = i64(0)
    if p < predicate_number.shape[1]:
        number = i64(predicate_number[source, p])
    if number > 0:
        for k in range(view0[number], view0[number + 1]):
            if _note(T, S, C, view_at[k], s, p, o, clock, again) == _ASKED:
                return NEED_DECISION
        if v.with_object(T)[number]:
            found = _object_list(T, number << 32 | o)
            if found >= 0:
                for k in range(v.object0(T)[found], v.object0(T)[found + 1]):
                    if _note(T, S, C, v.object_at(T)[k], s, p, o, clock, again) == _ASKED:
                        return NEED_DECISION
    for k in range(view0[1 + source], view0[2 + source]):
        if _note(T, S, C, view_at[k], s, p, o, clock, again) == _ASKED:
            return NEED_DECISION
    return DONE


@inner
def _object_list(T: Ptr[Tables], key: int) -> int:
    """The list of views with this predicate's number and object, or -1."""
    objects = v.objects(T)
    mask = objects.shape[0] - 1
    i = object_place(key, objects.shape[0])
    while objects[i, 0] >= 0:
        if objects[i, 0] == key:
            return objects[i, 1]
        i = (i + 1) & mask
    return -1


@inner
def _note(T: Ptr[Tables], S: Ptr[Memory], C: Columns, view: int, s: int, p: int, o: int, clock: int, again: int) -> int:
    """Refresh a triple in a view that accepts it, or note that it is missing; `again`: note it in any case, since
    events of a later clock in the same instant may have come before it into the list."""
    scalars, entries, shape = v.scalars(S), v.entries(S), v.views(T)[view]
    if shape.s != 0 and shape.s != s:
        return _REFUSED
    if shape.o != 0 and shape.o != o:
        return _REFUSED
    if shape.equal != 0 and (
        (shape.equal & 1 and s != p) or (shape.equal & 2 and s != o) or (shape.equal & 4 and p != o)
    ):
        return _REFUSED
    if shape.filter0 < shape.filter1:
        accepted = _accepts(T, S, C, shape.filter0, shape.filter1, s, p, o)
        if accepted != _ACCEPTED:
            return accepted
    e = find_pair(S, pair_hash(view, s, p, o), view, s, p, o)
    if e >= 0:
        if entries[e].last != clock:
            refresh_entry(T, S, e, clock)
        if not again:
            return _ACCEPTED
    note = v.notes(S)[scalars[NOTES]]
    note.last, note.s, note.p, note.o, note.of = clock, s, p, o, view
    scalars[NOTES] += 1
    return _ACCEPTED


@inner
def _accepts(T: Ptr[Tables], S: Ptr[Memory], C: Columns, filter0: int, filter1: int, s: int, p: int, o: int) -> int:
    """Whether all filters of a view hold; _ASKED: one outcome is wanted in the memo."""
    filters, code, one = v.filters(T), v.code(T), v.one(S)
    for f in range(filter0, filter1):
        each = filters[f]
        term = s if each.position == 0 else p if each.position == 1 else o
        at = i64(each.code0)
        if code[at + 2] == FUSED and each.code1 == at + 6:
            outcome = fused(
                code[at + 3],
                term,
                code[at + 5],
                columns.kind(C),
                columns.number(C),
                columns.exact(C),
                columns.quality(C),
            )
        else:
            one[0] = term
            known = i64(v.memo(S)[each.condition, term])
            if known != 0:
                outcome = known - 1
            else:
                outcome = truth(
                    code,
                    at,
                    each.code1,
                    one,
                    columns.kind(C),
                    columns.number(C),
                    columns.exact(C),
                    columns.quality(C),
                    v.memo(S),
                    v.numbers(S),
                    v.machine(S),
                )
        if outcome == UNDECIDED:
            known = i64(v.memo(S)[each.condition, term])
            if known == 0:
                v.scalars(S)[ASKED_CONDITION], v.scalars(S)[ASKED_TERM] = each.condition, term
                return _ASKED
            outcome = known - 1
        if outcome != TRUE:
            return _REFUSED
    return _ACCEPTED


# --- evict and insert --------------------------------------------------------------------------------


@inner
def _evict(T: Ptr[Tables], S: Ptr[Memory], C: Columns, B: Ptr[Batch]) -> int:
    """Each source's entries; one that is being joined is still its source's first when this is called again."""
    scalars, entries, listed = v.scalars(S), v.entries(S), v.listed(S)
    for source in range(listed.shape[0]):
        low = v.low(B)[scalars[INSTANT], source]
        while True:
            e = listed[source].first
            if e < 0 or entries[e].last > low:
                break
            following = i64(entries[e].ln)
            if following >= 0 and scalars[COUNT] > _FAR:
                entry = entries[following]
                fetch_stored(T, S, entry.of, entry.s, entry.p, entry.o)
            if _joins(T, S, C, e, ENDED) != DONE:
                return OUT_FULL
            remove_entry(T, S, e)
    return DONE


@inner
def _insert(T: Ptr[Tables], S: Ptr[Memory], C: Columns) -> int:
    scalars, notes = v.scalars(S), v.notes(S)
    while scalars[NOTE] < scalars[NOTES]:
        if scalars[ENTRY_AT] < 0:
            need = _room(S)
            if need != DONE:
                return need
            note = notes[scalars[NOTE]]
            h = pair_hash(note.of, note.s, note.p, note.o)
            e = find_pair(S, h, note.of, note.s, note.p, note.o)
            if e >= 0:  # the instant holds it more than once
                if v.entries(S)[e].last <= note.last:
                    refresh_entry(T, S, e, note.last)
                scalars[NOTE] += 1
                continue
            e = store_entry(T, S, h, note.of, note.s, note.p, note.o, note.last)
        else:
            e = scalars[ENTRY_AT]
        if _joins(T, S, C, e, NEW) != DONE:
            return OUT_FULL
        scalars[NOTE] += 1
    return DONE


@inner
def _room(S: Ptr[Memory]) -> int:
    """What is wanted before one more entry may be stored; its three buckets may be new."""
    scalars = v.scalars(S)
    if scalars[FREE] < 0 and scalars[TOP] == v.entries(S).shape[0]:
        return NEED_ENTRIES
    if 2 * (scalars[COUNT] + 1) > v.pairs(S).shape[0]:
        return NEED_ENTRIES
    if 2 * (scalars[BUCKETS] + 3) > v.buckets(S).shape[0]:
        return NEED_BUCKETS
    return DONE


@inner
def _joins(T: Ptr[Tables], S: Ptr[Memory], C: Columns, e: int, kind: int) -> int:
    """Join an entry as every pattern of a query that reports `kind`; continues a join in work."""
    scalars, starts, reports = v.scalars(S), v.starts(T), v.reports(S)
    shape = v.views(T)[v.entries(S)[e].of]
    at = scalars[START_AT]
    if scalars[ENTRY_AT] < 0:
        at = i64(shape.start0)
        scalars[ENTRY_AT] = e
    while at < shape.start1:
        query = i64(starts[at].query)
        if reports[query] & kind:
            if scalars[DEPTH] < 0:
                begin_join(T, S, query, starts[at].pattern, e, SINGLE, e, kind)
            if join(T, S, C) != DONE:
                scalars[START_AT] = at
                return OUT_FULL
        at += 1
    scalars[ENTRY_AT] = -1
    return DONE


# --- list --------------------------------------------------------------------------------------------


@inner
def _list(T: Ptr[Tables], S: Ptr[Memory], C: Columns) -> int:
    """All rows of the queries that report ALL: a join that begins with each entry of the smallest view."""
    scalars, queries, reports = v.scalars(S), v.queries(T), v.reports(S)
    while scalars[QUERY_AT] < queries.shape[0]:
        query = scalars[QUERY_AT]
        if reports[query] & ALL:
            if scalars[DEPTH] < 0:
                smallest = _smallest(T, S, query)
                if smallest >= 0:
                    view = v.patterns(T)[queries[query].pattern0 + smallest].of
                    begin_join(T, S, query, smallest, v.stored(S)[view].head, WHOLE, -1, ALL)
            if scalars[DEPTH] >= 0 and join(T, S, C) != DONE:
                return OUT_FULL
        scalars[QUERY_AT] += 1
    return DONE


@inner
def _smallest(T: Ptr[Tables], S: Ptr[Memory], query: int) -> int:
    """The pattern of a query with the fewest entries; -1: one has none, or the query has no rows ever."""
    q, patterns, stored = v.queries(T)[query], v.patterns(T), v.stored(S)
    chosen, fewest = i64(-1), i64(0)
    for j in range(q.pattern1 - q.pattern0):
        count = i64(stored[patterns[q.pattern0 + j].of].count)
        if count == 0:
            return -1
        if chosen < 0 or count < fewest:
            chosen, fewest = i64(j), count
    return chosen
