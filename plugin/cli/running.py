"""The work of `oxiseq run`: opens streams and KB, writes matches and a summary."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Final, cast

import click

from oxiseq.cli.hint_why import why_command
from oxiseq.cli.kept import check_place, check_span, kb_for, kept_events
from oxiseq.cli.knowledge import checked_kb
from oxiseq.cli.output import open_output, show_table
from oxiseq.cli.progress import Bar, closing, counted, progress_bar
from oxiseq.cli.request import RunRequest
from oxiseq.engine.events.open import event_format, write_events
from oxiseq.grammar.finding_tools import one_line
from oxiseq.languages.driving import Driver
from oxiseq.languages.lints import lints_of
from oxiseq.languages.registry import language_for
from oxiseq.matches.text import table_of
from oxiseq.matches.write import BINARY, ResultFormat, blocks_of, check_format, result_format, write_blocks
from oxiseq.options import HISTORY, QUERY, RUN, SOURCES, Options, said_as_data
from oxiseq.options.query_text import known_text
from oxiseq.sources.knowledge import knowledge_of, opened
from oxiseq.sources.sources import Source
from oxiseq.sources.unread import unread

_ONE_STREAM: Final = "urn:oxiseq:stream"
"""The IRI of a stream whose file is given alone to a query that names none."""


def run_query(request: RunRequest) -> None:
    """Answer the query over the request's files, or over what its folder keeps. Raises OxiseqError and click's usage
    errors."""
    begun = perf_counter()
    query = request.query.load()
    chosen = _format(request)
    if request.late is not None:
        event_format(request.late)  # an unknown ending is refused before the work, not after it
    check_place(request.streams, request.location)
    language = language_for(query)
    checked_kb(language, request.kbs)
    with request.query.named():
        options = said_as_data(language.name, request.given, (QUERY, SOURCES, RUN, HISTORY), told(request.streams))
    check_span(request.location, options)
    kept = nullcontext() if request.location is None else kept_events(request.location, options)
    with kept as log:
        kb = opened(kb_for(request.kbs, request.location, language.asks_kb)) if language.asks_kb else None
        if log is not None:
            options = replace(options, reads=options.reads or tuple(log))
        with request.query.named():
            driver = language.driver(query, kb, options)
        check_format(driver.shape, chosen)
        _attach(driver, request, log, options)
        if not request.quiet:
            text = known_text(request.query.text, language.name)  # which `load` has parsed
            for lint in lints_of(text, knowledge_of(kb) if language.asks_kb else None, options.rules):
                click.echo(f"warning: {one_line(lint.to_json())}", err=True)
        language.prepare(lambda note: None if request.quiet else click.echo(f"note: {note}", err=True))
        _answer(request, driver, options, chosen, begun)


def _attach(driver: Driver, request: RunRequest, log: Mapping[str, Source] | None, options: Options) -> None:
    """Give the query its streams, as far as it reads them."""
    files: Mapping[str, Path | Source]
    if log is None:
        files = stream_files(request.streams, driver.streams)
    else:
        files = {iri: log[iri] for iri in driver.streams.values() if iri in log}
    for name, events in files.items():
        driver.attach(name, events, options.on_error, options.time_predicate)
    if not request.quiet:
        _tell_unfed(driver.streams, files)


def _answer(request: RunRequest, driver: Driver, options: Options, chosen: ResultFormat, begun: float) -> None:
    """Writes the matches, the late events, and a summary."""
    on_terminal = request.output is None and sys.stdout.isatty() and chosen != "table"  # the bar would cut into it
    with progress_bar(lambda: driver.reports, quiet=request.quiet or on_terminal) as bar:
        count = _write(request, driver, chosen, bar)
    if request.late is not None:
        write_events(driver.late_batches(), driver.terms, request.late)
    if not request.quiet:
        for note in driver.run.notes:
            click.echo(f"note: {note}", err=True)
        click.echo(_summary(driver, options, count, perf_counter() - begun), err=True)
        if not count:
            click.echo(f"why not: {why_command(request)}", err=True)


def stream_files(given: tuple[str, ...], iris: Mapping[str, str]) -> dict[str, Path]:
    """Stream IRI → file, from `NAME=FILE`, `IRI=FILE` or, with a single stream, `FILE`. `iris`: by name. A stream that
    is none of these is left out, with a warning."""
    files: dict[str, Path] = {}
    for text in given:
        iri, file = _split(text, iris)
        if iri is None:
            click.echo(f"warning: {unread(file, iris)}", err=True)
            continue
        if iri in files:
            raise click.BadParameter(f"the stream <{iri}> is given twice", param_hint="--stream")
        files[iri] = Path(file)
    return files


def told(given: tuple[str, ...]) -> tuple[str, ...]:
    """The streams that are given, for a query that names none: the part before the file, else a name of ours."""
    return tuple(dict.fromkeys(_iri_before(text) for text in given))


def _iri_before(text: str) -> str:
    if "=" not in text or Path(text).exists():
        return _ONE_STREAM
    return _before(text).strip().removeprefix("<").removesuffix(">")


def _before(text: str) -> str:
    """The part before the "=" of the file."""
    cuts = [i for i, character in enumerate(text) if character == "="]
    return text[: next((i for i in cuts if Path(text[i + 1 :]).exists()), cuts[0])]


def _split(text: str, iris: Mapping[str, str]) -> tuple[str | None, str]:
    """The IRI of a stream and its file; None and its name for a stream that is not read."""
    known = {**{iri: iri for iri in iris.values()}, **iris}
    for i, character in enumerate(text):  # an IRI may hold a "="
        if character == "=":
            name = text[:i].strip().removeprefix("<").removesuffix(">")
            if name in known:
                return known[name], text[i + 1 :]
    if len(set(iris.values())) == 1 and ("=" not in text or Path(text).exists()):
        return next(iter(iris.values())), text
    if "=" in text and Path(text.removeprefix(f"{_before(text)}=")).exists():
        return None, _iri_before(text)
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


def _tell_unfed(streams: Mapping[str, str], files: Collection[str]) -> None:
    for name, iri in streams.items():
        if iri not in files:
            click.echo(f"note: no events are given for the stream {name} <{iri}>", err=True)


def _write(request: RunRequest, driver: Driver, chosen: ResultFormat, bar: Bar) -> int:
    shape = driver.shape
    blocks = blocks_of(shape, driver.batches(bar.update), chosen, ties=request.sort)
    if chosen == "table" and request.output is None and sys.stdout.isatty() and shape.form != "ASK":
        (whole,) = blocks
        bar.close()
        return show_table(*table_of(whole))
    with open_output(request.output) as out:
        return write_blocks(shape, blocks, chosen, out, stream=request.output is None)


def _summary(driver: Driver, options: Options, count: int, seconds: float) -> str:
    run = driver.run
    parts = [counted(run.events, "event", "events"), counted(count, "match", "matches"), f"{run.late:,} late"]
    if driver.run.behind:
        parts.append(f"{driver.run.behind:,} behind what WITHIN still knew: matches may be missing there")
    faults = run.faults
    if faults.count:
        parts.append(f"{faults.count:,} ignored")
    lines = [closing(driver.reports, parts, run.events, seconds), *faults.lines]
    if driver.late_note and options.late == "warn":
        lines.append(f"warning: {driver.late_note}; --lateness allows disorder, --late FILE writes them to a file")
    notes = [*driver.unmet(count), *(note for report in driver.reports for note in report.notes)]
    lines += [f"warning: {note}" for note in notes]
    lines += [f"note: there is no event in {report.file}" for report in driver.reports if not report.events]
    return "\n".join(lines)
