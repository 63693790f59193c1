"""One source of a log as event batches: RDF event files, and tables whose rows are events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyoxigraph import Literal, NamedNode, Triple

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.events.tuples import is_tuple_file
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader.quarantine import Fault, cut_off
from oxiseq.kb_loader.sources import Source
from oxiseq.kb_loader.tables import Mapping, table_batches

_DATE_TIME: Final = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
_TOGETHER: Final = 4096
"""Rows that become a batch."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What rows and events mean. `time`: the column of a table with the time; `mapping`: the CONSTRUCT query that makes
    a row's graph; `time_predicate` of RDF events."""

    time: str = "time"
    mapping: Mapping | None = None
    time_predicate: NamedNode = GENERATED_AT


def read_source(
    source: Source, meaning: Meaning, terms: TermDictionary, tell: Callable[[Fault], None]
) -> Iterator[EventBatch]:
    """The events, as they come; what is bad goes to `tell`."""
    if source.format is not None or (source.ending == ".parquet" and not is_tuple_file(source.path)):
        try:
            reader = open_events(source.path, terms, meaning.time_predicate, "skip")
            reader.report.told = lambda error: tell(Fault(error.line, error.line, error.reason))
            yield from reader
        except EventError as error:
            tell(Fault(error.line, error.line, error.reason))
        return
    if meaning.mapping is None:
        raise EventError(str(source.path), None, "a table needs a mapping: a file with a SPARQL CONSTRUCT query")
    yield from _table(source, meaning, terms, tell)


def _table(
    source: Source, meaning: Meaning, terms: TermDictionary, tell: Callable[[Fault], None]
) -> Iterator[EventBatch]:
    skipped = False

    def misfit(fault: Fault) -> None:
        nonlocal skipped
        skipped = True
        tell(fault)

    content, raw = source.open()
    number = 1 if source.ending in (".csv", ".tsv") else 0  # the header is row 1
    with raw, content:
        try:
            for batch in table_batches(source, content, misfit):
                for low in range(0, batch.num_rows, _TOGETHER):
                    part = batch.slice(low, _TOGETHER)
                    first = None if skipped else number + 1  # rows that do not fit are not counted
                    yield encode_events(_events(part, meaning, first, tell), terms)
                    number += part.num_rows
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            tell(cut_off(error))


def _events(
    rows: pa.RecordBatch, meaning: Meaning, first: int | None, tell: Callable[[Fault], None]
) -> Iterator[tuple[int, list[Triple]]]:
    """Row by row: each has a graph of its own. `first`: the number of the first one, if that is known."""
    assert meaning.mapping is not None
    place = rows.schema.get_field_index(meaning.time)
    if place < 0:
        names = ", ".join(rows.schema.names)
        raise EventError(None, None, f"no column {meaning.time!r} for the time; there are {names}")
    for i, value in enumerate(rows.column(place).to_pylist()):
        try:
            yield time_of(value), list(meaning.mapping.triples(rows.slice(i, 1)))
        except EventError as error:
            text = ", ".join(str(cell) for cell in rows.slice(i, 1).to_pylist()[0].values())
            line = None if first is None else first + i
            tell(Fault(line, line, error.reason, text))


def time_of(value: Any) -> int:
    """A cell as microseconds: a timestamp, an integer of microseconds, or either as text. Raises EventError."""
    if isinstance(value, str):
        text = value.strip()
        if text.lstrip("-").isdecimal():
            return to_microseconds(int(text))
        return to_microseconds(Literal(text.replace(" ", "T", 1), datatype=_DATE_TIME))
    if isinstance(value, int | datetime) and not isinstance(value, bool):
        return to_microseconds(value)
    raise EventError(None, None, f"not a time: {value!r}")
