"""The work of `oxiseq events`."""

from __future__ import annotations

from time import perf_counter
from typing import cast

import click
from pyoxigraph import NamedNode

from oxiseq.cli.progress import counted, nothing_of, working
from oxiseq.cli.request import EventsRequest
from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import arrange
from oxiseq.logs.arrange import Engine, Format
from oxiseq.logs.reading import Meaning
from oxiseq.options.durations import duration_text


def arrange_events(request: EventsRequest) -> None:
    """Arrange. Raises EventError, KbError."""
    begun = perf_counter()
    mapping = None if request.mapping is None else Mapping.of_file(request.mapping)
    # click has checked the choices
    with working("looking for sources", quiet=request.quiet) as watch:
        done = arrange(
            request.sources, request.output, every=duration_text(request.every),
            meaning=Meaning(request.time, mapping, NamedNode(request.time_predicate), request.time_unit),
            format=cast(Format, request.to), engine=cast(Engine, request.engine), master=request.master,
            memory=request.memory, watch=watch,
        )  # fmt: skip
    if request.quiet:
        return
    seconds = perf_counter() - begun
    parts = [counted(done.events, "event", "events"), counted(done.files, "file", "files"),
             f"{done.late:,} late", f"{done.bad:,} bad", f"{done.events / seconds:,.0f} events/s"]  # fmt: skip
    click.echo(" · ".join(parts), err=True)
    for note in nothing_of(done.without, "event"):
        click.echo(note, err=True)
    if done.quarantine is not None:
        click.echo(f"what is wrong with {done.late + done.bad:,}: {done.quarantine}", err=True)
