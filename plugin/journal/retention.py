"""How long events and matches are kept. What is deleted is always the oldest batches, whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass

SLICE: Final = 500
"""Batches that are deleted in one transaction, so that appenders need not wait long."""


@dataclass(frozen=True, slots=True)
class Retention:
    """A batch is deleted when it arrived more than `time` µs ago, or when `count` newer events (or matches) are there;
    None: not for that reason.

    Time is counted from the arrival, not from the events' own times: an event from the future cannot delete the rest,
    and history that is loaded late is kept as long as anything else.
    """

    time: int | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if any(limit is not None and limit < 0 for limit in (self.time, self.count)):
            raise OxiseqError(f"retention must not be negative, but is {self}")


@dataclass(frozen=True, slots=True)
class Old:
    """A batch that may have to go: its id, first number, size and arrival (µs)."""

    id: int
    first: int
    count: int
    received: int


def oldest(connection: sqlite3.Connection, table: str, column: str, owner: int) -> list[Old]:
    """The oldest batches of a stream or query, at most a slice."""
    sql = f"SELECT id, first, count, received FROM {table} WHERE {column} = ? ORDER BY first, id LIMIT ?"
    return [Old(*row) for row in connection.execute(sql, (owner, SLICE))]


def expired(batches: Iterable[Old], keep: Retention, now: int, following: int) -> list[Old]:
    """The batches from the oldest on that are to be deleted; `following` is the number that comes next."""
    found = []
    for batch in batches:
        too_old = keep.time is not None and batch.received < now - keep.time
        too_many = keep.count is not None and following - (batch.first + batch.count) >= keep.count
        if not too_old and not too_many:
            break
        found.append(batch)
    return found


def delete(connection: sqlite3.Connection, table: str, batches: Iterable[Old]) -> None:
    """Delete these rows."""
    connection.executemany(f"DELETE FROM {table} WHERE id = ?", [(batch.id,) for batch in batches])
