"""The streams: named sequences of events, each with offsets of its own from 0 on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from oxiseq.grammar.records import dataclass
from oxiseq.journal.errors import ConflictError
from oxiseq.journal.names import stream_id, unknown_stream
from oxiseq.journal.reader import Reader, Row
from oxiseq.journal.retention import Retention
from oxiseq.journal.schema import CHECKSUMS, Writing
from oxiseq.journal.writer import Need, Writer

_COLUMNS = "iri, first, next, keep_time, keep_count, created, mapping, punctuated"


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream: offsets `first` to `next` - 1 are kept; `created` in µs since 1970; `mapping`: what rows that are
    pushed to it mean, as JSON text; empty: it takes none; `punctuated`: the largest punctuation (µs), None: there was
    none."""

    iri: str
    first: int
    next: int
    keep: Retention
    created: int
    mapping: str = ""
    punctuated: int | None = None


class Streams:
    """Create and list streams."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    def create(self, iri: str, keep: Retention | None = None, mapping: str | None = None) -> StreamRecord:
        """The stream of this name, created if it does not exist; `keep` (default for a new one: everything) and
        `mapping` replace the old settings."""

        def work(connection: sqlite3.Connection) -> StreamRecord:
            chosen = keep or Retention()
            connection.execute(
                "INSERT INTO stream (iri, first, next, keep_time, keep_count, created) VALUES (?, 0, 0, ?, ?, ?)"
                " ON CONFLICT (iri) DO NOTHING",
                (iri, chosen.time, chosen.count, self._clock()),
            )
            if keep is not None:
                connection.execute(
                    "UPDATE stream SET keep_time = ?, keep_count = ? WHERE iri = ?", (keep.time, keep.count, iri)
                )
            if mapping is not None:
                connection.execute("UPDATE stream SET mapping = ? WHERE iri = ?", (mapping, iri))
                connection.execute(f"UPDATE stream SET checksum = {CHECKSUMS['stream']} WHERE iri = ?", (iri,))
            return _record(connection.execute(f"SELECT {_COLUMNS} FROM stream WHERE iri = ?", (iri,)).fetchone())

        return self._writer.run(work, Need.DELETING)  # retention must be settable on a full disk

    def delete(self, iri: str) -> None:
        """Forget the stream, its events, batch ids and sessions. Raises UnknownError; ConflictError while a checkpoint
        is in it, hence while a query reads it."""

        def work(connection: Writing) -> None:
            number, _, _ = stream_id(connection, iri)
            held = connection.execute("SELECT owner FROM checkpoint_offset WHERE stream = ?", (number,)).fetchone()
            if held is not None:
                raise ConflictError(f"the stream <{iri}> is read by {held[0]!r}")
            connection.execute("DELETE FROM entry WHERE stream = ?", (number,))
            connection.execute("DELETE FROM receipt WHERE stream = ?", (number,))
            connection.execute("DELETE FROM session WHERE stream = ?", (number,))
            connection.execute("DELETE FROM stream WHERE id = ?", (number,))
            connection.forgotten = True

        self._writer.run(work, Need.DELETING)

    def all(self) -> list[StreamRecord]:
        """All streams, in the order of their creation."""
        return [_record(row) for row in self._reader.rows(f"SELECT {_COLUMNS} FROM stream ORDER BY id")]

    def get(self, iri: str) -> StreamRecord:
        """The stream of this name. Raises UnknownError."""
        row = self._reader.row(f"SELECT {_COLUMNS} FROM stream WHERE iri = ?", (iri,))
        if row is None:
            raise unknown_stream(iri)
        return _record(row)


def _record(row: Row) -> StreamRecord:
    iri, first, following, keep_time, keep_count, created, mapping, punctuated = row
    return StreamRecord(iri, first, following, Retention(keep_time, keep_count), created, mapping, punctuated)
