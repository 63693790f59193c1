"""The work of `oxiseq convert`."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import cast

import click
from pyoxigraph import NamedNode

from oxiseq.cli.progress import Bar, closing, counted, progress_bar
from oxiseq.cli.request import ConvertRequest
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import EventFormat, EventReader, event_format, open_events, write_events
from oxiseq.engine.terms.dictionary import TermDictionary


def convert_events(request: ConvertRequest) -> None:
    """Copy the events. Raises EventError."""
    begun = perf_counter()
    terms = TermDictionary()
    predicate = NamedNode(request.time_predicate)
    # click has checked the choices
    source_format = cast(EventFormat, request.source_format or event_format(request.source))
    target_format = cast(EventFormat, request.target_format or event_format(request.target))
    reader = open_events(request.source, terms, predicate, request.on_error, source_format)
    with progress_bar(lambda: [reader.report], quiet=request.quiet) as bar:
        count = write_events(_watched(reader, bar), terms, request.target, predicate, target_format)
    if not request.quiet:
        parts = [counted(count, "event", "events"), counted(reader.report.quads, "triple", "triples")]
        click.echo(closing([reader.report], parts, count, perf_counter() - begun), err=True)


def _watched(reader: EventReader, bar: Bar) -> Iterator[EventBatch]:
    for batch in reader:
        bar.update()
        yield batch
