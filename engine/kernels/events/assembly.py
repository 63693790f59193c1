"""What an event is: the rules by which quads, in the order in which they come, become events.

In the flow: reader's tokens → **open, waiting and complete events** → columns of a batch. What is accepted:

- An event is a named graph. Its time is the object of `GRAPH time-predicate TIME`, in the default graph or
  inside the event's own graph; there the triple does not count as part of the graph. TIME is an xsd:dateTime
  (no zone means UTC) or an integer of microseconds since 1970.
- The time may come before the graph's quads, among them, or after them.
- The graph of the last quad is open. It is **complete** when a quad of another named graph comes, or the
  input ends, and its time is known. If its time is not known then, it waits (in memory): more of its quads
  may come, and its time completes it. Events are handed out in the order of completion, so for a stream in
  time order each event should be contiguous and have its time beside it.
- An event with an empty graph is written with its time inside its own graph.
- Faults: an event without a time at the end of the input; a time in the default graph for a graph that never
  comes; two different times; a time that is not one; any other triple of the default graph; a graph that
  comes again after completion. The last is noticed for the 65,536 events that completed last, so that
  memory stays bounded; after that a name may be used again for another event.

Names of events and times are never interned: they occur once.

`S` is the address of the state, i64 words; engine/events/assembler.py makes it and what it points to:

- *Records*, RECORD_WORDS words each: names of events and, by event, labels of blank nodes. They are found by their
  bytes in a table of open addressing, the hash only finds the candidates. Their texts lie in the arena.
- *Chunks*, 256 bytes each, hold the triples of events that are not complete: a link, then CHUNK_ROWS rows.
- The columns of the batch that is being made, and a ring of the records of the events that completed last.

Every function checks its room before it changes anything, so that a line may be read again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.raw import get, half, move, put, put_half, same
from oxiseq.engine.kernels.terms.table import Terms, fresh_blank, hashed

# --- words of the state -----------------------------------------------------------------------------

(
    DATA,  # address of the block
    POSITION,  # bytes of it that are read
    STOP,  # its length; it ends with a line break
    LINE,  # number of the next line
    AT_LINE,  # of a status: the line's number
    ENDING,  # 1: nothing comes after the block
    QUADS,  # quads read so far
    TRUSTED,  # 1: the block is pyoxigraph's own text, whose lines are not checked and not counted
    START,  # of a status: addresses of the token or line
    END,
    ANSWER,  # Python's answer to the last status: see below
    TIME,  # the time that Python read
    TIME_TERM,  # id of the time predicate
    SCRATCH,  # address of memory for a normal form
    OPEN,  # record of the open event, 0: none
    RECORDS,
    FREE_RECORD,  # first of a list
    FREE_RECORDS,  # how many
    SLOTS,
    SLOT_MASK,
    ARENA,
    ARENA_USED,
    ARENA_SIZE,
    ARENA_LIVE,
    NEW_ARENA,
    CHUNKS,
    FREE_CHUNK,
    FREE_CHUNKS,
    RING,
    RING_SIZE,
    RING_AT,
    RING_COUNT,
    SERIAL,
    OUT_TIME,
    OUT_END,
    OUT_SUBJECT,
    OUT_PREDICATE,
    OUT_OBJECT,
    OUT_EVENTS,
    OUT_ROWS,
    MAX_EVENTS,
    MAX_ROWS,
    PREVIOUS,  # the subject of the line before: address, length, id
    PREVIOUS_SIZE,
    PREVIOUS_ID,
) = range(45)
STATE_WORDS: Final = 45

# --- words of a record ------------------------------------------------------------------------------

(
    HASH,
    OWNER,  # 0: a name; else the event's record
    TEXT,  # offset in the arena
    LENGTH,
    VALUE,  # a name: the time; a label: the id
    KIND,
    NEXT,  # of a free record, or of a label: the event's next one
    LABELS,  # first label
    FIRST,  # first chunk
    LAST,
    COUNT,  # triples
    ORDER,  # of waiting events and of times: when it began to wait
) = range(12)
RECORD_WORDS: Final = 12
LINE_RECORDS: Final = 3
"""Records that a line may need: a name, two labels."""

FREE, UNTIMED, TIMED, WAITING, TIME_ONLY, COMPLETE, AGAIN, LABEL_OF = range(8)
"""Kinds of records. UNTIMED, TIMED: open, without or with its time. WAITING: not open, without a time. TIME_ONLY: the
time came, the graph did not. AGAIN: open, but its name came too late."""

CHUNK_WORDS: Final = 64
CHUNK_ROWS: Final = 21

# --- statuses ---------------------------------------------------------------------------------------

(
    OK,
    FULL,  # the batch is full: take it
    UNUSUAL_TERM,  # the token START..END is to be interned; answer REFUSED if it cannot be
    NEED_TIME,  # the token START..END is to be read as a time; answer with it, or REFUSED
    NEED_ROOM,  # of records, chunks or the arena
    NEED_ROWS,  # of the batch's columns
    NEED_TERMS,  # of the term dictionary
    FAULT_AGAIN,  # the graph of the line START..END comes again
    WHOLE_LINE,  # the line is for pyoxigraph
    FAULT_TERM,  # a term of the line could not be interned
    FAULT_DEFAULT,  # a triple of the default graph that is no time
    FAULT_SECOND,  # a second time
) = range(12)
GONE_ON: Final = WHOLE_LINE
"""From this status on the reader has gone on to the next line; below, it reads the same line again."""

NO_ANSWER, GIVEN, REFUSED = range(3)


@inner
def _record(S: int, r: int) -> int:
    """The address of a record."""
    return get(S, RECORDS) + r * (8 * RECORD_WORDS)


@inner
def _chunk(S: int, c: int) -> int:
    return get(S, CHUNKS) + c * (4 * CHUNK_WORDS)


# --- names and labels -------------------------------------------------------------------------------


_SPREAD: Final = np.uint64(0x632BE59BD9B4E019)


@inner
def name_hash(owner: int, at: int, size: int) -> int:
    """The hash of a name (owner 0) or of a label."""
    return i64(hashed(at, 0, size) ^ (u64(owner) * _SPREAD))


@inner
def seek(S: int, owner: int, at: int, size: int, h: int) -> int:
    """The record of a name or label, 0 if there is none."""
    slots, mask = get(S, SLOTS), get(S, SLOT_MASK)
    arena = get(S, ARENA)
    i = h & mask
    while True:
        r = half(slots, i)
        if r == 0:
            return i64(0)
        record = _record(S, r)
        if get(record, HASH) == h and get(record, OWNER) == owner and get(record, LENGTH) == size:
            if same(arena + get(record, TEXT), at, size):
                return r
        i = (i + 1) & mask


@inner
def _enter(S: int, owner: int, at: int, size: int, h: int, kind: int) -> int:
    """A new record; there is room. One that is AGAIN is not found by its name."""
    r = get(S, FREE_RECORD)
    record = _record(S, r)
    put(S, FREE_RECORD, get(record, NEXT))
    put(S, FREE_RECORDS, get(S, FREE_RECORDS) - 1)
    text = get(S, ARENA_USED)
    move(get(S, ARENA) + text, at, size)
    put(S, ARENA_USED, text + size)
    put(S, ARENA_LIVE, get(S, ARENA_LIVE) + size)
    put(record, HASH, h)
    put(record, OWNER, owner)
    put(record, TEXT, text)
    put(record, LENGTH, size)
    put(record, KIND, kind)
    for field in range(NEXT, RECORD_WORDS):
        put(record, field, 0)
    if kind != AGAIN:
        _place(S, r, h)
    return r


@inner
def _place(S: int, r: int, h: int) -> None:
    slots, mask = get(S, SLOTS), get(S, SLOT_MASK)
    i = h & mask
    while half(slots, i) != 0:
        i = (i + 1) & mask
    put_half(slots, i, r)


@inner
def _leave(S: int, r: int) -> None:
    """Free a record; the ones behind it in the table move up."""
    record = _record(S, r)
    if get(record, KIND) != AGAIN:
        slots, mask = get(S, SLOTS), get(S, SLOT_MASK)
        gap = get(record, HASH) & mask
        while half(slots, gap) != r:
            gap = (gap + 1) & mask
        i = (gap + 1) & mask
        while half(slots, i) != 0:
            home = get(_record(S, half(slots, i)), HASH) & mask
            if ((i - home) & mask) >= ((i - gap) & mask):
                put_half(slots, gap, half(slots, i))
                gap = i
            i = (i + 1) & mask
        put_half(slots, gap, 0)
    put(S, ARENA_LIVE, get(S, ARENA_LIVE) - get(record, LENGTH))
    put(record, KIND, FREE)
    put(record, NEXT, get(S, FREE_RECORD))
    put(S, FREE_RECORD, r)
    put(S, FREE_RECORDS, get(S, FREE_RECORDS) + 1)


@inner
def label_id(S: int, D: Terms, at: int, size: int) -> int:
    """The id of a blank node of the open event; 0: the dictionary has no room."""
    owner = get(S, OPEN)
    h = name_hash(owner, at, size)
    r = seek(S, owner, at, size, h)
    if r != 0:
        return get(_record(S, r), VALUE)
    term = fresh_blank(D)
    if term != 0:
        event = _record(S, owner)
        r = _enter(S, owner, at, size, h, LABEL_OF)
        put(_record(S, r), VALUE, term)
        put(_record(S, r), NEXT, get(event, LABELS))
        put(event, LABELS, r)
    return term


@kernel
def tidy(S: int, records: int) -> None:
    """Move the texts of `records` records to NEW_ARENA, without gaps, and fill empty slots."""
    used = i64(0)
    old, new = get(S, ARENA), get(S, NEW_ARENA)
    for r in range(1, records):
        record = _record(S, r)
        kind = get(record, KIND)
        if kind != FREE:
            move(new + used, old + get(record, TEXT), get(record, LENGTH))
            put(record, TEXT, used)
            used += get(record, LENGTH)
            if kind != AGAIN:
                _place(S, r, get(record, HASH))
    put(S, ARENA, new)
    put(S, ARENA_USED, used)


# --- triples ----------------------------------------------------------------------------------------


@inner
def has_room(S: int, size: int) -> bool:
    """Whether a line of that size finds room: a name, two labels, a chunk."""
    if get(S, FREE_RECORDS) < LINE_RECORDS or get(S, FREE_CHUNKS) < 1:
        return False
    return get(S, ARENA_USED) + size <= get(S, ARENA_SIZE)


@inner
def append(S: int, subject: int, predicate: int, object: int) -> None:
    """A triple of the open event; there is room for a chunk."""
    event = _record(S, get(S, OPEN))
    if get(event, KIND) == AGAIN:
        return
    count = get(event, COUNT)
    row = count % CHUNK_ROWS
    if row == 0:
        fresh = get(S, FREE_CHUNK)
        put(S, FREE_CHUNK, half(_chunk(S, fresh), 0))
        put(S, FREE_CHUNKS, get(S, FREE_CHUNKS) - 1)
        if count == 0:
            put(event, FIRST, fresh)
        else:
            put_half(_chunk(S, get(event, LAST)), 0, fresh)
        put(event, LAST, fresh)
    chunk = _chunk(S, get(event, LAST))
    put_half(chunk, 3 * row + 1, subject)
    put_half(chunk, 3 * row + 2, predicate)
    put_half(chunk, 3 * row + 3, object)
    put(event, COUNT, count + 1)


@inner
def _hand_over(S: int, event: int) -> None:
    """Copy an event's triples to the columns, and free its chunks."""
    subjects, predicates, objects = get(S, OUT_SUBJECT), get(S, OUT_PREDICATE), get(S, OUT_OBJECT)
    row = get(S, OUT_ROWS)
    left, c = get(event, COUNT), get(event, FIRST)
    while left > 0:
        chunk = _chunk(S, c)
        rows = min(left, CHUNK_ROWS)
        for i in range(rows):
            put_half(subjects, row + i, half(chunk, 3 * i + 1))
            put_half(predicates, row + i, half(chunk, 3 * i + 2))
            put_half(objects, row + i, half(chunk, 3 * i + 3))
        row += rows
        left -= rows
        following = half(chunk, 0)
        put_half(chunk, 0, get(S, FREE_CHUNK))
        put(S, FREE_CHUNK, c)
        put(S, FREE_CHUNKS, get(S, FREE_CHUNKS) + 1)
        c = following
    put(S, OUT_ROWS, row)


