"""The rows of a checkpoint: its position in the log and in the matches."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from oxiseq.journal.errors import ConflictError
from oxiseq.journal.names import last_position, query_id, stream_id


def begin(connection: sqlite3.Connection, owner: str, offsets: Mapping[str, int], now: int) -> None:
    """The first checkpoint of a query: no state, these offsets, and the position after its last match."""
    _, _, following = query_id(connection, owner)
    put(connection, owner, b"", offsets, {owner: following - 1}, last_position(connection), now)


def begin_anew(connection: sqlite3.Connection, owner: str, state: bytes, now: int) -> int:
    """Deletes the emitted matches of a query, leaves an id out, so that every earlier cursor is too old, and has it
    are there with this state. The id of the last match."""
    number, _, last = query_id(connection, owner)
    connection.execute("DELETE FROM match_batch WHERE query = ?", (number,))
    connection.execute("UPDATE query SET first = ?, next = ? WHERE id = ?", (last + 1, last + 1, number))
    put(connection, owner, state, {}, {owner: last}, last_position(connection), now)
    return last


def put(
    connection: sqlite3.Connection,
    owner: str,
    state: bytes,
    offsets: Mapping[str, int],
    matches: Mapping[str, int],
    position: int,
    now: int,
) -> None:
    """Replace the owner's checkpoint. Raises UnknownError and, for places that there are not, ConflictError."""
    drop(connection, owner)
    connection.execute(
        "INSERT INTO checkpoint (owner, state, position, made) VALUES (?, ?, ?, ?)", (owner, state, position, now)
    )
    for iri, offset in offsets.items():
        number, first, following = stream_id(connection, iri)
        if not first <= offset <= following:
            raise ConflictError(f"offset {offset} of <{iri}> is not kept: {first} to {following} are")
        connection.execute("INSERT INTO checkpoint_offset VALUES (?, ?, ?)", (owner, number, offset))
    for name, last in matches.items():
        number, _, following = query_id(connection, name)
        if not 0 <= last < following:
            raise ConflictError(f"match {last} of {name!r} is not stored: the last one is {following - 1}")
        connection.execute("INSERT INTO checkpoint_match VALUES (?, ?, ?)", (owner, number, last))


def drop(connection: sqlite3.Connection, owner: str) -> None:
    """Delete the owner's checkpoint, if there is one."""
    for table in ("checkpoint", "checkpoint_offset", "checkpoint_match"):
        connection.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))
