"""The work of `oxiseq load`, `import`, `convert` and `mapping`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import click
from pyoxigraph import NamedNode
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Shown

from oxiseq.cli.progress import Bar, closing, counted, lines, nothing_of, progress_bar, working
from oxiseq.engine.errors import EventError, KbError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import EventFormat, EventReader, event_format, open_events, write_events
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import to_text
from oxiseq.engine.events.units import TimeUnit
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.errors import OxiseqError
from oxiseq.kb_loader import LoadReport, Progress, Rehearsal, append, load, rehearse
from oxiseq.kb_loader.marker import half_loaded
from oxiseq.kb_loader.report import Watch
from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import arrange
from oxiseq.logs.reading import Meaning
from oxiseq.mappings.declared import READY, StreamMapping
from oxiseq.mappings.events import Tried, suggested, tried
from oxiseq.mappings.rows import Table, row_tables
from oxiseq.options.kinds import duration_text

# --- import ----------------------------------------------------------------------------------------------


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


# --- convert ---------------------------------------------------------------------------------------------


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


# --- mapping try, suggest --------------------------------------------------------------------------------

_NO_TABLE: Final = "a table is expected: CSV, TSV, JSON, JSON Lines or Parquet"
_TOLD: Final = 10
"""Bad rows that are shown."""


def shown(file: Path, given: str, first: int) -> bool:
    """Show it; whether all is well. Raises OxiseqError."""
    mapping = mapping_named(given)
    seen: dict[str, None] = {}

    def key(name: str) -> str | None:
        seen[name] = None
        return mapping.key(name)

    tables = row_tables(file, key)
    if tables is None:
        raise EventError(str(file), None, _NO_TABLE)
    table = next(tables, Table({}, []))
    if mapping.why_slow is not None:
        click.echo(f"note: Oxigraph answers row by row: {mapping.why_slow} is not compiled", err=True)
    found = tried(table, tuple(seen), mapping, first)
    _events(found, mapping)
    _columns(found, tuple(seen))
    return bool(found.events) and not found.bad and not found.missing


def suggested_for(file: Path) -> dict[str, Any]:
    """A first mapping for a table, from all of its rows. Raises EventError."""
    seen: dict[str, str] = {}
    tables = row_tables(file, lambda name: seen.setdefault(name, name))
    if tables is None:
        raise EventError(str(file), None, _NO_TABLE)
    columns: dict[str, list[Any]] = {}
    count = 0
    for table in tables:
        for name in seen:
            known = columns.setdefault(name, [None] * count)
            known += table.column(name)
        count += len(table)
    return suggested(Table(columns, list(range(1, count + 1))), tuple(seen))


def mapping_named(given: str) -> StreamMapping:
    """The ready mapping of this name, or that of a file. Raises KbError, EventError, MappingError."""
    if given in READY:
        return StreamMapping(given)
    found = mapping_of_file(Path(given))
    return StreamMapping(found.text) if isinstance(found, Mapping) else found


def _events(found: Tried, mapping: StreamMapping) -> None:
    """The first events and bad rows of the file's first rows."""
    for at, graph in found.events:
        click.echo(f"# {to_text(at)}" if mapping.time else "# the time is given beside the row")
        for triple in graph:
            click.echo(f"{triple.subject} {triple.predicate} {triple.object} .")
    for row in found.bad[:_TOLD]:
        click.echo(f"left out: {'' if row.place is None else f'row or line {row.place}: '}{row}", err=True)
    if len(found.bad) > _TOLD:
        click.echo(f"left out: {len(found.bad) - _TOLD:,} more", err=True)
    if not found.events:
        click.echo("no event comes of the first rows", err=True)


def _columns(found: Tried, names: tuple[str, ...]) -> None:
    """What the mapping reads and the file does not have, and the reverse."""
    for column, near in ((each.column, each.near) for each in found.missing):
        listed = f"did you mean {near!r}?" if near else f"columns: {', '.join(names)[:500]}"
        click.echo(f"no column {column!r}; {listed}", err=True)
    if found.unread:
        click.echo(f"not read: {', '.join(found.unread)[:500]}", err=True)


# --- load ------------------------------------------------------------------------------------------------


