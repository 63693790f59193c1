"""Connections that read: a small pool, so that many threads read at once, each from a snapshot."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from oxiseq.journal.errors import JournalError, journal_error
from oxiseq.journal.schema import open_reader

Row = tuple[Any, ...]
PAGE_BYTES: Final = 1 << 20
"""Bytes of blobs that are read at a time."""
ROW_BYTES: Final = 64
"""What a row counts for beside its blob."""
_KEPT: Final = 16
"""Connections that are kept open when nobody uses them."""


class Reader:
    """The pool. A connection is never kept across what a caller does between two reads, so a slow one holds nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._free: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection in a read transaction: all that is read in the block is of one moment. Raises JournalError.

        A cursor that is not read to its end must be closed in the block: it would hold the snapshot beyond it.
        """
        with self._connection() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query; what one statement reads is of one moment."""
        with self._connection() as connection:
            return connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The row of a query that has one at most, or None."""
        return next(iter(self.rows(sql, parameters)), None)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = self._take()
        try:
            yield connection
        except BaseException as error:
            connection.close()  # the error may hold a cursor
            if isinstance(error, sqlite3.Error):
                raise journal_error(error, self.path) from error
            raise
        self._give_back(connection)

    def close(self) -> None:
        """Close what is not in use; the rest when it comes back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise JournalError(f"{self.path}: the journal is closed")
            if self._free:
                return self._free.pop()
        return open_reader(self.path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._free) < _KEPT:
                self._free.append(connection)
                return
        connection.close()


def page(cursor: sqlite3.Cursor, size: Callable[[Row], int], most: int) -> tuple[list[Row], bool]:
    """Rows until their sizes sum up to `most`, at least one; and whether that was the end. Closes the cursor."""
    found: list[Row] = []
    total = 0
    with closing(cursor):
        for row in cursor:
            found.append(row)
            total += size(row)
            if total >= most:
                return found, False
    return found, True
