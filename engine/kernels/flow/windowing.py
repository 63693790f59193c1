"""Rows of single triple patterns over windows: triples come, stay longer, leave (windows.md, section 5).

    refresh  rows that are there already stay longer; the others are noted
    evict    what has left the window goes
    insert   what was noted comes

A pattern's rows are an arrangement of its own, in which joins find them (conjoining.py), and its changes a delta. A row
has the clock of the last event that holds it in place of a weight, and is in the list of its pattern's rows in order of
those clocks: `list_place` and the half behind it hold the next and the previous entry, or -1. So a row of two columns
with two chains is a line of the cache.

Whenever room or a decision is wanted the kernel returns, and is called again with the batch: all that it needs to go on
stands in the scalars.

Operators are stepped several times within a batch: after so many changes that these are still in the processor's cache,
since rows that have gone stay until then, too; and before a pattern loses all that it has, which then leave its tables
at once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.as_python import either
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.expressions.machine import FUSED, TRUE, UNDECIDED, fused, truth
from oxiseq.engine.kernels.flow import arrangement as v
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.flow.arrangement import BEFORE_ALL, DEAD, LIVE, NEVER, ROW, WEIGHT
from oxiseq.engine.kernels.flow.arranging import (
    drop,
    empty,
    end_entry,
    fetch_entry,
    fetch_row,
    lacks_room,
    new_entry,
    row_of_set,
    sweep,
)
from oxiseq.engine.kernels.flow.buffers import DONE, NEED_OUT, NEED_ROOM
from oxiseq.engine.kernels.flow.copying import append
from oxiseq.engine.kernels.flow.driving import ALL_DONE, driven, largest
from oxiseq.engine.kernels.matching.match import object_place
from oxiseq.engine.kernels.matching.records import PREDICATE_OBJECT, SUBJECT_OBJECT, SUBJECT_PREDICATE
from oxiseq.engine.kernels.memory.hashing import row_tag
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr, address_of
from oxiseq.engine.kernels.memory.raw import get
from oxiseq.engine.kernels.memory.slots import put_slot
from oxiseq.engine.kernels.terms import columns
from oxiseq.engine.kernels.terms.columns import Columns

NEED_NOTES, NEED_DECISION, NEED_FIRST, NEED_STEP, NEED_CHECK, NEED_FOUND = range(4, 10)
"""More that the kernel answers: that operators are to be stepped by the caller, for once, or the one at WHICH is; that
one may have made too many rows; that there is no room for what the root has found."""

LAST: Final = WEIGHT
"""The word of an entry that is the clock of the last event that holds the row."""
LIST_HALVES: Final = 2
"""Of an entry, behind its row."""

COMES, GOES = 1, 2
"""Which changes are wanted."""

VIEW = np.dtype(
    [
        ("s", "u4"),  # constants, 0: any
        ("p", "u4"),
        ("o", "u4"),
        ("equal", "i4"),  # which positions must agree
        ("filter0", "i4"),
        ("filter1", "i4"),
        ("source", "i4"),  # whose triples they are
        ("wanted", "i4"),
        ("width", "i4"),
        ("column0", "i4"),  # the positions that are its columns
        ("column1", "i4"),
        ("column2", "i4"),
        ("kept", "i8"),  # address of its arrangement
        ("out", "i8"),  # and of its delta
    ],
    align=True,
)
"""A triple pattern."""

FILTER = np.dtype([("condition", "i4"), ("position", "i4"), ("code0", "i4"), ("code1", "i4")], align=True)
"""A pattern's filter: number of the condition, the position that it is about, its program."""

NOTED = np.dtype(
    [("last", "i8"), ("s", "u4"), ("p", "u4"), ("o", "u4"), ("of", "i4"), ("tag", "u4"), ("absent", "i4")], align=True
)
"""A triple of this instant of which a pattern's row is to come, that row's hash, and 1 if it is surely not there."""

LISTED = np.dtype([("clock", "i8"), ("first", "i4"), ("last", "i4"), ("source", "i4")], align=True)
"""By pattern its rows in order of their clocks, -1: none; that of the first, NEVER where there is none; its source."""

