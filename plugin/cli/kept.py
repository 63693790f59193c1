"""Where `oxiseq run`, `why` and `compare` read: files that are named, or the events that a server's folder keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from oxiseq.cli.knowledge import combined
from oxiseq.journal import FILE_NAME, Journal, LogSource
from oxiseq.kb_loader.marker import holds_store
from oxiseq.options import Options
from oxiseq.sources.knowledge import Kb


def check_place(streams: tuple[str, ...], location: Path | None) -> None:
    """Files or a folder, one of them. Raises click.UsageError."""
    if (location is None) == (not streams):
        raise click.UsageError("give --stream or --location")


def check_span(location: Path | None, options: Options) -> None:
    """Files are read whole. Raises click.UsageError."""
    if location is None and (options.since is not None or options.until is not None):
        raise click.UsageError("--since and --until are for --location")


@contextmanager
def kept_events(location: Path, options: Options) -> Iterator[Mapping[str, LogSource]]:
    """Stream IRI → what the folder's log keeps of it between the options' `since` and `until`; a server may write
    meanwhile. Raises JournalError."""
    with Journal(location / FILE_NAME, read_only=True) as journal:
        streams = [stream.iri for stream in journal.streams.all()]
        yield {iri: LogSource(journal, iri, options.since, options.until) for iri in streams}


def kb_for(kbs: tuple[str, ...], location: Path | None, asks_kb: bool) -> Kb:
    """The knowledge base that is named, else the store in the folder, as it is now."""
    if asks_kb and not kbs and location is not None and holds_store(location):
        return location
    return combined(kbs)
