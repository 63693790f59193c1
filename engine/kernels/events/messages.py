"""RDF Messages in N-Quads, line by line → columns of term ids, cut where a message ends.

In the flow: a block of whole messages → **columns** → events (engine/events/messages). What is plain is done here;
of the rest Python learns by a status, as from nquads.py. A block holds whole messages, so all that is remembered
of blank nodes, which mean something within their message only, is forgotten with it.

`S` is the address of the state, i64 words; engine/events/messages/columns.py makes it and what it points to, large
enough for the block: only the term dictionary may run out of room.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.kernels.compiling.options import inner, kernel, unlocked
from oxiseq.engine.kernels.events.nquads import after_blanks, ends_line, quad_tokens
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.raw import byte, get, put, put_half, same
from oxiseq.engine.kernels.memory.scan import every, find_byte
from oxiseq.engine.kernels.terms.table import Terms, fresh_blank, hashed
from oxiseq.engine.kernels.terms.texts import NO_ROOM, intern_plain

(
    DATA,  # address of the block
    POSITION,  # bytes of it that are read
    STOP,  # its length; it ends with a line break
    LINE,  # lines of it that are read
    TRUSTED,  # 1: pyoxigraph has written it
    GRAPHLESS,  # 1: a line with a graph is not for here
    START,  # of a status: addresses of the token or line
    END,
    SCRATCH,  # address of memory for a normal form
    ROWS,  # quads so far
    MESSAGES,  # messages that have ended
    LINE_OF,  # addresses of i64: by message the line of the block behind its end...
    END_OF,  # ... and how many quads there were by then
    SUBJECT,  # addresses of the columns, u32; no graph: 0
    PREDICATE,
    OBJECT,
    GRAPH,
    LABELS,  # address of the table of blank nodes, LABEL_WORDS words each
    LABEL_MASK,
) = range(19)
STATE_WORDS: Final = 19

LABEL_TEXT, LABEL_SIZE, LABEL_MESSAGE, LABEL_ID = range(4)
LABEL_WORDS: Final = 4

OK, WHOLE_LINE, UNUSUAL_TERM, NEED_TERMS = range(4)
"""WHOLE_LINE: the line START..END is for pyoxigraph, and reading continues behind it. UNUSUAL_TERM: the token
START..END is to be interned, NEED_TERMS: the dictionary is full; the line is read again."""

_HASH: Final = ord("#")
_LESS: Final = ord("<")
_RETURN: Final = 13
_UNDERSCORE: Final = ord("_")
_BREAKS: Final = every(10)
_RETURNS: Final = every(_RETURN)
_WORD: Final = tuple(b"MESSAGE")


@unlocked
def read(S: int, D: Terms) -> int:
    """Read the block from POSITION on. OK: all of it."""
    data = get(S, DATA)
    at, stop = data + get(S, POSITION), data + get(S, STOP)
    status = i64(OK)
    while at < stop and status == OK:
        end = find_byte(at, stop, _BREAKS)
        status = _read_line(S, D, at, end)
        if status == WHOLE_LINE:
            put(S, START, at)
            put(S, END, end)
        if status == OK or status == WHOLE_LINE:
            at = end + 1
            put(S, LINE, get(S, LINE) + 1)
    put(S, POSITION, at - data)
    return status


@inner
def _read_line(S: int, D: Terms, at: int, end: int) -> int:
    trusted = get(S, TRUSTED)
    s0 = after_blanks(at)
    c = byte(s0)
    if c != _LESS and c != _UNDERSCORE:
        return _no_quad(S, s0, end)
    s1, p0, p1, o0, o1, g0, g1 = quad_tokens(s0, end, trusted)
    if s1 == 0 or (g1 > g0 and get(S, GRAPHLESS)):
        return WHOLE_LINE
    subject = _term(S, D, s0, s1)
    if subject <= 0:
        return _told(S, s0, s1, subject)
    predicate = _term(S, D, p0, p1)
    if predicate <= 0:
        return _told(S, p0, p1, predicate)
    object = _term(S, D, o0, o1)
    if object <= 0:
        return _told(S, o0, o1, object)
    graph = i64(0)
    if g1 > g0:
        graph = _term(S, D, g0, g1)
        if graph <= 0:
            return _told(S, g0, g1, graph)
    append(S, subject, predicate, object, graph)
    return OK


@inner
def _no_quad(S: int, at: int, end: int) -> int:
    """A comment, an empty line, or the end of a message."""
    c = byte(at)
    if c == _HASH:
        return OK if find_byte(at, end, _RETURNS) >= end - 1 else WHOLE_LINE
    if c == _WORD[0]:
        for i in range(1, len(_WORD)):
            if byte(at + i) != _WORD[i]:
                return WHOLE_LINE
        if not ends_line(at + len(_WORD), end):
            return WHOLE_LINE
        end_message(S)
        return OK
    return OK if ends_line(at, end) else WHOLE_LINE


@inner
def _term(S: int, D: Terms, at: int, end: int) -> int:
    """The id of a token; 0: it is unusual, NO_ROOM."""
    if byte(at) == _UNDERSCORE:
        return label_id(S, D, at, end - at)
    return intern_plain(D, at, end - at, get(S, SCRATCH))


@inner
def _told(S: int, at: int, end: int, why: int) -> int:
    if why == NO_ROOM:
        return NEED_TERMS
    if not get(S, TRUSTED) and find_byte(at, end, _RETURNS) < end:
        return WHOLE_LINE  # pyoxigraph sees a line break there
    put(S, START, at)
    put(S, END, end)
    return UNUSUAL_TERM


@inner
def append(S: int, subject: int, predicate: int, object: int, graph: int) -> None:
    """A quad more; there is room."""
    row = get(S, ROWS)
    put_half(get(S, SUBJECT), row, subject)
    put_half(get(S, PREDICATE), row, predicate)
    put_half(get(S, OBJECT), row, object)
    put_half(get(S, GRAPH), row, graph)
    put(S, ROWS, row + 1)


@inner
def end_message(S: int) -> None:
    """The message ends with the line that is being read; there is room."""
    number = get(S, MESSAGES)
    put(get(S, LINE_OF), number, get(S, LINE) + 1)
    put(get(S, END_OF), number, get(S, ROWS))
    put(S, MESSAGES, number + 1)


@inner
def label_id(S: int, D: Terms, at: int, size: int) -> int:
    """The id of a blank node of the message; NO_ROOM. Its text stays where it is as long as the block is read."""
    message = get(S, MESSAGES)
    mask = get(S, LABEL_MASK)
    slot = i64(hashed(at, 0, size) ^ (u64(message) * u64(0x632BE59BD9B4E019))) & mask
    labels = get(S, LABELS)
    while True:
        place = labels + slot * (8 * LABEL_WORDS)
        known = get(place, LABEL_ID)
        if known == 0:
            break
        if get(place, LABEL_MESSAGE) == message and get(place, LABEL_SIZE) == size:
            if same(get(place, LABEL_TEXT), at, size):
                return known
        slot = (slot + 1) & mask
    term = fresh_blank(D)
    if term == 0:
        return i64(NO_ROOM)
    put(place, LABEL_TEXT, at)
    put(place, LABEL_SIZE, size)
    put(place, LABEL_MESSAGE, message)
    put(place, LABEL_ID, term)
    return term


@kernel
def label(S: int, D: Terms, at: int, size: int) -> int:
    """`label_id` for Python: of a line that it has read."""
    return label_id(S, D, at, size)