(
    COUNT,  # rows that are there
    INSTANT,  # of the batch, in work
    PHASE,
    EVENT,
    TRIPLE,
    NOTES,  # rows noted
    NOTE,  # which of them comes next
    TICK,  # of the batch's first instant
    TOUCHED,  # patterns from which rows have gone in the last batch
    WRITTEN,  # patterns whose deltas hold something
    CHANGED,  # rows that have come since operators were stepped, or gone and are still there for them
    MOST,  # so many may be
    WHICH,  # the pattern that wants room, or the operator that Python steps
    ASKED_CONDITION,
    ASKED_TERM,
    STEPS,  # address of the operators' table (driving.py); 0: the caller steps them, once for the batch
    ROOT,  # address of the root's delta
    FOUND,  # and of that to which it is added after each step
    BOUND,  # rows that an operator may have at a tick
    FIRST,  # 1: the first step is the caller's
    STEPPING,
    SCALARS,
) = range(22)

_BEGIN, _REFRESH, _EVICT, _INSERT = range(4)
"""Phases of an instant."""
_NOT, _DRIVE, _ADD = range(3)
"""Phases of a step of the operators."""


class Views(Arrays):
    """What triples are sorted by."""


class Windowing(Arrays):
    """A run."""


class Batch(Arrays):
    """Events, C-contiguous; instant k is the events until[k] : until[k + 1]."""


_predicate_number = array(Views, "predicate", np.int32, 2)
"""i32[sources, ids] by id of a predicate's term: number of its lists of patterns; 0 for no constant of the source."""
_view0 = array(Views, "view0", np.int32)
_view_at = array(Views, "view_at", np.int32)
"""Lists of patterns by number: for 1 + source those with any predicate, for a predicate's those with any object."""
_with_object = array(Views, "with_object", np.int32)
"""i32 by predicate's number: whether there are patterns with a constant object."""
_objects = array(Views, "objects", np.int64, 2)  # i64[slots, 2]: predicate's number << 32 | object → list; -1: free
_object0 = array(Views, "object0", np.int32)
_object_at = array(Views, "object_at", np.int32)
_views = array(Views, "views", VIEW)
_filters = array(Views, "filters", FILTER)
_code = array(Views, "code", np.int32)

_scalars = array(Windowing, "scalars", np.int64)
_listed = array(Windowing, "listed", LISTED)
_oldest = array(Windowing, "oldest", np.int64)
"""i64 by source: no row of its patterns has an earlier clock; NEVER: there is none."""
_notes = array(Windowing, "notes", NOTED)
_touched = array(Windowing, "touched", np.int32)  # i32: patterns
_written = array(Windowing, "written", np.int32)  # i32: patterns
_row = array(Windowing, "row", np.uint32, 2)  # u32[2, 3]: the row in work, and one that will be
_numbers = array(Windowing, "numbers", np.float64, 2)
_machine = array(Windowing, "machine", np.int64, 2)  # the stack machine's scratch
_one = array(Windowing, "one", np.int64)  # i64[1]: the term that a filter is about
_memo = array(Windowing, "memo", np.uint8, 2)
_batch = array(Windowing, "batch", np.int64)  # i64: the pointer table of the batch in work

_offset = array(Batch, "offset", np.int64)
_subject = array(Batch, "subject", np.uint32)
_predicate = array(Batch, "predicate", np.uint32)
_object = array(Batch, "object", np.uint32)
_clock = array(Batch, "clock", np.int64)  # i64 by event, ascending within each source
_source = array(Batch, "source", np.int32)  # i32 by event, ascending within an instant
_until = array(Batch, "until", np.int64)
_low = array(Batch, "low", np.int64, 2)  # i64[instants, sources]: what has this clock or an earlier one is out

_ACCEPTED, _REFUSED, _ASKED = 1, 0, -1
_FAR: Final = 1 << 13
"""Rows from which on it pays to fetch memory ahead."""
_AHEAD: Final = 8
"""So many triples."""
_MANY: Final = 16
"""Rows that leave in less time at once, a step of the operators included."""
_BATCH: Final = WORDS * Windowing._fields.index("batch")


@inner
def _address_in(array: Any) -> int:
    """The address of a kernel's argument."""
    return i64(array.ctypes.data)


_address: Final = either(_address_in, address_of)


