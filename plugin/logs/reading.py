"""One source of a log as event batches: RDF event files, and tables whose rows are events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pyoxigraph import NamedNode, Triple

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.tuples import is_tuple_file
from oxiseq.engine.events.units import TimeUnit, check_unit
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.quarantine import Fault, cut_off
from oxiseq.kb_loader.rows import Rows, table_rows
from oxiseq.kb_loader.sources import BROKEN, Source
from oxiseq.kb_loader.tables import Mapping
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.plan import MappingError
from oxiseq.mappings.rows import OBJECTS, rows_table
from oxiseq.mappings.times import Clock, whole_numbers

MESSAGES: Final = ".ndjsonld"
"""An ending of events that no knowledge base has."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What rows and events mean. `time`: the column of a table with the time; `unit`: that of integers in it (None:
    microseconds, and what seems to be another unit is refused); `mapping`: the CONSTRUCT query that makes a row's
    graph, or a mapping as a stream has one, which itself names the time; `time_predicate` of RDF
    events."""

    time: str = "time"
    mapping: Mapping | StreamMapping | None = None
    time_predicate: NamedNode = GENERATED_AT
    unit: TimeUnit | None = None


def read_source(
    source: Source, meaning: Meaning, terms: TermDictionary, tell: Callable[[Fault], None]
) -> Iterator[EventBatch]:
    """The events, as they come; bad ones are passed to `tell`."""
    if _is_events(source):
        try:
            contexts = meaning.mapping.contexts if isinstance(meaning.mapping, StreamMapping) else NO_CONTEXTS
            reader = open_events(source.path, terms, meaning.time_predicate, "skip", contexts=contexts)
            reader.report.told = lambda error: tell(Fault(error.line, error.line, error.reason))
            yield from reader
        except EventError as error:
            tell(Fault(error.line, error.line, error.reason))
        return
    if meaning.mapping is None:
        raise EventError(str(source.path), None, "a table needs a mapping: a file with a SPARQL CONSTRUCT query")
    yield from _table(source, meaning, terms, tell)


def _is_events(source: Source) -> bool:
    if source.format is not None or source.ending == MESSAGES:
        return True
    return source.ending == ".parquet" and not is_tuple_file(source.path)


def _table(
    source: Source, meaning: Meaning, terms: TermDictionary, tell: Callable[[Fault], None]
) -> Iterator[EventBatch]:
    content, raw = source.open()
    with raw, content:
        try:
            for rows in table_rows(source, content, tell):
                meaning = _settled(rows, meaning, source)
                if (compiled := _compiled(meaning)) is None:
                    yield encode_events(_events(rows, meaning, tell), terms)
                else:
                    yield _mapped(rows, compiled, terms, tell, named=source.ending not in OBJECTS)
        except BROKEN as error:
            tell(cut_off(error))


def _compiled(meaning: Meaning) -> StreamMapping | None:
    """The mapping of columns; None for a query that no stream can have, which Oxigraph evaluates row by row."""
    if isinstance(meaning.mapping, StreamMapping):
        return meaning.mapping
    return None if meaning.mapping is None else _of_query(meaning.mapping.text, meaning.time, meaning.unit)


@lru_cache(16)
def _of_query(text: str, time: str, unit: TimeUnit | None) -> StreamMapping | None:
    try:
        mapping = StreamMapping({"construct": text, "time": time, "unit": unit})
    except MappingError:
        return None
    return mapping if mapping.why_slow is None else None


def _mapped(
    rows: Rows, mapping: StreamMapping, terms: TermDictionary, tell: Callable[[Fault], None], *, named: bool
) -> EventBatch:
    """All rows at a time."""
    if missing := mapping.timeless(rows.names):
        raise EventError(None, None, f"no column {missing[0]!r} for the time; there are {', '.join(rows.names)}")
    table = rows_table(rows, mapping.key, numbered=True, named=named)
    parts = list(mapped(table, mapping, terms, empty=True))
    for bad in (bad for part in parts for bad in part.bad):
        assert bad.place is not None, "rows are numbered"
        line = rows.lines[bad.place]
        text = ", ".join("" if cell is None else str(cell) for cell in rows.values[bad.place])
        tell(Fault(line, line, bad.reason if bad.column in mapping.time else str(bad), text))
    return EventBatch.concat([part.batch for part in parts])


def _settled(rows: Rows, meaning: Meaning, source: Source) -> Meaning:
    """After a look at a table's first rows. Raises EventError if their integers seem to be in another unit."""
    if meaning.unit is not None or isinstance(meaning.mapping, StreamMapping) or meaning.time not in rows.names:
        return meaning
    place = rows.names.index(meaning.time)
    if not (numbers := whole_numbers([row[place] for row in rows.values])):
        return meaning
    try:
        check_unit(min(numbers), max(numbers), meaning.time)
    except EventError as error:
        raise EventError(str(source.path), None, error.reason) from None
    return replace(meaning, unit="us")


def _events(rows: Rows, meaning: Meaning, tell: Callable[[Fault], None]) -> Iterator[tuple[int, list[Triple]]]:
    """Row by row: each has a graph of its own."""
    assert isinstance(meaning.mapping, Mapping)
    if meaning.time not in rows.names:
        raise EventError(None, None, f"no column {meaning.time!r} for the time; there are {', '.join(rows.names)}")
    place, clock = rows.names.index(meaning.time), Clock(meaning.unit)
    for row, line in zip(rows.values, rows.lines, strict=True):
        try:
            yield clock.one(row[place]), list(meaning.mapping.triples(Rows(rows.names, [row], [line])))
        except EventError as error:
            text = ", ".join("" if cell is None else str(cell) for cell in row)
            tell(Fault(line, line, error.reason, text))
