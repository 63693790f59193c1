"""Where results go: stdout, a file that appears when all is written, or a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oxiseq.matches.text import flush_lines
from oxiseq.matches.write import opened

MOST_ROWS = 1000
"""Beyond this, matches on the terminal are plain lines: laying out a rich table takes a while."""


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """The stream to write to; a file as `opened` opens it."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with opened(path) as file:
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