@kernel
def advance(
    T: Ptr[Views],
    S: Ptr[Windowing],
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
    """Work through a batch (Batch) from where the scalars say; DONE, or what is wanted before it is called again."""
    scalars, batch = _scalars(S), _batch(S)
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
    if scalars[PHASE] == _BEGIN:
        _sweep(T, S)
        scalars[PHASE] = _REFRESH
    while scalars[INSTANT] < instants:
        if scalars[STEPPING] != _NOT:
            need = _step(S)
            if need != DONE:
                return need
            _sweep(T, S)
        if scalars[PHASE] == _REFRESH:
            need = _refresh(T, S, C, B)
            if need != DONE:
                return need
            scalars[PHASE] = _EVICT
            if scalars[STEPS] != 0 and scalars[WRITTEN] > 0 and _falls(T, S, B):
                scalars[STEPPING] = _DRIVE
                continue
        if scalars[PHASE] == _EVICT:
            need = _evict(T, S, B)
            if need != DONE:
                return need
            scalars[PHASE] = _INSERT
        need = _insert(T, S)
        if need != DONE:
            return need
        scalars[NOTES] = scalars[NOTE] = 0
        scalars[PHASE] = _REFRESH
        scalars[INSTANT] += 1
        if scalars[STEPS] != 0 and scalars[CHANGED] > scalars[MOST]:
            scalars[STEPPING] = _DRIVE
    return DONE if scalars[STEPS] == 0 else _step(S)


@inner
def _step(S: Ptr[Windowing]) -> int:
    """Step the operators: what has been found is added to the rest."""
    scalars = _scalars(S)
    if scalars[STEPPING] != _ADD:
        scalars[STEPPING] = _ADD
        if scalars[FIRST] != 0:
            scalars[FIRST] = 0
            return NEED_FIRST
        scalars[WHICH] = driven(scalars[STEPS])
        if scalars[WHICH] != ALL_DONE:
            scalars[STEPPING] = _DRIVE
            return NEED_STEP
        if largest(scalars[STEPS]) > scalars[BOUND]:
            return NEED_CHECK
    if not append(scalars[ROOT], scalars[FOUND]):
        return NEED_FOUND
    scalars[STEPPING] = _NOT
    return DONE


@inner
def _point(table: Array, number: int, address: int, rows: int, columns: int) -> None:
    """Array `number` of a pointer table, made here since that takes less time than in Python."""
    table[WORDS * number], table[WORDS * number + 1], table[WORDS * number + 2] = address, rows, columns


@inner
def _sweep(T: Ptr[Views], S: Ptr[Windowing]) -> None:
    """No join will read the last batch: its changes are cleared, and what went then leaves the arrangements."""
    scalars, touched, written, views = _scalars(S), _touched(S), _written(S), _views(T)
    for i in range(scalars[WRITTEN]):
        buffers.count(views[written[i]].out)[0] = 0
    scalars[WRITTEN] = 0
    for i in range(scalars[TOUCHED]):
        sweep(views[touched[i]].kept)
    scalars[TOUCHED] = scalars[CHANGED] = 0


# --- refresh -----------------------------------------------------------------------------------------


@inner
def _refresh(T: Ptr[Views], S: Ptr[Windowing], C: Columns, B: Ptr[Batch]) -> int:
    """Take the triples of the instant's events one by one."""
    scalars, offset, clock, sources = _scalars(S), _offset(B), _clock(B), _source(B)
    instant, low = scalars[INSTANT], _low(B)
    until = _until(B)[instant + 1]
    event, t = scalars[EVENT], scalars[TRIPLE]
    first = _until(B)[instant]
    triples, far = _subject(B).shape[0], scalars[COUNT] > _FAR
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
    sources, clock = _source(B), _clock(B)
    low, high = event, event
    while low > first and sources[low - 1] == sources[event]:
        low -= 1
    while high + 1 < until and sources[high + 1] == sources[event]:
        high += 1
    return clock[low] != clock[high]


@inner
def _look_out(T: Ptr[Views], S: Ptr[Windowing], B: Ptr[Batch], t: int, source: int) -> None:
    """Have the processor bring what a later triple, of the same source as likely as not, will need: in large windows it
    waits for memory half of the time."""
    p, predicate_number, view0 = i64(_predicate(B)[t]), _predicate_number(T), _view0(T)
    if p >= predicate_number.shape[1] or predicate_number[source, p] == 0:
        return
    number = i64(predicate_number[source, p])
    view = i64(-1)
    if view0[number] < view0[number + 1]:
        view = i64(_view_at(T)[view0[number]])
    elif _with_object(T)[number]:
        found = _object_list(T, number << 32 | i64(_object(B)[t]))
        if found >= 0:
            view = i64(_object_at(T)[_object0(T)[found]])
    if view >= 0:
        shape = _views(T)[view]
        _set_row(S, 1, shape, _subject(B)[t], p, _object(B)[t])
        fetch_row(shape.kept, _row(S), 1)


@inner
def _set_row(S: Ptr[Windowing], i: int, shape: Any, s: int, p: int, o: int) -> None:
    """Write a pattern's columns of a triple into the scratch."""
    row = _row(S)
    if shape.width > 0:
        row[i, 0] = _term(shape.column0, s, p, o)
    if shape.width > 1:
        row[i, 1] = _term(shape.column1, s, p, o)
    if shape.width > 2:
        row[i, 2] = _term(shape.column2, s, p, o)


@inner
def _term(position: int, s: int, p: int, o: int) -> int:
    if position == 0:
        return s
    if position == 1:
        return p
    return o


@inner
def _take(
    T: Ptr[Views], S: Ptr[Windowing], C: Columns, B: Ptr[Batch], t: int, source: int, clock: int, again: int
) -> int:
    """One triple for all patterns of its source. Taking it twice does no harm, so a question may interrupt."""
    scalars, predicate_number, view0, view_at = _scalars(S), _predicate_number(T), _view0(T), _view_at(T)
    if scalars[NOTES] + _views(T).shape[0] > _notes(S).shape[0]:
        return NEED_NOTES
    s, p, o = i64(_subject(B)[t]), i64(_predicate(B)[t]), i64(_object(B)[t])
    number = i64(0)
    if p < predicate_number.shape[1]:
        number = i64(predicate_number[source, p])
    if number > 0:
        for k in range(view0[number], view0[number + 1]):
            if _note(T, S, C, view_at[k], s, p, o, clock, again) == _ASKED:
                return NEED_DECISION
        if _with_object(T)[number]:
            found = _object_list(T, number << 32 | o)
            if found >= 0:
                for k in range(_object0(T)[found], _object0(T)[found + 1]):
                    if _note(T, S, C, _object_at(T)[k], s, p, o, clock, again) == _ASKED:
                        return NEED_DECISION
    for k in range(view0[1 + source], view0[2 + source]):
        if _note(T, S, C, view_at[k], s, p, o, clock, again) == _ASKED:
            return NEED_DECISION
    return DONE


@inner
def _object_list(T: Ptr[Views], key: int) -> int:
    """The list of patterns with this predicate's number and object, or -1."""
    objects = _objects(T)
    mask = objects.shape[0] - 1
    i = object_place(key, objects.shape[0])
    while objects[i, 0] >= 0:
        if objects[i, 0] == key:
            return objects[i, 1]
        i = (i + 1) & mask
    return -1


@inner
def _note(
    T: Ptr[Views], S: Ptr[Windowing], C: Columns, view: int, s: int, p: int, o: int, clock: int, again: int
) -> int:
    """Refresh a row of a pattern that accepts a triple, or note that it is missing; `again`: note it in any case, since
    events of a later clock in the same instant may have come before it into the list."""
    scalars, shape, row = _scalars(S), _views(T)[view], _row(S)
    if shape.s != 0 and shape.s != s:
        return _REFUSED
    if shape.o != 0 and shape.o != o:
        return _REFUSED
    if shape.equal != 0 and (
        (shape.equal & SUBJECT_PREDICATE and s != p)
        or (shape.equal & SUBJECT_OBJECT and s != o)
        or (shape.equal & PREDICATE_OBJECT and p != o)
    ):
        return _REFUSED
    if shape.filter0 < shape.filter1:
        accepted = _accepts(T, S, C, shape.filter0, shape.filter1, s, p, o)
        if accepted != _ACCEPTED:
            return accepted
    _set_row(S, 0, shape, s, p, o)
    tag = row_tag(row, 0, 0, shape.width)
    e = row_of_set(shape.kept, row, 0, tag, shape.width)
    if e >= 0:
        if v.words(shape.kept)[e, LAST] != clock:
            _refresh_row(S, shape, view, e, clock)
        if not again:
            return _ACCEPTED
    note = _notes(S)[scalars[NOTES]]
    note.last, note.s, note.p, note.o, note.of, note.tag = clock, s, p, o, view, tag
    note.absent = e < 0 and scalars[NOTES] == 0
    scalars[NOTES] += 1
    return _ACCEPTED


@inner
def _accepts(T: Ptr[Views], S: Ptr[Windowing], C: Columns, filter0: int, filter1: int, s: int, p: int, o: int) -> int:
    """Whether all filters of a pattern hold; _ASKED: one outcome is wanted in the memo."""
    filters, code, one = _filters(T), _code(T), _one(S)
    for f in range(filter0, filter1):
        each = filters[f]
        term = _term(each.position, s, p, o)
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
            known = i64(_memo(S)[each.condition, term])
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
                    _memo(S),
                    _numbers(S),
                    _machine(S),
                )
        if outcome == UNDECIDED:
            known = i64(_memo(S)[each.condition, term])
            if known == 0:
                _scalars(S)[ASKED_CONDITION], _scalars(S)[ASKED_TERM] = each.condition, term
                return _ASKED
            outcome = known - 1
        if outcome != TRUE:
            return _REFUSED
    return _ACCEPTED


