"""What `oxiseq push` reads: files of events, and tables whose rows a mapping makes into events."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.rows import BadRow
from oxiseq.mappings.sources import is_table
from oxiseq.served.wire import Wire
from oxiseq.sources.sources import batches_of

NO_MAPPING = "a table needs a mapping: --mapping says what its rows mean, or the stream's own (docs/mappings.md)"


def mapping_of_stream(server: Wire, stream: str) -> Callable[[], StreamMapping | None]:
    """Gives the stream's mapping, which is fetched once, for the first file that needs it."""

    @cache
    def asked() -> StreamMapping | None:
        given = server.send("GET", "streams", stream).json().get("mapping")
        return None if given is None else StreamMapping(given)

    return asked


class PushedFile:
    """A file, or a folder of files, whose events are read once."""

    def __init__(
        self, path: Path, time_predicate: str, on_error: OnError, mapping: Callable[[], StreamMapping | None]
    ) -> None:
        """`mapping` is called for a table, and for JSON-LD, which may name its contexts. Raises EventError."""
        if not path.is_file() and not path.is_dir():
            raise EventError(None, None, f"{path} is neither a file nor a folder: `oxiseq bridge -` pushes stdin")
        self.path = path
        self._terms = TermDictionary()
        table = is_table(path)
        mapped = mapping() if table or ".ndjsonld" in path.suffixes else None
        self._read_as = time_predicate if mapped is None else json.dumps(mapped.as_data(), sort_keys=True)
        if table:
            if mapped is None:
                raise EventError(None, None, NO_MAPPING)
            self.report = ReadReport(str(path), bytes_total=path.stat().st_size)
            self._batches = _of_rows(path, self._terms, on_error, mapped, self.report)
        else:
            contexts = NO_CONTEXTS if mapped is None else mapped.contexts
            reader = open_events(path, self._terms, NamedNode(time_predicate), on_error, contexts=contexts)
            self.report, self._batches = reader.report, iter(reader)

    def session(self) -> str:
        """A name for these events: the same for the same content of a file of this name, read the same way. A
        folder in which there is a pipe has another one each time."""
        found = hashlib.blake2b(f"{self.path.name}\0{self._read_as}".encode(), digest_size=16)
        parts = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        for part in parts:
            if part.is_file():
                found.update(f"\0{part.name}\0".encode())
                with part.open("rb") as content:
                    found.update(hashlib.file_digest(content, "blake2b").digest())
            elif not part.is_dir():
                found.update(secrets.token_bytes(16))
        return found.hexdigest()

    def texts(self, update: Callable[[], object]) -> Iterator[str]:
        """The N-Quads of each event; `update` is called now and then. Raises EventError."""
        return quads_text(self._collected(update), self._terms)

    def _collected(self, update: Callable[[], object]) -> Iterator[EventBatch]:
        for batch in self._batches:
            yield batch
            self._terms.collect_if_due()
            update()


def _of_rows(
    file: Path, terms: TermDictionary, on_error: OnError, mapping: StreamMapping, report: ReadReport
) -> Iterator[EventBatch]:
    if not mapping.time:
        raise EventError(str(file), None, "the mapping has no time: a table's rows need a column for it")

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
