"""What `oxiseq push` reads: files of events, and tables whose rows a mapping makes into events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS
from oxiseq.engine.events.open import EventReader, open_events
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow
from oxiseq.mappings.sources import is_table
from oxiseq.served.wire import Wire
from oxiseq.sources.sources import batches_of

NO_MAPPING = "a table needs a mapping: --mapping says what its rows mean, or the stream's own (docs/mappings.md)"


def mapping_of_stream(server: Wire, stream: str) -> Callable[[], StreamMapping | None]:
    """Gives the mapping that the stream has, which is asked for once, when the first file comes that needs it."""

    @cache
    def asked() -> StreamMapping | None:
        given = server.send("GET", "streams", stream).json().get("mapping")
        return None if given is None else StreamMapping(given)

    return asked


def pushed_events(
    file: Path,
    terms: TermDictionary,
    time_predicate: str,
    on_error: OnError,
    mapping: Callable[[], StreamMapping | None],
) -> EventReader:
    """The events of a file; `mapping` is called for a table, and for JSON-LD, which may name its contexts. Raises
    EventError."""
    if not is_table(file):
        found = mapping() if ".ndjsonld" in file.suffixes else None
        contexts = NO_CONTEXTS if found is None else found.contexts
        return open_events(file, terms, NamedNode(time_predicate), on_error, contexts=contexts)
    if (found := mapping()) is None:
        raise EventError(None, None, NO_MAPPING)
    report = ReadReport(str(file), bytes_total=file.stat().st_size)
    return EventReader(_of_rows(file, terms, on_error, found, report), report)


def _of_rows(
    file: Path, terms: TermDictionary, on_error: OnError, mapping: StreamMapping, report: ReadReport
) -> Iterator[EventBatch]:
    if not mapping.time:
        raise EventError(str(file), None, "the mapping has no time: a table's rows need a column that tells it")

    def left_out(row: BadRow) -> None:
        report.fault(row.place, str(row), on_error)

    try:
        for batch in batches_of(file, terms, "skip", mapping=mapping, bad=left_out):
            report.events += len(batch)
            report.quads += len(batch.subject)
            yield batch
    except EventError as error:
        raise error if error.file else EventError(str(file), error.line, error.reason) from error
    report.bytes_read = report.bytes_total
