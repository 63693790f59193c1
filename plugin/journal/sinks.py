"""Where matches of queries are delivered, and how far that has come.

A sink's position is stored after its receiver has confirmed: a kill between the two repeats what is in between, and
loses nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal.errors import UnknownError
from oxiseq.journal.names import DELETED, query_id
from oxiseq.journal.reader import Reader, Row
from oxiseq.journal.schema import CHECKSUMS
from oxiseq.journal.writer import Need, Writer

_COLUMNS: Final = (
    "query.name, sink.name, sink.config, sink.position, sink.place, sink.delivered, sink.lost, sink.failing,"
    " sink.error, sink.created, sink.changed"
)
_ERROR: Final = 500
"""Characters of an error that are kept."""


@dataclass(frozen=True, slots=True)
class SinkRow:
    """A sink. `config`: JSON values, with secrets that are given as texts; `position`: the id of the last match that
    is delivered or given up; `place`: the receiver's own note of how far it has come, or the last match of a delivery
    under one key; `lost`: matches given up, or deleted before they were delivered; `failing`: since when it fails, with
    which `error`; times are µs since 1970."""

    query: str
    name: str
    config: Mapping[str, Any] = field(repr=False)
    position: int
    place: str = ""
    delivered: int = 0
    lost: int = 0
    failing: int | None = None
    error: str = ""
    created: int = 0
    changed: int = 0


class SinkRows:
    """Put, read, note progress, delete. Safe for many threads."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer, self._reader, self._clock = writer, reader, clock

    def put(self, query: str, name: str, config: Mapping[str, Any], after: int | None = None) -> SinkRow:
        """Store a sink, or other settings of one that is there: that continues at its position, unless `after`, the id
        behind which to begin, is given. A new one begins behind the query's last match. Raises UnknownError."""
        given = json.dumps(dict(config), ensure_ascii=False, sort_keys=True)

        def work(connection: sqlite3.Connection) -> SinkRow:
            number, _, following = query_id(connection, query)
            now, start = self._clock(), following - 1 if after is None else min(after, following - 1)
            connection.execute(
                "INSERT INTO sink (query, name, config, position, place, delivered, lost, error, created, changed)"
                " VALUES (?, ?, ?, ?, '', 0, 0, '', ?, ?) ON CONFLICT (query, name) DO UPDATE SET config = ?,"
                " place = CASE WHEN json_extract(config, '$.kind') = ? THEN place ELSE '' END,"
                " changed = ?, failing = NULL, error = ''",
                (number, name, given, start, now, now, given, config.get("kind"), now),
            )
            connection.execute(
                f"UPDATE sink SET checksum = {CHECKSUMS['sink']} WHERE query = ? AND name = ?", (number, name)
            )
            if after is not None:
                connection.execute(
                    "UPDATE sink SET position = ?, place = '' WHERE query = ? AND name = ?", (start, number, name)
                )
            return _found(connection, query, name)

        return self._writer.run(work)

    def advance(self, row: SinkRow, position: int, place: str, *, delivered: int = 0, lost: int = 0) -> None:
        """All up to `position` is delivered, or lost; it fails no longer. Raises UnknownError where the sink was
        deleted or replaced, FullError."""

        def work(connection: sqlite3.Connection) -> None:
            done = connection.execute(
                "UPDATE sink SET position = ?, place = ?, delivered = delivered + ?, lost = lost + ?, failing = NULL,"
                f" error = '' WHERE {_SAME}",
                (position, place, delivered, lost, *_same(row)),
            )
            if not done.rowcount:
                raise _unknown(row.query, row.name)

        self._writer.run(work, Need.DELETING)

    def note(self, row: SinkRow, place: str) -> None:
        """Another place, at the same position. Raises UnknownError where the sink was deleted or replaced,
        FullError."""

        def work(connection: sqlite3.Connection) -> None:
            if not connection.execute(f"UPDATE sink SET place = ? WHERE {_SAME}", (place, *_same(row))).rowcount:
                raise _unknown(row.query, row.name)

        self._writer.run(work, Need.DELETING)

    def fails(self, row: SinkRow, error: str) -> None:
        """It cannot deliver; since when is noted at first. A deleted one is ignored."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"UPDATE sink SET failing = ifnull(failing, ?), error = ? WHERE {_SAME}",
                (self._clock(), error[:_ERROR], *_same(row)),
            )

        self._writer.run(work, Need.DELETING)

    def delete(self, query: str, name: str) -> None:
        """Forget a sink. Raises UnknownError."""

        def work(connection: sqlite3.Connection) -> None:
            number, _, _ = query_id(connection, query)
            if not connection.execute("DELETE FROM sink WHERE query = ? AND name = ?", (number, name)).rowcount:
                raise _unknown(query, name)

        self._writer.run(work, Need.DELETING)

    def get(self, query: str, name: str) -> SinkRow:
        """Raises UnknownError."""
        with self._reader.snapshot() as connection:
            query_id(connection, query)
            return _found(connection, query, name)

    def all(self, query: str | None = None) -> list[SinkRow]:
        """Those of a query, or all, by query and name."""
        rows = self._reader.rows(
            f"SELECT {_COLUMNS} FROM sink JOIN query ON query.id = sink.query WHERE query.state <> ?"
            " AND (? IS NULL OR query.name = ?) ORDER BY query.id, sink.name",
            (DELETED, query, query),
        )
        return [_row(row) for row in rows]


_SAME: Final = "query = (SELECT id FROM query WHERE name = ?) AND name = ? AND created = ? AND changed = ?"


def _same(row: SinkRow) -> tuple[str, str, int, int]:
    return row.query, row.name, row.created, row.changed


def _found(connection: sqlite3.Connection, query: str, name: str) -> SinkRow:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM sink JOIN query ON query.id = sink.query WHERE query.name = ? AND sink.name = ?",
        (query, name),
    ).fetchone()
    if row is None:
        raise _unknown(query, name)
    return _row(row)


def _unknown(query: str, name: str) -> UnknownError:
    return UnknownError(f"the query {query!r} has no sink {name!r}")


def _row(row: Row) -> SinkRow:
    query, name, config, *rest = row
    return SinkRow(query, name, json.loads(config), *rest)
