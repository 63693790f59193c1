"""What events are read from in Python: files, and (graph, time) pairs of whatever makes them.

In the flow: a source → **batches** → drivers, streams of a store.

Finite inputs are sorted by time before a query sees them; an iterator is a stream and is read as it comes.

In the flow: a source → batches → **batches in order of time** → drivers (semantics.md 2.6a, inputs of `run`).

What is in order already passes unchanged. A source is read ahead up to AHEAD triples or rows; if it ends there it is
sorted in memory. One that is longer is read twice: first only to measure its disorder (how far an event lies behind an
earlier one), then through a reorder buffer that holds twice as much time as that. So memory depends on the disorder of
a file and not on its size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentTypeError, EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS
from oxiseq.engine.events.encode import GraphLike, TimedGraph, encode_event, encode_events, iterated
from oxiseq.engine.events.open import is_pipe, open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.extras import needed
from oxiseq.engine.flow.epsparql.facts import with_start
from oxiseq.engine.order.waiting import Piece, Waiting
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.terms.dictionary import TermDictionary

if TYPE_CHECKING:
    from oxiseq.mappings import events as mapping_events
    from oxiseq.mappings import rows as mapping_rows
    from oxiseq.mappings.declared import StreamMapping
    from oxiseq.mappings.rows import BadRow, Table
else:
    mapping_events, mapping_rows = needed("oxiseq.mappings.events"), needed("oxiseq.mappings.rows")


# --- sources ---------------------------------------------------------------------------------------------


@runtime_checkable
class ArrowStream(Protocol):
    """A table of Arrow, pandas, Polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule protocol."""


Pairs: TypeAlias = Iterable[TimedGraph]
EventLike: TypeAlias = "GraphLike | Row"
"""One event: its graph, or for a stream that has a mapping a row."""
Row: TypeAlias = Mapping[str, Any]
"""A row, for a stream that has a mapping."""
Events: TypeAlias = str | Path | Pairs | Iterable[Row] | ArrowStream
"""A file of events, or (graph, time) pairs in order of arrival; with a mapping rows in any form."""
Streams: TypeAlias = Mapping[str, Any] | Events
"""By the IRI of a stream, or the query's name for it, its events; those of a query's only stream may stand alone."""
Source: TypeAlias = Callable[[TermDictionary], Iterator[EventBatch]]
"""Gives batches that are coded in the dictionary."""
_PAIRS: Final = 4096
"""Pairs that are read at a time."""


def batches_of(
    events: Any,
    terms: TermDictionary,
    on_error: OnError = "stop",
    time_predicate: NamedNode = GENERATED_AT,
    report: Callable[[ReadReport], object] | None = None,
    mapping: StreamMapping | None = None,
    bad: Callable[[BadRow], object] = lambda row: None,
) -> Iterator[EventBatch]:
    """The events of a source, coded in `terms`. `report` gets the running report of a file. With a `mapping` the
    source may hold rows; `bad` is notified of those that are left out (`on_error="skip"`). Raises EventError,
    ArgumentTypeError for what is no source; while reading EventError, TypeError."""
    if mapping is not None and (tables := mapping_rows.row_tables(events, mapping.key)) is not None:
        return _mapped(tables, mapping, terms, on_error, bad)
    if not isinstance(events, str | Path):
        if callable(events):
            return events(terms)  # type: ignore[no-any-return]
        rows, source = _begun(iterated(events))
        if rows and mapping is None:
            raise EventError(None, None, "an event is (graph, time): for rows the stream needs a mapping")
        if rows and mapping is not None:
            return _mapped(mapping_rows.dict_tables(source, mapping.key), mapping, terms, on_error, bad)
        return _pairs(source, terms)
    contexts = NO_CONTEXTS if mapping is None else mapping.contexts
    reader = open_events(events, terms, time_predicate, on_error, contexts=contexts)
    if report is not None:
        report(reader.report)
    return iter(reader)


def check_events(events: object) -> None:
    """Raise ArgumentTypeError for what is no source of events."""
    if not isinstance(events, str | Path | Iterable | ArrowStream):
        raise ArgumentTypeError(f"events must be a file, (graph, time) pairs or rows, not {events!r}"[:200])


def pushed_event(
    graph: EventLike,
    time: Time | None,
    start: Time | None,
    mapping: Callable[[], StreamMapping | None],
    terms: TermDictionary,
) -> EventBatch:
    """The one event that is pushed: a graph at its time, or a row by the stream's mapping, which is asked for then.
    Raises ArgumentTypeError, EventError."""
    if not isinstance(graph, list) and isinstance(graph, Mapping):
        if start is not None:
            raise ArgumentTypeError("a row has no start: push its graph")
        return row_event(graph, mapping(), time, terms)
    if time is None:
        raise ArgumentTypeError("time: say when the event happened")
    return encode_event(time, graph if start is None else with_start(graph, start), terms)


def row_event(row: Row, mapping: StreamMapping | None, time: Time | None, terms: TermDictionary) -> EventBatch:
    """The one event that a row is. Raises EventError for a row that cannot be taken, or without a mapping."""
    if mapping is None:
        raise EventError(None, None, "the stream has no mapping: store.stream(iri, mapping=) says what a row means")
    if mapping.time and time is not None:
        raise EventError(None, None, "time is given twice: the stream's mapping names its columns")
    at = None if time is None else to_microseconds(time)
    parts = list(mapping_events.mapped(mapping_rows.object_table([row], mapping.key), mapping, terms, at))
    for part in parts:
        for bad in part.bad:
            raise EventError(None, None, str(bad))
    return EventBatch.concat([part.batch for part in parts])


def _begun(source: Iterable[Any]) -> tuple[bool, Iterator[Any]]:
    """Whether the first element is a row, and all of them."""
    remaining = iter(source)
    first = list(islice(remaining, 1))
    return bool(first) and isinstance(first[0], Mapping), chain(first, remaining)


def _mapped(
    tables: Iterator[Table],
    mapping: StreamMapping,
    terms: TermDictionary,
    on_error: OnError,
    bad: Callable[[BadRow], object],
) -> Iterator[EventBatch]:
    for table in tables:
        for part in mapping_events.mapped(table, mapping, terms):
            for row in part.bad:
                if on_error == "stop":
                    raise EventError(None, row.place, str(row))
                bad(row)
            if len(part.batch):
                yield part.batch


def _pairs(events: Pairs, terms: TermDictionary) -> Iterator[EventBatch]:
    remaining = iter(events)
    while part := list(islice(remaining, _PAIRS)):
        yield encode_events(part, terms)


# --- time_order ------------------------------------------------------------------------------------------

P = TypeVar("P", bound=Piece)
AHEAD: Final = 1 << 22
"""Triples, or rows of a table, that are read ahead."""


def is_stream(events: object) -> bool:
    """Whether it can be read only once, or is the record of what came to a stream: such is read in order of arrival.
    A pipe is a stream; a file, and what has a length, is not."""
    if isinstance(events, str | Path):
        return is_pipe(Path(events))
    return not isinstance(events, Sized) or isinstance(events, Iterator)


def given_batches(
    events: Any,
    terms: TermDictionary,
    on_error: OnError = "stop",
    time_predicate: NamedNode = GENERATED_AT,
    report: Callable[[ReadReport], object] | None = None,
) -> Iterator[EventBatch]:
    """The events of a source as `batches_of` gives them; those of a finite one in order of time."""
    batches = batches_of(events, terms, on_error, time_predicate, report)
    if is_stream(events):
        return batches
    return in_time_order(batches, lambda: batches_of(events, TermDictionary(), "skip", time_predicate), terms)


def in_time_order(batches: Iterator[P], again: Callable[[], Iterator[P]], terms: TermDictionary) -> Iterator[P]:
    """The same events in order of time, those of one time in order of arrival. `again` reads the source once more; its
    terms need not be those of `terms`."""
    ahead, size = deque[P](), 0
    for batch in batches:
        ahead.append(batch)
        size += len(batch) + (batch.triples if isinstance(batch, EventBatch) else 0)
        if size > AHEAD:
            break
    whole = size <= AHEAD
    disorder = disorder_of(ahead if whole else again())
    source = chain(_popped(ahead), batches)
    yield from _sorted(source, disorder, terms) if disorder else source


def disorder_of(batches: Iterable[Piece]) -> int:
    """The longest time (µs) by which an event lies behind an earlier one; 0 for events in order."""
    newest, disorder = BEFORE_ALL, 0
    for batch in batches:
        time = batch.time
        if len(time) and (time[0] < newest or not (time[1:] >= time[:-1]).all()):
            peaks = np.maximum.accumulate(np.maximum(time, newest))
            disorder = max(disorder, int((peaks - time).max()))
        newest = max(newest, int(time.max())) if len(time) else newest
    return disorder


def _popped(ahead: deque[P]) -> Iterator[P]:
    while ahead:
        yield ahead.popleft()


def _sorted(batches: Iterable[P], disorder: int, terms: TermDictionary) -> Iterator[P]:
    """Through a buffer that is sorted again when it has doubled: each event is moved a few times only."""
    waiting, held, rest = Waiting[P](), 0, 0
    for batch in batches:
        if not len(batch):
            continue
        waiting.wait(batch)
        held += len(batch)
        if held > 2 * rest + AHEAD // 32:
            yield from _released(waiting, waiting.newest - disorder, terms)
            held = rest = sum(map(len, waiting.pending))
    if waiting.pending:
        yield from _released(waiting, waiting.newest + 1, terms)


def _released(waiting: Waiting[P], before: int, terms: TermDictionary) -> list[P]:
    released = waiting.up_to(before)
    for batch in (*released, *waiting.pending):
        if isinstance(batch, EventBatch):  # it may be a copy, which nobody has announced
            terms.hold(*batch.ids)
    return released
