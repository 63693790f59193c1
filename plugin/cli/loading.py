"""The work of `oxiseq load`: the loader with a progress bar, and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Shown

from oxiseq.cli.progress import counted, lines, nothing_of
from oxiseq.engine.errors import KbError
from oxiseq.grammar.errors import OxiseqError
from oxiseq.kb_loader import LoadReport, Progress, Rehearsal, append, load, rehearse
from oxiseq.kb_loader.marker import half_loaded
from oxiseq.kb_loader.report import Watch


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
