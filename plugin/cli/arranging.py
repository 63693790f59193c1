"""The work of `oxiseq import`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from pyoxigraph import NamedNode

from oxiseq.cli.progress import counted, nothing_of, working
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.units import TimeUnit
from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import arrange
from oxiseq.logs.reading import Meaning
from oxiseq.mappings.declared import StreamMapping
from oxiseq.options.durations import duration_text


def mapping_of_file(path: Path) -> Mapping | StreamMapping:
    """A CONSTRUCT query, or of a file that ends in .json a mapping as a stream has one. Raises KbError, EventError,
    MappingError."""
    return StreamMapping(json_of(path)) if path.suffix.lower() == ".json" else Mapping.of_file(path)


def json_of(path: Path) -> Any:
    """The value that a file holds. Raises EventError."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise EventError(str(path), None, f"cannot be read: {error}") from error


def arrange_events(
    sources: Sequence[str],
    output: Path,
    *,
    mapping: Path | None,
    time: str,
    time_unit: TimeUnit | None,
    every: int,
    time_predicate: str,
    quiet: bool,
    **given: Any,
) -> None:
    """Arrange, files of `every` µs; `given`: what else `logs.arrange` takes. Raises EventError, KbError."""
    begun = perf_counter()
    of_rows = None if mapping is None else mapping_of_file(mapping)
    with working("looking for sources", quiet=quiet) as watch:
        done = arrange(
            sources,
            output,
            every=duration_text(every),
            meaning=Meaning(time, of_rows, NamedNode(time_predicate), time_unit),
            watch=watch,
            **given,
        )
    if quiet:
        return
    seconds = perf_counter() - begun
    parts = [
        counted(done.events, "event", "events"),
        counted(done.files, "file", "files"),
        f"{done.late:,} late",
        f"{done.bad:,} bad",
        f"{done.events / seconds:,.0f} events/s",
    ]
    click.echo(" · ".join(parts), err=True)
    for note in nothing_of(done.without, "event"):
        click.echo(note, err=True)
    if done.quarantine is not None:
        click.echo(f"what is wrong with {done.late + done.bad:,}: {done.quarantine}", err=True)
