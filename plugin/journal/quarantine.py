"""Entries of the log that a query could not process: recorded, so that the rest continues, also after a restart.

What is quarantined is part of what a query has found: a restart must skip the same entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal.names import query_id
from oxiseq.journal.reader import Reader
from oxiseq.journal.writer import Need, Writer

_REASON: Final = 500
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An entry that `query` skips: at `position` of the log, `count` events of `stream` from offset `first` on
    (0: a punctuation); `at`: when it was quarantined (µs since 1970)."""

    query: str
    position: int
    stream: str
    first: int
    count: int
    reason: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class QuarantineCount:
    """What a query has quarantined: so many entries, with so many events; and the last of them."""

    entries: int = 0
    events: int = 0
    last: Quarantined | None = None


class QuarantinedEntries:
    """Record and report it. Thread-safe."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer, self._reader, self._clock = writer, reader, clock

    def add(self, given: Iterable[Quarantined]) -> None:
        """Note entries, durably; those of queries that are gone, and those that are noted already, are skipped.

        A full disk does not hinder it: without the note the rest could not continue.
        """
        rows = tuple(given)

        def work(connection: sqlite3.Connection) -> None:
            for each in rows:
                connection.execute(
                    "INSERT OR IGNORE INTO set_aside (query, position, stream, first, count, reason, at)"
                    " SELECT id, ?, ?, ?, ?, ?, ? FROM query WHERE name = ?",
                    (
                        each.position,
                        each.stream,
                        each.first,
                        each.count,
                        each.reason[:_REASON],
                        self._clock(),
                        each.query,
                    ),
                )

        self._writer.run(work, Need.DELETING)

    def positions(self, query: str) -> frozenset[int]:
        """Which entries a query skips. Raises UnknownError."""
        with self._reader.snapshot() as connection:
            number, _, _ = query_id(connection, query)
            rows = connection.execute("SELECT position FROM set_aside WHERE query = ?", (number,)).fetchall()
        return frozenset(row[0] for row in rows)

    def count(self, query: str) -> QuarantineCount:
        """Of one query. Raises UnknownError."""
        with self._reader.snapshot() as connection:
            number, _, _ = query_id(connection, query)
            entries, events = connection.execute(
                "SELECT count(*), ifnull(sum(count), 0) FROM set_aside WHERE query = ?", (number,)
            ).fetchone()
            last = connection.execute(
                "SELECT position, stream, first, count, reason, at FROM set_aside WHERE query = ?"
                " ORDER BY at DESC, position DESC LIMIT 1",
                (number,),
            ).fetchone()
        return QuarantineCount(entries, events, None if last is None else Quarantined(query, *last))

    def total(self) -> int:
        """Entries that queries have quarantined, each query's own."""
        row = self._reader.row("SELECT count(*) FROM set_aside")
        return 0 if row is None else int(row[0])