# --- evict and insert --------------------------------------------------------------------------------


@inner
def _evict(T: Ptr[Views], S: Ptr[Windowing], B: Ptr[Batch]) -> int:
    """Each source's rows, pattern by pattern; at most instants none goes."""
    scalars, listed, lows, oldest = _scalars(S), _listed(S), _low(B), _oldest(S)
    instant = scalars[INSTANT]
    for source in range(oldest.shape[0]):
        low = lows[instant, source]
        if oldest[source] > low:
            continue
        least = NEVER
        for view in range(listed.shape[0]):
            ends = listed[view]
            if ends.source == source:
                if ends.clock <= low and not _evict_of(T, S, view, low):
                    scalars[WHICH] = view
                    return NEED_OUT
                least = min(least, ends.clock)
        oldest[source] = least
    return DONE


@inner
def _falls(T: Ptr[Views], S: Ptr[Windowing], B: Ptr[Batch]) -> bool:
    """Whether a pattern loses all its rows at the instant, and has many."""
    listed, views, lows, oldest = _listed(S), _views(T), _low(B), _oldest(S)
    instant = _scalars(S)[INSTANT]
    for source in range(oldest.shape[0]):
        low = lows[instant, source]
        if oldest[source] <= low:
            for view in range(listed.shape[0]):
                ends = listed[view]
                if ends.source == source and ends.clock <= low:
                    A = views[view].kept
                    if v.scalars(A)[LIVE] > _MANY and v.words(A)[ends.last, LAST] <= low:
                        return True
    return False


