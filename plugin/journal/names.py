"""Streams and queries by their names, within a transaction."""

from __future__ import annotations

import sqlite3
from typing import Final

from oxiseq.journal.errors import UnknownError

DELETED: Final = "deleted"
"""The state of a query whose row is kept only so that ids of matches are never given again."""


def stream_id(connection: sqlite3.Connection, iri: str) -> tuple[int, int, int]:
    """(id, first, next) of a stream. Raises UnknownError."""
    row = connection.execute("SELECT id, first, next FROM stream WHERE iri = ?", (iri,)).fetchone()
    if row is None:
        raise unknown_stream(iri)
    return row[0], row[1], row[2]


def unknown_stream(iri: str) -> UnknownError:
    """The error for an unknown stream."""
    return UnknownError(f"there is no stream <{iri}>")


def last_position(connection: sqlite3.Connection) -> int:
    """The id of the last entry of the log, 0 before the first; also when it has been deleted."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    return 0 if row is None else int(row[0])


def query_id(connection: sqlite3.Connection, name: str) -> tuple[int, int, int]:
    """(id, first, next) of a query. Raises UnknownError."""
    row = connection.execute(
        "SELECT id, first, next FROM query WHERE name = ? AND state <> ?", (name, DELETED)
    ).fetchone()
    if row is None:
        raise unknown_query(name)
    return row[0], row[1], row[2]


def unknown_query(name: str) -> UnknownError:
    """The error for an unknown query."""
    return UnknownError(f"there is no query {name!r}")