# --- events -----------------------------------------------------------------------------------------


@inner
def _complete(S: int, r: int) -> int:
    """Hand an event over that has its time; FULL and NEED_ROWS when there is no room for it."""
    event = _record(S, r)
    number = get(S, OUT_EVENTS)
    if number >= get(S, MAX_EVENTS):
        return FULL
    if get(S, OUT_ROWS) + get(event, COUNT) > get(S, MAX_ROWS):
        return NEED_ROWS
    _hand_over(S, event)
    put(get(S, OUT_TIME), number, get(event, VALUE))
    put(get(S, OUT_END), number, get(S, OUT_ROWS))
    put(S, OUT_EVENTS, number + 1)
    _forget_labels(S, event)
    put(event, KIND, COMPLETE)
    size, at, ring = get(S, RING_SIZE), get(S, RING_AT), get(S, RING)
    if get(S, RING_COUNT) == size:
        _leave(S, get(ring, at))
    else:
        put(S, RING_COUNT, get(S, RING_COUNT) + 1)
    put(ring, at, r)
    put(S, RING_AT, at + 1 if at + 1 < size else 0)
    return OK


@inner
def _forget_labels(S: int, event: int) -> None:
    label = get(event, LABELS)
    while label != 0:
        following = get(_record(S, label), NEXT)
        _leave(S, label)
        label = following
    put(event, LABELS, 0)