@inner
def _evict_of(T: Ptr[Views], S: Ptr[Windowing], view: int, low: int) -> bool:
    """What has this clock or an earlier one goes; False: there is no room for the changes."""
    scalars, shape, ends = _scalars(S), _views(T)[view], _listed(S)[view]
    A, place, tick = shape.kept, list_place(shape.width), scalars[TICK] + scalars[INSTANT]
    words, halves, links = v.words(A), v.halves(A), v.links(A)
    unseen = scalars[WRITTEN] == 0 and shape.wanted & GOES == 0  # what comes with the batch finds it no more
    if unseen and words[ends.last, LAST] <= low:
        rows = v.scalars(A)[LIVE]
        if empty(A):
            scalars[COUNT] -= rows
            ends.first, ends.last, ends.clock = -1, -1, NEVER
            return True
    while ends.first >= 0 and ends.clock <= low:
        e = i64(ends.first)
        following = i64(links[e, place])
        if shape.wanted & GOES and not _write(S, view, shape, halves, e, ROW, -1):
            return False
        if unseen:
            drop(A, e)
        else:
            if v.scalars(A)[DEAD] < 0:
                _touched(S)[scalars[TOUCHED]] = view
                scalars[TOUCHED] += 1
            end_entry(A, e, tick)
            scalars[CHANGED] += 1
        ends.first = following
        if following >= 0:
            links[following, place + 1] = -1
            ends.clock = words[following, LAST]
            fetch_entry(A, i64(links[following, place]))
        else:
            ends.last, ends.clock = -1, NEVER
        scalars[COUNT] -= 1
    return True


