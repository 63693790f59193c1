"""On stderr: a progress bar if that is a terminal, and the closing summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from oxiseq.engine.events.report import ReadReport

_NAMED = 5
"""Sources that are told by name."""


class Bar:
    """How far the reading of files is, in bytes. Without a terminal it does nothing."""

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
        yield bar
    finally:
        bar.close()


def counted(number: int, one: str, many: str) -> str:
    """`1 event`, `1,200 events`."""
    return f"{number:,} {one if number == 1 else many}"


def nothing_of(files: Sequence[Path], what: str) -> list[str]:
    """Notes about sources of which nothing came, the first few by name."""
    told = [
        f"note: no {what} came of {file}: it has no rows, all are bad, or the mapping makes nothing of them"
        for file in files[:_NAMED]
    ]
    more = len(files) - len(told)
    return told + [f"note: no {what} came of {counted(more, 'more source', 'more sources')}"] * (more > 0)


def closing(reports: Sequence[ReadReport], parts: Sequence[str], events: int, seconds: float) -> str:
    """The summary: `parts`, what was skipped, time and rate in a line, then the first faults of each file."""
    skipped = sum(report.skipped for report in reports)
    told = [*parts, *[f"{skipped:,} skipped"] * (skipped > 0), f"{seconds:.2f} s", f"{events / seconds:,.0f} events/s"]
    lines = [" · ".join(told)]
    for report in reports:
        lines += [f"skipped: {error}" for error in report.errors]
        if report.skipped > len(report.errors):
            lines.append(f"skipped: {report.skipped - len(report.errors):,} more of {report.file}")
    return "\n".join(lines)
