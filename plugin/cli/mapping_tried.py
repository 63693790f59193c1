"""The work of `oxiseq mapping try`."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final

import click

from oxiseq.cli.arranging import mapping_of_file
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.time import to_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader.tables import Mapping
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.ready import READY
from oxiseq.mappings.rows import Table
from oxiseq.mappings.sources import row_tables

_TOLD: Final = 10
"""Bad rows that are shown."""


def tried(file: Path, given: str, first: int) -> bool:
    """Show it; whether all is well. Raises OxiseqError."""
    mapping = mapping_named(given)
    seen: dict[str, None] = {}

    def key(name: str) -> str | None:
        seen[name] = None
        return mapping.key(name)

    tables = row_tables(file, key)
    if tables is None:
        raise EventError(str(file), None, "a table is expected: CSV, TSV, JSON, JSON Lines or Parquet")
    table = next(tables, Table({}, []))
    if mapping.why_slow is not None:
        click.echo(f"note: Oxigraph answers row by row: {mapping.why_slow} is not compiled", err=True)
    return _events(table, mapping, first) & _columns(mapping, tuple(seen))


def mapping_named(given: str) -> StreamMapping:
    """The ready mapping of this name, or that of a file. Raises KbError, EventError, MappingError."""
    if given in READY:
        return StreamMapping(given)
    found = mapping_of_file(Path(given))
    return StreamMapping(found.text) if isinstance(found, Mapping) else found


def _events(table: Table, mapping: StreamMapping, first: int) -> bool:
    """The first events and bad rows of the file's first rows."""
    terms, shown, bad = TermDictionary(), 0, list(table.bad)
    table.bad = []
    table.names = None  # what is missing is said by itself
    for part in mapped(table, mapping, terms, None if mapping.time else 0):
        for at, graph in islice(decode_events(part.batch, terms), first - shown):
            click.echo(f"# {to_text(at)}" if mapping.time else "# told beside the row")
            for triple in graph:
                click.echo(f"{triple.subject} {triple.predicate} {triple.object} .")
            shown += 1
        bad += part.bad
        if shown >= first:
            break
    for row in bad[:_TOLD]:
        click.echo(f"left out: {'' if row.place is None else f'row or line {row.place}: '}{row}", err=True)
    if len(bad) > _TOLD:
        click.echo(f"left out: {len(bad) - _TOLD:,} more", err=True)
    if not shown:
        click.echo("no event comes of the first rows", err=True)
    return bool(shown) and not bad


def _columns(mapping: StreamMapping, names: tuple[str, ...]) -> bool:
    """What the mapping reads and the file does not have."""
    missing = mapping.missing(names)
    for column in missing:
        near = get_close_matches(column, names, 1)
        listed = f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(names)[:500]}"
        click.echo(f"no column {column!r}; {listed}", err=True)
    if unread := [name for name in names if mapping.key(name) is None]:
        click.echo(f"not read: {', '.join(unread)[:500]}", err=True)
    return not missing