def load_kb(sources: Sequence[str], location: Path | None, *, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Load; `given`: what else `kb_loader.load` takes. Raises KbError and click's usage errors."""
    if dry_run:
        _rehearse(sources, quiet, given)
        return
    if location is None:
        raise click.UsageError("Missing option '--location' / '-l'.")
    adds = given.pop("append")
    work = _appending(given) if adds else _loading(given)
    if half_loaded(location) and not quiet and not adds:
        click.echo(f"note: {location} is half loaded by an earlier load: starting over", err=True)
    try:
        with _bar(quiet=quiet) as watch:
            report = work(sources, location, watch=watch, **given)
    except (OxiseqError, KeyboardInterrupt):
        if half_loaded(location):
            again = "appending the same batch again ends it" if adds else "loading again starts over"
            click.echo(f"note: {location} is half loaded now: {again}", err=True)
        raise
    if not quiet:
        click.echo(told(report), err=True)


_REHEARSED: Final = ("mapping", "graph", "skolemise", "strict")
_APART: Final = ("append", "batch", "restart", "master", "memory", "parts", "shapes", "quarantine")
"""Of a load that writes; --engine and --reason are skipped where they ask for what a rehearsal does anyway."""


def _rehearse(sources: Sequence[str], quiet: bool, given: dict[str, Any]) -> None:
    """Raises KbError for options that only a real load takes."""
    for name in _APART:
        if given[name]:
            raise KbError(f"--{name} cannot go with --dry-run, which reads and writes nothing")
    if given["engine"] == "spark":
        raise KbError("--engine spark cannot go with --dry-run, which loads for some seconds in this process")
    with _bar(quiet=quiet) as watch:
        found = rehearse(sources, watch=watch, **{name: given[name] for name in _REHEARSED})
    click.echo(rehearsed(found))


def rehearsed(found: Rehearsal) -> str:
    """What a rehearsal has found, exact or reckoned from the part that was read."""
    about = "" if found.whole else "about "
    statements = counted(found.expected_statements, "statement", "statements")
    head = [
        counted(found.files, "file", "files"),
        f"{about}{statements}",
        f"{found.quarantined:,} bad{'' if found.whole else ' so far'}",
        f"{about}{found.expected:,.1f} s",
    ]
    lines = [" · ".join(head)]
    if not found.whole:
        read = counted(found.statements, "statement", "statements")
        lines.append(f"read {found.done:,} of {found.total:,} bytes: {read}")
    lines += [*nothing_of(found.without, "statement"), *(f"bad: {fault}" for fault in found.faults)]
    return "\n".join([*lines, f"a load takes {found.why}; statistics and reasoning take time besides"])


def _loading(given: dict[str, Any]) -> Callable[..., LoadReport]:
    if given.pop("batch") is not None:
        raise KbError("--batch names an appended batch: it needs --append")
    return load


def _appending(given: dict[str, Any]) -> Callable[..., LoadReport]:
    """Removes the options that only `load` takes. Raises KbError where one of them is given."""
    for name, usual in (("engine", "auto"), ("master", None), ("memory", None), ("parts", None), ("restart", False)):
        if given.pop(name) not in (usual, "plain"):
            raise KbError(f"--{name} cannot go with --append, which adds to the store in this process")
    return append


def told(report: LoadReport) -> str:
    """The report: what was read, what was left out, what was added, times."""
    if report.known:
        return f"batch {report.batch} is in the store already: {report.location}"
    lines = [
        " · ".join(
            [
                counted(report.files, "file", "files"),
                counted(report.stored, "statement", "statements"),
                counted(report.duplicates, "duplicate", "duplicates"),
                f"{report.quarantined:,} quarantined",
                f"{report.rate:,.0f} statements/s",
            ]
        )
    ]
    if report.inferred:
        lines.append(f"{counted(report.inferred, 'statement', 'statements')} inferred, in <urn:oxiseq:inferred>")
    lines.append(f"{counted(report.statistics, 'statement', 'statements')} of statistics, in <urn:oxiseq:statistics>")
    lines += nothing_of(report.without, "statement")
    lines += [f"quarantined: {fault}" for fault in report.faults]
    lines += report.violations[:5]
    if report.violations:
        lines.append(f"{counted(len(report.violations), 'result', 'results')} of SHACL: {report.quarantine}")
    if report.quarantined:
        lines.append(f"all {report.quarantined:,} with their text: {report.quarantine}")
    lines.append(", ".join(f"{step} {seconds:.2f} s" for step, seconds in report.seconds.items()))
    return "\n".join([*lines, f"the store is whole: {report.location}"])


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Watch]:
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        last = ["looking for sources"]

        def note(at: Progress) -> None:
            last[0] = f"{at.step}: {at.statements:,} statements"
            if at.note and not quiet:
                click.echo(at.note, err=True)

        with lines(lambda: last[0], quiet=quiet):
            yield note
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    begun = perf_counter()
    with Shown(*columns, console=console, transient=True) as shown:
        task = shown.add_task("loading", total=None)

        def watch(at: Progress) -> None:
            if at.note:
                shown.console.print(at.note, markup=False, highlight=False)
            rate = at.statements / (perf_counter() - begun)
            text = f"{at.step}: {at.statements:,} statements"
            if at.step == "loading":
                text += f", {rate:,.0f}/s"
            shown.update(task, completed=at.done, total=at.total, description=text)

        yield watch
