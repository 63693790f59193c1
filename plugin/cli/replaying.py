"""The work of `oxiseq replay`: `run`, over the event log instead of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from oxiseq.cli.request import ReplayRequest
from oxiseq.cli.running import run_query
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.journal import FILE_NAME, Journal


@dataclass(frozen=True, slots=True)
class LogSource:
    """The events of a stream of a log, between two times (µs)."""

    journal: Journal
    stream: str
    begin: int | None
    end: int | None

    def __call__(self, terms: TermDictionary) -> Iterator[EventBatch]:
        """In the order in which they arrived."""
        for logged in self.journal.log.read(self.stream, terms, start=self.begin, stop=self.end):
            yield logged.batch


def replay_log(request: ReplayRequest) -> None:
    """Answer the query. Raises OxiseqError and click's usage errors."""
    location, run = request.location, request.run
    asks_kb = not isinstance(run.query.load(), CeqlQuery)
    if asks_kb and not run.kbs and (location / "CURRENT").exists():  # every RocksDB folder has that file
        run = replace(run, kbs=(str(location),))
    with Journal(location / FILE_NAME, read_only=True) as journal:
        streams = [stream.iri for stream in journal.streams.all()]
        run_query(run, {iri: LogSource(journal, iri, request.begin, request.end) for iri in streams})
