"""What events are read from in Python: files, and (graph, time) pairs of whatever makes them.

In the flow: a source → **batches** → drivers, streams of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentTypeError, EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS
from oxiseq.engine.events.encode import GraphLike, TimedGraph, encode_events, iterated
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import TermDictionary

if TYPE_CHECKING:
    from oxiseq.mappings import events as mapping_events
    from oxiseq.mappings import rows as mapping_rows
    from oxiseq.mappings import sources as mapping_sources
    from oxiseq.mappings.declared import StreamMapping
    from oxiseq.mappings.rows import BadRow, Table
else:
    mapping_events, mapping_rows = needed("oxiseq.mappings.events"), needed("oxiseq.mappings.rows")
    mapping_sources = needed("oxiseq.mappings.sources")


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
    if mapping is not None and (tables := mapping_sources.row_tables(events, mapping.key)) is not None:
        return _mapped(tables, mapping, terms, on_error, bad)
    if not isinstance(events, str | Path):
        if callable(events):
            return events(terms)  # type: ignore[no-any-return]
        rows, source = _begun(iterated(events))
        if rows and mapping is None:
            raise EventError(None, None, "an event is (graph, time): for rows the stream needs a mapping")
        if rows and mapping is not None:
            return _mapped(mapping_sources.dict_tables(source, mapping.key), mapping, terms, on_error, bad)
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
