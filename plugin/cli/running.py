"""The work of `oxiseq run`: streams and KB opened, matches written, a summary told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import cast

import click

from oxiseq.cli.knowledge import combined
from oxiseq.cli.output import open_output, show_table
from oxiseq.cli.progress import Bar, closing, counted, progress_bar
from oxiseq.cli.request import RunRequest
from oxiseq.engine.events.open import event_format, write_events
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.first_run import prepare
from oxiseq.formats import (
    BINARY,
    ResultFormat,
    check_format,
    completes_in_order,
    result_format,
    sorted_batch,
    write_results,
)
from oxiseq.grammar.algebra import Query
from oxiseq.replay import Replay, Source


def run_query(request: RunRequest, sources: Mapping[str, Source] | None = None) -> None:
    """Answer the query over the request's files, or over `sources`, by stream IRI, as far as it reads them.

    Raises OxiseqError and click's usage errors.
    """
    begun = perf_counter()
    query = request.query.load()
    files: Mapping[str, Path | Source]
    if sources is None:
        files = stream_files(request.streams, query)
    else:
        files = {s.iri.value: sources[s.iri.value] for s in query.streams if s.iri.value in sources}
    chosen = _format(request)
    if request.late is not None:
        event_format(request.late)  # an unknown ending is told before the work, not after it
    with request.query.named():
        replay = Replay(query, combined(request.kbs), request.start, request.lateness)
    check_format(replay.shape, chosen)
    for name, events in files.items():
        replay.attach(name, events, request.on_error, request.time_predicate)
    if not request.quiet:
        _tell_unfed(query, files)
    prepare(lambda note: None if request.quiet else click.echo(f"note: {note}", err=True))
    on_terminal = request.output is None and sys.stdout.isatty() and chosen != "table"  # the bar would cut into it
    with progress_bar(lambda: replay.reports, quiet=request.quiet or on_terminal) as bar:
        count = _write(request, replay, chosen, bar)
    if request.late is not None:
        write_events((batch for _, batch in replay.late), replay.terms, request.late)
    if not request.quiet:
        click.echo(_summary(replay, count, perf_counter() - begun), err=True)


def stream_files(given: tuple[str, ...], query: Query) -> dict[str, Path]:
    """Stream IRI → file, from `NAME=FILE`, `IRI=FILE` or, with a single stream, `FILE`."""
    iris = {s.name: s.iri.value for s in query.streams}
    files: dict[str, Path] = {}
    for text in given:
        iri, file = _split(text, iris)
        if iri in files:
            raise click.BadParameter(f"the stream <{iri}> is given twice", param_hint="--stream")
        files[iri] = Path(file)
    return files


def _split(text: str, iris: dict[str, str]) -> tuple[str, str]:
    known = {**{iri: iri for iri in iris.values()}, **iris}
    for i, character in enumerate(text):  # an IRI may hold a "="
        if character == "=":
            name = text[:i].strip().removeprefix("<").removesuffix(">")
            if name in known:
                return known[name], text[i + 1 :]
    if len(set(iris.values())) == 1 and ("=" not in text or Path(text).exists()):
        return next(iter(iris.values())), text
    declared = ", ".join(f"{name} <{iri}>" for name, iri in iris.items())
    raise click.BadParameter(f"{text!r}: NAME=FILE with one of {declared} expected", param_hint="--stream")


def _format(request: RunRequest) -> ResultFormat:
    if request.format is not None:
        chosen = cast(ResultFormat, request.format)  # click has checked the choice
    else:
        chosen = "table" if request.output is None else result_format(request.output)
    if chosen in BINARY and request.output is None and sys.stdout.isatty():
        raise click.UsageError(f"{chosen} is not for a terminal: give --output FILE or redirect stdout")
    return chosen


def _tell_unfed(query: Query, files: Collection[str]) -> None:
    for stream in query.streams:
        if stream.iri.value not in files:
            click.echo(f"note: no events are given for the stream {stream.name} <{stream.iri.value}>", err=True)


def _write(request: RunRequest, replay: Replay, chosen: ResultFormat, bar: Bar) -> int:
    if chosen == "table" and request.output is None and sys.stdout.isatty() and not replay.plan.answer.ask:
        batch = sorted_batch(replay.shape, replay.batches(bar.update), ties=request.sort)
        bar.close()
        return show_table(replay.shape, batch)
    with open_output(request.output) as out:
        return write_results(
            replay.shape, _ordered(request, replay, bar.update), chosen, out, stream=request.output is None
        )


def _ordered(request: RunRequest, replay: Replay, progress: Callable[[], None]) -> Iterator[MatchBatch]:
    """The matches in order of end time: as they come where that is the order they come in."""
    if completes_in_order(replay.shape) and not request.sort:
        yield from replay.batches(progress)
    else:
        yield sorted_batch(replay.shape, replay.batches(progress), ties=request.sort)


def _summary(replay: Replay, count: int, seconds: float) -> str:
    events = replay.run.events
    parts = [counted(events, "event", "events"), counted(count, "match", "matches"), f"{replay.run.late:,} late"]
    return closing(replay.reports, parts, events, seconds)