@inner
def close_open(S: int) -> int:
    """The open event ends: it is complete, or waits for its time."""
    r = get(S, OPEN)
    if r == 0:
        return OK
    event = _record(S, r)
    kind = get(event, KIND)
    if kind == TIMED:
        status = _complete(S, r)
        if status != OK:
            return status
    elif kind == UNTIMED:
        put(event, KIND, WAITING)
        _queue(S, event)
    else:
        _forget_labels(S, event)
        _leave(S, r)
    put(S, OPEN, 0)
    put(S, PREVIOUS_SIZE, 0)  # a label there meant another blank node
    return OK


@inner
def _queue(S: int, event: int) -> None:
    put(S, SERIAL, get(S, SERIAL) + 1)
    put(event, ORDER, get(S, SERIAL))


@inner
def switch(S: int, at: int, size: int) -> int:
    """Another graph begins, or continues; there is room. FAULT_AGAIN when its event was complete."""
    status = close_open(S)
    if status != OK:
        return status
    h = name_hash(0, at, size)
    r = seek(S, 0, at, size, h)
    if r == 0:
        put(S, OPEN, _enter(S, 0, at, size, h, UNTIMED))
        return OK
    event = _record(S, r)
    if get(event, KIND) == COMPLETE:
        put(S, OPEN, _enter(S, 0, at, size, h, AGAIN))
        return FAULT_AGAIN
    put(event, KIND, TIMED if get(event, KIND) == TIME_ONLY else UNTIMED)
    put(S, OPEN, r)
    return OK


@inner
def tell_time(S: int, at: int, size: int, time: int) -> int:
    """The time of an event is known; there is room. FAULT_SECOND when another one is known."""
    h = name_hash(0, at, size)
    r = seek(S, 0, at, size, h)
    if r == 0:
        event = _record(S, _enter(S, 0, at, size, h, TIME_ONLY))
        put(event, VALUE, time)
        _queue(S, event)
        return OK
    event = _record(S, r)
    kind = get(event, KIND)
    if kind == UNTIMED:
        put(event, VALUE, time)
        put(event, KIND, TIMED)
        return OK
    if kind == WAITING:
        put(event, VALUE, time)
        return _complete(S, r)
    return OK if get(event, VALUE) == time else FAULT_SECOND


@inner
def is_open(S: int, at: int, size: int) -> bool:
    """Whether the open event has this name."""
    r = get(S, OPEN)
    if r == 0:
        return False
    event = _record(S, r)
    return get(event, LENGTH) == size and same(get(S, ARENA) + get(event, TEXT), at, size)
