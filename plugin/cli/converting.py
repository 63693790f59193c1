"""The work of `oxiseq convert`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import click
from pyoxigraph import NamedNode

from oxiseq.cli.progress import Bar, closing, counted, progress_bar
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import EventFormat, EventReader, event_format, open_events, write_events
from oxiseq.engine.events.report import OnError
from oxiseq.engine.terms.dictionary import TermDictionary


def convert_events(
    source: Path,
    target: Path,
    *,
    source_format: EventFormat | None,
    target_format: EventFormat | None,
    time_predicate: str,
    on_error: OnError,
    quiet: bool,
) -> None:
    """Copy the events; formats that are not given follow from the names. Raises EventError."""
    begun = perf_counter()
    terms = TermDictionary()
    predicate = NamedNode(time_predicate)
    reader = open_events(source, terms, predicate, on_error, source_format or event_format(source))
    with progress_bar(lambda: [reader.report], quiet=quiet) as bar:
        count = write_events(_watched(reader, bar), terms, target, predicate, target_format or event_format(target))
    if not quiet:
        parts = [counted(count, "event", "events"), counted(reader.report.quads, "triple", "triples")]
        click.echo(closing([reader.report], parts, count, perf_counter() - begun), err=True)


def _watched(reader: EventReader, bar: Bar) -> Iterator[EventBatch]:
    for batch in reader:
        bar.update()
        yield batch
