"""On stderr: how far the work is, never silent for more than two seconds on a terminal, and the closing summary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from time import perf_counter

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from oxiseq.engine.events.report import ReadReport

_WAITS = (2, 4, 8, 10)
"""Seconds between lines."""
_RATED = 1_000
"""Events from which on the summary has a rate: the time of fewer is that of loading kernels."""
_NAMED = 5
"""Sources that are listed by name."""


class Bar:
    """How far the reading of files is: a bar on a terminal, else a line now and then."""

    def __init__(self, reports: Callable[[], Sequence[ReadReport]], shown: Progress | None) -> None:
        self._reports = reports
        self._shown = shown
        self._task = TaskID(0)
        if shown is not None:
            self._task = shown.add_task("reading", total=None)
            shown.start()

    def update(self) -> None:
        """Show the present state."""
        if self._shown is not None:
            reports = self._reports()
            events = sum(report.events for report in reports)
            self._shown.update(
                self._task,
                completed=sum(report.bytes_read for report in reports),
                total=sum(report.bytes_total for report in reports),
                description=f"{events:,} events",
            )

    def close(self) -> None:
        """Take the bar away, before something else is written."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def line(self) -> str:
        """The present state in words."""
        reports = self._reports()
        read, total = (sum(getattr(report, name) for report in reports) for name in ("bytes_read", "bytes_total"))
        part = f", {read / total:.0%} of the files" if total else ""
        return f"{sum(report.events for report in reports):,} events read{part}"


@contextmanager
def progress_bar(reports: Callable[[], Sequence[ReadReport]], *, quiet: bool) -> Iterator[Bar]:
    """A bar over the files whose reports `reports` gives."""
    console = Console(stderr=True)
    shown = None
    if console.is_terminal and not quiet:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        shown = Progress(*columns, console=console, transient=True)
    bar = Bar(reports, shown)
    try:
        with lines(bar.line, quiet=quiet or shown is not None):
            yield bar
    finally:
        bar.close()


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Shows that work goes on: `what`, or the last text passed to the returned function, and for how long."""
    console = Console(stderr=True)
    said = [what]
    if quiet or not console.is_terminal:
        with lines(lambda: said[0], quiet=quiet):
            yield lambda text: said.__setitem__(0, text)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda text: shown.update(task, description=text)


@contextmanager
def lines(text: Callable[[], str], *, quiet: bool) -> Iterator[None]:
    """For who reads no terminal: a line on stderr after two seconds, then after ever longer ones, up to ten."""
    if quiet:
        yield
        return
    done = threading.Event()

    def tell() -> None:
        begun = perf_counter()
        for wait in chain(_WAITS, repeat(_WAITS[-1])):
            if done.wait(wait):
                return
            click.echo(f"{text()} ({perf_counter() - begun:.0f} s)", err=True)

    thread = threading.Thread(target=tell, name="oxiseq-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def counted(number: int, one: str, many: str) -> str:
    """`1 event`, `1,200 events`."""
    return f"{number:,} {one if number == 1 else many}"


def nothing_of(files: Sequence[Path | str], what: str) -> list[str]:
    """Notes about sources of which nothing came, the first few by name."""
    told = [
        f"note: no {what} came of {file}: it has no rows, all are bad, or the mapping makes nothing of them"
        for file in files[:_NAMED]
    ]
    more = len(files) - len(told)
    return told + [f"note: no {what} came of {counted(more, 'more source', 'more sources')}"] * (more > 0)


def closing(reports: Sequence[ReadReport], parts: Sequence[str], events: int, seconds: float) -> str:
    """Returns the summary: `parts`, skipped events, time and rate in a line, then the first faults of each file."""
    skipped = sum(report.skipped for report in reports)
    fields = [*parts, *[f"{skipped:,} skipped"] * (skipped > 0), f"{seconds:.2f} s"]
    if events >= _RATED:
        fields.append(f"{events / seconds:,.0f} events/s")
    lines = [" · ".join(fields)]
    for report in reports:
        lines += [f"skipped: {error}" for error in report.errors]
        if report.skipped > len(report.errors):
            lines.append(f"skipped: {report.skipped - len(report.errors):,} more of {report.file}")
    return "\n".join(lines)
