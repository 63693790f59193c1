"""The work of `oxiseq mapping try` and `suggest`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from oxiseq.cli.arranging import mapping_of_file
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import to_text
from oxiseq.kb_loader.tables import Mapping
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.ready import READY
from oxiseq.mappings.rows import Table
from oxiseq.mappings.sources import row_tables
from oxiseq.mappings.suggesting import suggested
from oxiseq.mappings.trying import Tried, tried

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
