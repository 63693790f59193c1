"""When a message is: columns of its quads → events.

In the flow: columns.py → **events** → batches. A message is a dataset, an event a graph: its triples are those of
all the message's graphs. Its time is the object of its triples with the time predicate in the default graph,
or in the graph that they are about. Where several do, those count that are about one of the message's graphs; else
those about a node of which the message says nothing else; else the others, such as sosa:resultTime of an observation.
They have to agree. The first two kinds only say when the message is, and are no part of the event; the third are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.messages.columns import MessageColumns
from oxiseq.engine.events.time import outside, to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary

Fault = Callable[[int | None, str], None]
_GRAPH, _ALONE, _NODE, _NONE = range(4)
"""What a time is about, in the order in which they count."""
_UNKNOWN: Final = np.iinfo(np.int64).min
I64 = NDArray[np.int64]


def events_of(
    columns: MessageColumns, terms: TermDictionary, time_predicate: NamedNode, fault: Fault, time: int | None = None
) -> EventBatch:
    """The events, in the order of the messages. `time` (µs): for messages that state none. Messages with faults are
    left out and reported."""
    message = np.repeat(np.arange(len(columns)), np.diff(columns.offset))
    rank = _ranks(columns, message, terms.constant(time_predicate))
    least = np.full(len(columns), _NONE)
    np.minimum.at(least, message, rank)
    telling = (rank < _NONE) & (rank == least[message])
    faults = dict(columns.faults)
    times = _times(columns, message, np.flatnonzero(telling), terms, faults)
    for number in np.flatnonzero(times == _UNKNOWN).tolist():
        if time is None:
            reason = f"a message without a time; {time_predicate} expected"
            faults.setdefault(number, (int(columns.line[number]), reason))
    if time is not None:
        times[times == _UNKNOWN] = time
    for number in sorted(faults):
        fault(*faults[number])
    kept = ~(telling & (rank != _NODE))
    sizes = np.bincount(message[kept], minlength=len(columns))
    batch = EventBatch(times, offsets(sizes), columns.subject[kept], columns.predicate[kept], columns.object[kept])
    if not faults:
        return batch
    good = np.ones(len(columns), np.bool_)
    good[list(faults)] = False
    return batch.take(np.flatnonzero(good))


def _ranks(columns: MessageColumns, message: I64, predicate: int) -> I64:
    """i64[m], for each quad the message whose time it states; _NONE for most."""
    rank = np.full(len(message), _NONE)
    about = (columns.predicate == predicate) & ((columns.graph == 0) | (columns.graph == columns.subject))
    rows = np.flatnonzero(about)
    if not len(rows):
        return rank
    mine = np.isin(message, message[rows])  # most messages' other quads need no second look
    named = _keys(message, columns.graph)[mine & (columns.graph != 0)]
    keys = _keys(message, columns.subject)[rows]
    others = [_keys(message, columns.subject)[mine & ~about], _keys(message, columns.object)[mine]]
    alone = ~np.isin(keys, np.concatenate(others))
    rank[rows] = np.where(np.isin(keys, named), _GRAPH, np.where(alone, _ALONE, _NODE))
    return rank


def _keys(message: I64, ids: NDArray[np.uint32]) -> I64:
    keys: I64 = message << 32 | ids.astype(np.int64)
    return keys


def _times(
    columns: MessageColumns,
    message: I64,
    rows: I64,
    terms: TermDictionary,
    faults: dict[int, tuple[int, str]],
) -> I64:
    """i64[n] µs, _UNKNOWN where a message states none."""
    times = np.full(len(columns), _UNKNOWN)
    ids, owner = columns.object[rows], message[rows]
    known = terms.columns
    plain = (known.quality[ids] & kinds.EXACT_INTEGER) != 0
    plain &= (known.kind[ids] == kinds.DATETIME) | (known.kind[ids] == kinds.INTEGER)
    values = known.exact[ids].copy()
    plain[outside(np.where(plain, values, 0))] = False
    for at in np.flatnonzero(~plain).tolist():
        number = int(owner[at])
        try:
            values[at] = _microseconds(terms, int(ids[at]))
        except EventError as error:
            faults.setdefault(number, (int(columns.line[number]), f"the time of a message: {error.reason}"))
    times[owner] = values
    for at in np.flatnonzero(times[owner] != values).tolist():
        number = int(owner[at])
        reason = f"a message with two times: {terms.term(int(ids[at]))} is one of them"
        faults.setdefault(number, (int(columns.line[number]), reason))
    return times


def _microseconds(terms: TermDictionary, term: int) -> int:
    literal = terms.term(term)
    if not isinstance(literal, Literal):
        raise EventError(None, None, f"not a time: {literal}; xsd:dateTime or xsd:integer (microseconds) expected")
    return to_microseconds(literal)
