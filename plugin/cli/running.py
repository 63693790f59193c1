"""The work of `oxiseq run`: opens streams and KB, writes matches and a summary."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, Final, cast

import click
from pyoxigraph import Store as RdfStore
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oxiseq.cli.options import QuerySource, RunRequest
from oxiseq.cli.progress import Bar, closing, counted, progress_bar
from oxiseq.engine.events.open import event_format, write_events
from oxiseq.grammar.errors import one_line
from oxiseq.journal import FILE_NAME, Journal, LogSource
from oxiseq.kb_loader import load_file, open_kb
from oxiseq.kb_loader.marker import holds_store
from oxiseq.languages.driving import Driver
from oxiseq.languages.language import Language
from oxiseq.languages.lints import lints_of
from oxiseq.languages.registry import language_for
from oxiseq.matches.text import flush_lines, table_of
from oxiseq.matches.write import BINARY, ResultFormat, blocks_of, check_format, result_format, write_blocks
from oxiseq.matches.write import opened as written_file
from oxiseq.options import HISTORY, QUERY, RUN, SOURCES, Options, said_as_data
from oxiseq.options.query_text import known_text
from oxiseq.sources.knowledge import Kb, knowledge_of, opened
from oxiseq.sources.sources import Source
from oxiseq.sources.warned import unread

# --- the knowledge base ----------------------------------------------------------------------------------


def combined(given: Sequence[str]) -> Kb:
    """`FILE`, a store's folder, or `IRI=FILE` for a named graph. A single file or folder is read where it is.

    Raises KbError.
    """
    if not given:
        return None
    named = [_graph_and_file(text) for text in given]
    if len(named) == 1 and named[0][0] is None:
        return named[0][1]
    store = RdfStore()
    for graph, path in named:
        if path.is_dir():
            store.bulk_extend(iter(open_kb(path)))
        else:
            load_file(store, path, graph)
    return store


def _graph_and_file(text: str) -> tuple[str | None, Path]:
    """(IRI of a named graph or None, path). An IRI may hold a "=": the file's name follows the last one."""
    iri, separator, file = text.rpartition("=")
    if separator and ":" in iri and not Path(text).exists():
        return iri.removeprefix("<").removesuffix(">"), Path(file)
    return None, Path(text)


def checked_kb(language: Language[Any], given: Sequence[str]) -> None:
    """Raise a usage error if `--kb` is given to a language whose queries ask none."""
    if given and not language.asks_kb:
        raise click.BadParameter(f"a {language.syntax.title} query asks no knowledge base", param_hint="--kb")


# --- files, or a server's folder -------------------------------------------------------------------------


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


# --- where results go ------------------------------------------------------------------------------------

MOST_ROWS = 1000
"""Beyond this, matches on the terminal are plain lines: laying out a rich table takes a while."""


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """The stream to write to; a file as `matches.write.opened` opens it."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with written_file(path) as file:
            yield file


def show_table(header: list[str], rows: list[list[str]], right: list[bool]) -> int:
    """Matches as a table on the terminal; returns how many."""
    if len(rows) > MOST_ROWS:
        for text in flush_lines(header, rows, right):
            click.echo(text, nl=False)
        return len(rows)
    table = Table(header_style="bold")
    for name, flush in zip(header, right, strict=True):
        table.add_column(Text(name), justify="right" if flush else "left", no_wrap=name == "at")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
    return len(rows)


# --- why not ---------------------------------------------------------------------------------------------

STDIN = "<stdin>"


def why_command(request: RunRequest) -> str:
    """`oxiseq why` with the query, events, KB and options of the request, quoted for a shell, in one line."""
    words = ["oxiseq", "why", _file(request.query), *_options(request)]
    line = " ".join(shlex.quote(word) for word in words)
    piped = [source for source in (request.query, *request.rules) if source.name == STDIN]
    if not piped:
        return line
    text = piped[0].text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"printf %b {shlex.quote(text)} | {line}"


def _file(source: QuerySource) -> str:
    """As the command takes it: a name that looks like an option would be taken for one."""
    if source.name == STDIN:
        return "-"
    return f"./{source.name}" if source.name.startswith("-") else source.name


def _options(request: RunRequest) -> Iterator[str]:
    if request.query.chosen is not None:
        yield f"--language={request.query.chosen}"
    yield from (f"--stream={stream}" for stream in request.streams)
    if request.location is not None:
        yield f"--location={request.location}"
    yield from (f"--kb={kb}" for kb in request.kbs)
    for name, value in {**request.given, "rules": [_file(rules) for rules in request.rules]}.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, dict):
            yield from (f"{flag}={key}={iri}" for key, iri in value.items())
        else:
            yield from (f"{flag}={each}" for each in (value if isinstance(value, list) else [value]))


# --- run -------------------------------------------------------------------------------------------------

_ONE_STREAM: Final = "urn:oxiseq:stream"
"""The IRI of a stream whose file is given alone to a query that names none."""


def run_query(request: RunRequest) -> None:
    """Answer the query over the request's files, or over what its folder keeps. Raises OxiseqError and click's usage
    errors."""
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
        _answer(request, driver, options, chosen)


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


def _answer(request: RunRequest, driver: Driver, options: Options, chosen: ResultFormat) -> None:
    """Writes the matches, the late events, and a summary without the time of the program's start."""
    begun = perf_counter()
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
    if text in known and not Path(text).exists():
        raise click.BadParameter(f"which file has the events of {text}? Write {text}=FILE", param_hint="--stream")
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
