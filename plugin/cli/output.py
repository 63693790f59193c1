"""Where results go: stdout, a file that appears when all is written, or a table on the terminal."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oxiseq.engine.events.write import replacing
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.formats import is_numeric, result_text, table_rows
from oxiseq.match import Shape

MOST_ROWS = 1000
"""Beyond this, matches on the terminal are plain lines: laying out a rich table takes a while."""


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """The stream to write to; a file whose name ends in `.gz` is compressed."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
        with path.open("wb") as file:
            yield file
    else:
        with replacing(path) as part, part.open("wb") as file:
            if path.suffix.lower() == ".gz":
                with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as zipped:
                    yield cast(BinaryIO, zipped)
            else:
                yield file


def show_table(shape: Shape, batch: MatchBatch) -> int:
    """Matches as a table on the terminal; returns how many."""
    if len(batch) > MOST_ROWS:
        for text in result_text(shape, [batch], "table"):
            click.echo(text, nl=False)
        return len(batch)
    header, rows = table_rows(shape, batch)
    table = Table(header_style="bold")
    for name, right in zip(header, is_numeric(shape, batch), strict=True):
        table.add_column(Text(name), justify="right" if right else "left", no_wrap=name == "time")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
    return len(batch)
