"""One graph as pyoxigraph writes it in N-Triples → term ids.

In the flow: a pushed graph → text → **ids** → event batch. Since pyoxigraph has written it, every line is
`s p o .`, and a term is valid. Labels of blank nodes mean something within the text only.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.events.nquads import after_token
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.memory.raw import byte, same
from oxiseq.engine.kernels.terms.table import Terms, add, find, fresh_blank, hashed
from oxiseq.engine.kernels.terms.texts import NO_ROOM, intern_plain

UNUSUAL_TERM: Final = -2
"""A literal or triple term that Python has to intern first; its place is in row 0 of `labels`."""
MANY_LABELS: Final = -3

_LESS: Final = ord("<")
_UNDERSCORE: Final = ord("_")
_HASH, _START, _SIZE, _ID = range(4)


@kernel
def read_triples(D: Terms, text: int, size: int, ids: Array, labels: Array, scratch: int) -> int:
    """Fill `ids` u32[3, n] with the subjects, predicates and objects of n lines; n, or why not (nothing but new terms
    has come of it then).

    `labels` i64[2^b + 1, 4] is the table of blank nodes after row 0, emptied first. `scratch`: the address of as many
    bytes as the text has, and SCRATCH_SPARE.
    """
    for slot in range(labels.shape[0]):
        labels[slot, _ID] = 0
    at, stop = text, text + size
    column, row, blanks = 0, 0, 0
    while at < stop:
        end = after_token(at, stop, 1)
        if byte(at) == _UNDERSCORE:
            term = _blank(D, at, end - at, labels)
            blanks += 1
            if 2 * blanks > labels.shape[0]:
                return MANY_LABELS
        elif byte(at) == _LESS and byte(at + 1) != _LESS:
            term = _iri(D, at, end - at)
        else:
            term = intern_plain(D, at, end - at, scratch)
            if term == 0:
                labels[0, _START], labels[0, _SIZE] = at - text, end - at
                return UNUSUAL_TERM
        if term <= 0:
            return NO_ROOM
        ids[column, row] = term
        at = end + 1
        column += 1
        if column == 3:
            column = 0
            row += 1
            at += 2  # the dot and the line break
    return row


@inner
def _iri(D: Terms, at: int, size: int) -> int:
    h = hashed(at, 0, size)
    known = find(D, at, 0, size, h)
    return known if known != 0 else add(D, at, 0, size, h, kinds.IRI, 0.0, 0, 0)


@inner
def _blank(D: Terms, at: int, size: int, labels: Array) -> int:
    h = i64(hashed(at, 0, size))
    mask = labels.shape[0] - 2
    slot = 1 + (h & mask)
    while labels[slot, _ID] != 0:
        if labels[slot, _HASH] == h and labels[slot, _SIZE] == size and same(labels[slot, _START], at, size):
            return labels[slot, _ID]
        slot = 1 + (slot & mask)
    term = fresh_blank(D)
    if term != 0:
        labels[slot, _HASH], labels[slot, _START], labels[slot, _SIZE], labels[slot, _ID] = h, at, size, term
    return term


@kernel
def keep_triples(
    among: Array, offset: Array, subject: Array, predicate: Array, object_: Array, sizes: Array, kept: Array
) -> int:
    """Of events, whose triples begin at `offset`, keep those whose predicate is `among` some: u8 by id, 0 for the last,
    which stands for all that are larger. kept: u32[3, triples]; sizes: how many each event keeps. How many all do."""
    n, last = i64(0), i64(among.shape[0] - 1)
    for event in range(sizes.shape[0]):
        before = n
        for t in range(offset[event], offset[event + 1]):
            if among[min(i64(predicate[t]), last)] != 0:
                kept[0, n], kept[1, n], kept[2, n] = subject[t], predicate[t], object_[t]
                n += 1
        sizes[event] = n - before
    return n