@inner
def _insert(T: Ptr[Views], S: Ptr[Windowing]) -> int:
    scalars, notes, views, row = _scalars(S), _notes(S), _views(T), _row(S)
    while scalars[NOTE] < scalars[NOTES]:
        note = notes[scalars[NOTE]]
        view = i64(note.of)
        shape = views[view]
        A = shape.kept
        _set_row(S, 0, shape, note.s, note.p, note.o)
        tag = i64(note.tag)
        e = i64(-1) if note.absent else row_of_set(A, row, 0, tag, shape.width)
        if e >= 0:  # the instant holds it more than once; also of the same clock it goes behind what has come since
            if v.words(A)[e, LAST] <= note.last:
                _refresh_row(S, shape, view, e, note.last)
            scalars[NOTE] += 1
            continue
        mask = (1 << i64(shape.width)) - 1
        if lacks_room(A, mask):
            scalars[WHICH] = view
            return NEED_ROOM
        if shape.wanted & COMES and not _write(S, view, shape, row, 0, 0, 1):
            scalars[WHICH] = view
            return NEED_OUT
        _enter(T, S, view, row, 0, mask, tag, scalars[TICK] + scalars[INSTANT], note.last)
        scalars[CHANGED] += 1
    return DONE


@inner
def _enter(
    T: Ptr[Views], S: Ptr[Windowing], view: int, rows: Array, i: int, mask: int, tag: int, tick: int, clock: int
) -> None:
    """A row comes; there is room."""
    shape = _views(T)[view]
    A = shape.kept
    e = new_entry(A, rows, i, mask, tick, clock, tag)
    put_slot(v.by_row(A), tag, e)
    ends, oldest = _listed(S)[view], _oldest(S)
    _append(ends, v.words(A), v.links(A), list_place(shape.width), e)
    oldest[shape.source] = min(oldest[shape.source], clock)
    _scalars(S)[COUNT] += 1
    _scalars(S)[NOTE] += 1


@inner
def _write(S: Ptr[Windowing], view: int, shape: Any, rows: Array, i: int, first: int, weight: int) -> bool:
    """Write a change of a pattern's rows; False: there is no room."""
    out = shape.out
    top, given, n = buffers.count(out), buffers.rows(out), buffers.count(out)[0]
    if n == buffers.at(out).shape[0]:
        return False
    if n == 0:
        _written(S)[_scalars(S)[WRITTEN]] = view
        _scalars(S)[WRITTEN] += 1
    buffers.at(out)[n], buffers.weight(out)[n] = _scalars(S)[TICK] + _scalars(S)[INSTANT], weight
    for c in range(shape.width):
        given[n, c] = rows[i, first + c]
    top[0] = n + 1
    return True


# --- the list of a pattern's rows --------------------------------------------------------------------


@inner
def list_place(width: int) -> int:
    """The half of an entry that says which row comes next."""
    return ROW + width + (width & 1)


@inner
def _refresh_row(S: Ptr[Windowing], shape: Any, view: int, e: int, clock: int) -> None:
    """An event of this clock, its source's largest so far, holds the row again: it goes to the end of the list."""
    ends, words, links, place = _listed(S)[view], v.words(shape.kept), v.links(shape.kept), list_place(shape.width)
    words[e, LAST] = clock
    if ends.last == e:
        if ends.first == e:
            ends.clock = clock
        return
    following, previous = i64(links[e, place]), i64(links[e, place + 1])
    links[following, place + 1] = previous
    if previous >= 0:
        links[previous, place] = following
    else:
        ends.first, ends.clock = following, words[following, LAST]
    _append(ends, words, links, place, e)


@inner
def _append(ends: Any, words: Array, links: Array, place: int, e: int) -> None:
    last = i64(ends.last)
    links[e, place], links[e, place + 1] = -1, last
    if last >= 0:
        links[last, place] = e
    else:
        ends.first, ends.clock = e, words[e, LAST]
    ends.last = e


@kernel
def enter(T: Ptr[Views], S: Ptr[Windowing], given: Array, rows: Array) -> int:
    """Have rows that were there before all batches, each pattern's in order of their clocks. given: i64[n, 2], pattern
    and clock; rows: u32[n, columns]. DONE, or what is wanted before this is called again."""
    scalars = _scalars(S)
    while scalars[NOTE] < given.shape[0]:
        i = scalars[NOTE]
        shape = _views(T)[given[i, 0]]
        mask = (1 << i64(shape.width)) - 1
        if lacks_room(shape.kept, mask):
            scalars[WHICH] = given[i, 0]
            return NEED_ROOM
        _enter(T, S, given[i, 0], rows, i, mask, row_tag(rows, i, 0, shape.width), BEFORE_ALL, given[i, 1])
    scalars[NOTE] = 0
    return DONE
