"""N-Quads, byte by byte: lines → term ids and events.

In the flow: block of whole lines → **tokens, ids** → assembly.py. What is plain is done here; of the rest
Python learns by a status (assembly.py), and the reader continues from the same line or the next one:

- a term that is not known and not plain: Python interns it, and from then on it is found by its bytes;
- a line whose shape is unusual, or that may be malformed: pyoxigraph reads it, and what it gives comes back as a
  block that is `TRUSTED`, in which every line is `s p o [g] .` with single blanks.

Nothing is interned, and no event touched, before the whole line is known to be valid.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, unlocked
from oxiseq.engine.kernels.events.assembly import (
    ANSWER,
    AT_LINE,
    DATA,
    END,
    ENDING,
    FAULT_DEFAULT,
    FAULT_TERM,
    GONE_ON,
    LINE,
    NEED_ROOM,
    NEED_TERMS,
    NEED_TIME,
    NO_ANSWER,
    OK,
    POSITION,
    PREVIOUS,
    PREVIOUS_ID,
    PREVIOUS_SIZE,
    QUADS,
    REFUSED,
    SCRATCH,
    START,
    STOP,
    TIME,
    TIME_TERM,
    TRUSTED,
    UNUSUAL_TERM,
    WHOLE_LINE,
    append,
    close_open,
    has_room,
    is_open,
    label_id,
    switch,
    tell_time,
)
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.raw import byte, get, put, same
from oxiseq.engine.kernels.memory.scan import every, find_byte, find_either
from oxiseq.engine.kernels.terms.numerals import NORMALISED, PLAIN, UNUSUAL
from oxiseq.engine.kernels.terms.plain import (
    LABEL,
    has_class,
    plain_iri,
    plain_literal,
    plain_name,
    plain_time,
)
from oxiseq.engine.kernels.terms.table import Terms, add, find, hashed

_TAB: Final = 9
_RETURN: Final = 13
_SPACE: Final = 32
_QUOTE: Final = ord('"')
_HASH: Final = ord("#")
_CLOSING: Final = ord(")")
_DASH: Final = ord("-")
_DOT: Final = ord(".")
_COLON: Final = ord(":")
_LESS: Final = ord("<")
_AT: Final = ord("@")
_CARET: Final = ord("^")
_UNDERSCORE: Final = ord("_")
_BREAKS: Final = every(10)
_RETURNS: Final = every(_RETURN)
_SPACES: Final = every(_SPACE)
_GREATERS: Final = every(ord(">"))
_QUOTES: Final = every(_QUOTE)
_BACKSLASHES: Final = every(ord("\\"))


# --- tokens: addresses; 0 for a shape that is unusual -----------------------------------------------


@inner
def after_blanks(at: int) -> int:
    c = byte(at)
    while c == _SPACE or c == _TAB:
        at += 1
        c = byte(at)
    return at


@inner
def after_token(at: int, end: int, trusted: int) -> int:
    """Behind the term that begins at `at`; 0 if its shape is unusual. `trusted`: pyoxigraph has written it."""
    c = byte(at)
    if c == _LESS:
        if byte(at + 1) == _LESS:
            return _after_triple_term(at, end) if trusted else 0
        at = find_byte(at + 1, end, _GREATERS)
        return at + 1 if at < end else 0
    if c == _QUOTE:
        return _after_literal(at, end)
    if c == _UNDERSCORE and byte(at + 1) == _COLON:
        if trusted:
            return find_byte(at, end, _SPACES)
        return _after_label(at + 2)
    return 0


@inner
def _after_label(at: int) -> int:
    if not has_class(byte(at), LABEL) or byte(at) == _DASH:
        return 0
    while has_class(byte(at), LABEL):
        at += 1
    c = byte(at)
    return at if c == _SPACE or c == _TAB else 0


@inner
def _after_literal(at: int, end: int) -> int:
    at = find_either(at + 1, end, _QUOTES, _BACKSLASHES)
    while at < end and byte(at) != _QUOTE:
        at = find_either(at + 2, end, _QUOTES, _BACKSLASHES)
    if at >= end:
        return 0
    at += 1
    c = byte(at)
    if c == _AT:
        at += 1
        while has_class(byte(at), LABEL) and byte(at) != _UNDERSCORE:
            at += 1
    elif c == _CARET:
        if byte(at + 1) != _CARET or byte(at + 2) != _LESS:
            return 0
        at = find_byte(at + 3, end, _GREATERS) + 1
        if at > end:
            return 0
    return at


@inner
def _after_triple_term(at: int, end: int) -> int:
    """Behind `<<( s p o )>>`, as pyoxigraph writes it."""
    depth = 0
    while at < end:
        c = byte(at)
        if c == _LESS and byte(at + 1) == _LESS:
            depth += 1
            at += 3
        elif c == _LESS:
            at = find_byte(at, end, _GREATERS) + 1
        elif c == _QUOTE:
            at = _after_literal(at, end)
            if at == 0:
                return 0
        elif c == _CLOSING:
            depth -= 1
            at += 3
            if depth == 0:
                return at
        else:
            at += 1
    return 0


@inner
def ends_line(at: int, end: int) -> bool:
    """Whether only blanks, and a carriage return, come before the line break."""
    at = after_blanks(at)
    return at == end or (byte(at) == _RETURN and at + 1 == end)


# --- lines ------------------------------------------------------------------------------------------


@unlocked
def read(S: int, D: Terms) -> int:
    """Read the block from POSITION on. OK: all of it, and if it is the last one the open event is closed.

    Meanwhile another thread may unpack what comes next.
    """
    put(S, PREVIOUS_SIZE, 0)  # the block, or what the ids mean, may have changed
    data = get(S, DATA)
    at, stop = data + get(S, POSITION), data + get(S, STOP)
    counted = 1 - get(S, TRUSTED)
    line = get(S, LINE)
    status = i64(OK)
    while at < stop:
        end = find_byte(at, stop, _BREAKS)
        status = _read_line(S, D, at, end)
        if status != OK:
            put(S, AT_LINE, line)
            if status != UNUSUAL_TERM and status != NEED_TIME:
                put(S, START, at)
                put(S, END, end)
            if status < GONE_ON:
                break
        put(S, ANSWER, NO_ANSWER)
        line += counted
        at = end + 1
        if status != OK:
            break
    put(S, LINE, line)
    put(S, POSITION, at - data)
    if status == OK and get(S, ENDING):
        status = close_open(S)
    return status


@inner
def quad_tokens(s0: int, end: int, trusted: int) -> tuple[int, int, int, int, int, int, int]:
    """Of a line whose subject begins at `s0`: behind that, and from where to where predicate, object and graph are; an
    empty graph: there is none. All are 0 where the line is not a plain one."""
    nothing = (i64(0), i64(0), i64(0), i64(0), i64(0), i64(0), i64(0))
    s1 = after_token(s0, end, trusted)
    if s1 == 0:
        return nothing
    p0 = after_blanks(s1)
    if p0 == s1 or byte(p0) != _LESS:
        return nothing
    p1 = after_token(p0, end, trusted)
    if p1 == 0:
        return nothing
    o0 = after_blanks(p1)
    o1 = after_token(o0, end, trusted)
    if o0 == p1 or o1 == 0:
        return nothing
    g0 = after_blanks(o1)
    g1 = g0
    if byte(g0) == _LESS or byte(g0) == _UNDERSCORE:
        g1 = after_token(g0, end, trusted)
        if g0 == o1 or g1 == 0:
            return nothing
    dot = after_blanks(g1)
    if byte(dot) != _DOT or not ends_line(dot + 1, end):
        return nothing
    return s1, p0, p1, o0, o1, g0, g1


@inner
def _read_line(S: int, D: Terms, at: int, end: int) -> int:
    trusted = get(S, TRUSTED)
    if get(S, ANSWER) == REFUSED and not trusted:
        return WHOLE_LINE
    s0 = after_blanks(at)
    c = byte(s0)
    if c == _HASH:
        return OK if find_byte(s0, end, _RETURNS) >= end - 1 else WHOLE_LINE
    if c != _LESS and c != _UNDERSCORE:
        return OK if ends_line(s0, end) else WHOLE_LINE
    s1, p0, p1, o0, o1, g0, g1 = quad_tokens(s0, end, trusted)
    if s1 == 0:
        return WHOLE_LINE
    if g1 == g0:
        status = _default_triple(S, D, s0, s1, p0, p1, o0, o1)
    else:
        status = _quad(S, D, s0, s1, p0, p1, o0, o1, g0, g1)
    if status == OK or status > WHOLE_LINE:
        put(S, QUADS, get(S, QUADS) + 1)
    return status


@inner
def _default_triple(S: int, D: Terms, s0: int, s1: int, p0: int, p1: int, o0: int, o1: int) -> int:
    trusted = get(S, TRUSTED)
    if find(D, p0, 0, p1 - p0, hashed(p0, 0, p1 - p0)) != get(S, TIME_TERM):
        return FAULT_DEFAULT if trusted else WHOLE_LINE
    if not trusted and not plain_name(s0, s1):
        return WHOLE_LINE
    known, time = plain_time(o0, o1)
    return _tell_time(S, known, time, o0, o1, s0, s1 - s0)


@inner
def _tell_time(S: int, known: bool, time: int, o0: int, o1: int, name: int, size: int) -> int:
    """The time of the event of that name: `time` if it is known, else what Python has read, or has to read."""
    if not known:
        answer = get(S, ANSWER)
        if answer == NO_ANSWER:
            return _need_time(S, o0, o1)
        if answer == REFUSED:
            return OK
        time = get(S, TIME)
    if not has_room(S, size):
        return NEED_ROOM
    return tell_time(S, name, size, time)


@inner
def _need_time(S: int, at: int, end: int) -> int:
    """A time that is not plain: Python reads it, once pyoxigraph has taken the line."""
    if not get(S, TRUSTED):
        return WHOLE_LINE
    put(S, START, at)
    put(S, END, end)
    return NEED_TIME


@inner
def _unusual(S: int, at: int, end: int) -> int:
    if not get(S, TRUSTED) and find_byte(at, end, _RETURNS) < end:
        return WHOLE_LINE  # pyoxigraph sees a line break there
    put(S, START, at)
    put(S, END, end)
    return UNUSUAL_TERM


@inner
def _quad(S: int, D: Terms, s0: int, s1: int, p0: int, p1: int, o0: int, o1: int, g0: int, g1: int) -> int:
    """A quad of a named graph."""
    trusted = get(S, TRUSTED)
    opened = is_open(S, g0, g1 - g0)
    if not (opened or trusted or plain_name(g0, g1)):
        return WHOLE_LINE
    hp = hashed(p0, 0, p1 - p0)
    predicate = find(D, p0, 0, p1 - p0, hp)
    if predicate == get(S, TIME_TERM):
        if s1 - s0 == g1 - g0 and same(s0, g0, g1 - g0):
            return _own_time(S, opened, o0, o1, g0, g1)
        if not trusted and find_byte(s0, s1, _BACKSLASHES) < s1:
            return WHOLE_LINE  # it may be the graph's name
    refused = get(S, ANSWER) == REFUSED
    if predicate == 0 and not refused and not plain_iri(p0, p1):
        return _unusual(S, p0, p1)
    hs, subject = u64(0), i64(0)
    if opened and get(S, PREVIOUS_SIZE) == s1 - s0 and same(get(S, PREVIOUS), s0, s1 - s0):
        subject = get(S, PREVIOUS_ID)
    elif byte(s0) == _LESS:
        hs = hashed(s0, 0, s1 - s0)
        subject = find(D, s0, 0, s1 - s0, hs)
        if subject == 0 and not refused and not plain_iri(s0, s1):
            return _unusual(S, s0, s1)
    # the object; the same three for its normal form
    ho, object = u64(0), i64(0)
    kind, number, exact, quality = i64(kinds.IRI), 0.0, i64(0), i64(0)
    text, size = o0, o1 - o0
    first = byte(o0)
    if first != _UNDERSCORE:
        ho = hashed(o0, 0, size)
        object = find(D, o0, 0, size, ho)
        if object == 0 and not refused:
            form = i64(UNUSUAL)
            if first == _QUOTE:
                form, kind, number, exact, quality, length = plain_literal(o0, o1, get(S, SCRATCH))
                if form == NORMALISED:
                    text, size = get(S, SCRATCH), length
                    ho = hashed(text, 0, size)
                    object = find(D, text, 0, size, ho)
            elif plain_iri(o0, o1):
                form = i64(PLAIN)
            if form == UNUSUAL:
                return _unusual(S, o0, o1)
    if not has_room(S, (s1 - s0) + (o1 - o0) + (g1 - g0)):
        return NEED_ROOM
    if not opened:
        status = switch(S, g0, g1 - g0)
        if status != OK:
            return status
    if refused:
        return FAULT_TERM
    if predicate == 0:
        predicate = _intern_iri(D, p0, p1 - p0, hp)
    if subject == 0:
        if byte(s0) == _LESS:
            subject = _intern_iri(D, s0, s1 - s0, hs)
        else:
            subject = label_id(S, D, s0, s1 - s0)
    if object == 0:
        if first == _UNDERSCORE:
            object = label_id(S, D, o0, o1 - o0)
        elif first == _LESS:
            object = _intern_iri(D, o0, o1 - o0, ho)
        else:
            object = add(D, text, 0, size, ho, kind, number, exact, quality)
    if predicate == 0 or subject == 0 or object == 0:
        return NEED_TERMS
    put(S, PREVIOUS, s0)
    put(S, PREVIOUS_SIZE, s1 - s0)
    put(S, PREVIOUS_ID, subject)
    append(S, subject, predicate, object)
    return OK


@inner
def _intern_iri(D: Terms, at: int, size: int, h: np.uint64) -> int:
    """The id of a plain IRI that was not known when the line began."""
    known = find(D, at, 0, size, h)
    return known if known != 0 else add(D, at, 0, size, h, kinds.IRI, 0.0, 0, 0)


@inner
def _own_time(S: int, opened: bool, o0: int, o1: int, g0: int, g1: int) -> int:
    """The event's time inside its own graph."""
    known, time = plain_time(o0, o1)
    if not known and get(S, ANSWER) == NO_ANSWER and not get(S, TRUSTED):
        return WHOLE_LINE
    if not opened:
        if not has_room(S, g1 - g0):
            return NEED_ROOM
        status = switch(S, g0, g1 - g0)
        if status != OK:
            return status
    return _tell_time(S, known, time, o0, o1, g0, g1 - g0)
