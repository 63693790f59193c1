"""The matches that queries have found, under ids that increase by one per match, per query from 1 on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal.envelope import summary
from oxiseq.journal.errors import ConflictError, CursorError, DamagedBatchError, JournalError
from oxiseq.journal.names import query_id
from oxiseq.journal.positions import begin_anew
from oxiseq.journal.reader import PAGE_BYTES, ROW_BYTES, Reader, Row, page
from oxiseq.journal.retention import Retention, delete, expired, oldest
from oxiseq.journal.rows import KIND, StoredMatches, unpack_matches
from oxiseq.journal.writer import Need, Writer

FIRST: Final = 1
"""The first match's id."""


@dataclass(frozen=True, slots=True)
class Found:
    """Matches of a query that `pack_matches` has packed; `first` is the id of the first of them.

    The finder counts: from its checkpoint's last id on. So what a replay finds again has the ids it had before.
    """

    query: str
    first: int
    data: bytes


class MatchLog:
    """Append, read, delete what is old. Safe for many threads."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    def append(self, *found: Found) -> None:
        """Store matches, all or none; those whose ids are stored already are skipped.

        Raises UnknownError, ConflictError when it would leave a gap, DamagedError, FullError.
        """
        self._writer.run(storing(found, self._clock), Need.PROGRESS)

    def read(self, query: str, after: int = 0, limit: int | None = None) -> list[StoredMatches]:
        """The matches with ids above `after`, at most `limit` (default: what makes up about a megabyte).

        Empty: there is nothing yet, also when `after` has not been given yet (a match may be emitted before it is
        durable). CursorError: what follows `after` has been deleted. DamagedBatchError: the first of them cannot be
        read. Raises UnknownError.
        """
        with self._reader.snapshot() as connection:
            number, first, following = query_id(connection, query)
            if after + 1 < first:
                raise CursorError(f"matches of {query!r}", after + 1, first)
            if after + 1 >= following or limit == 0:
                return []
            cursor = connection.execute(
                "SELECT first, count, data FROM match_batch WHERE query = ? AND first >= ("
                " SELECT max(first) FROM match_batch WHERE query = ? AND first <= ?) AND first < ? ORDER BY first",
                (number, number, after + 1, following if limit is None else after + 1 + limit),
            )
            rows, _ = page(cursor, lambda row: len(row[2]) + ROW_BYTES, PAGE_BYTES)
        stop = None if limit is None else after + 1 + limit
        return [_between(part, after + 1, stop) for part in _readable(query, rows)]

    def begin_anew(self, query: str, state: bytes) -> int:
        """Delete all kept matches and skip an id: every earlier cursor is too old. `state` is the query's
        checkpoint there. The id of the last one now.

        Raises UnknownError, FullError.
        """
        return self._writer.run(lambda connection: begin_anew(connection, query, state, self._clock()), Need.PROGRESS)

    def last(self, query: str) -> int:
        """The id of the last match, 0 when there was none. Raises UnknownError."""
        with self._reader.snapshot() as connection:
            return query_id(connection, query)[2] - 1

    def trim(self, query: str, now: int) -> int:
        """Delete a slice of batches that are too old or too many; how many."""

        def work(connection: sqlite3.Connection) -> int:
            number, _, following = query_id(connection, query)
            keep = Retention(
                *connection.execute("SELECT keep_time, keep_count FROM query WHERE id = ?", (number,)).fetchone()
            )
            gone = expired(oldest(connection, "match_batch", "query", number), keep, now, following)
            if gone:
                delete(connection, "match_batch", gone)
                connection.execute("UPDATE query SET first = ? WHERE id = ?", (gone[-1].first + gone[-1].count, number))
            return len(gone)

        return self._writer.run(work, Need.DELETING)


def storing(found: tuple[Found, ...], clock: Callable[[], int]) -> Callable[[sqlite3.Connection], None]:
    """The work that stores matches."""
    counts = [summary(KIND, each.data).count for each in found]

    def work(connection: sqlite3.Connection) -> None:
        for each, count in zip(found, counts, strict=True):
            if count:
                _store(connection, each, count, clock())

    return work


def _store(connection: sqlite3.Connection, found: Found, count: int, now: int) -> None:
    number, _, following = query_id(connection, found.query)
    if found.first > following:
        raise ConflictError(f"matches of {found.query!r} from {found.first} on would leave a gap: next is {following}")
    if found.first < FIRST:
        raise ConflictError(f"ids of matches begin with {FIRST}, but {found.first} is given")
    end = found.first + count
    if end <= following:
        return  # all of them are stored
    connection.execute(  # the blob may begin with some that are stored already: `count` says so, from its end
        "INSERT INTO match_batch (query, first, count, received, data) VALUES (?, ?, ?, ?, ?)",
        (number, following, end - following, now, found.data),
    )
    connection.execute("UPDATE query SET next = ? WHERE id = ?", (end, number))


def _readable(query: str, rows: Sequence[Row]) -> list[StoredMatches]:
    """The matches of batches, up to the first that cannot be read. Raises DamagedBatchError where that is the first of
    them."""
    found: list[StoredMatches] = []
    for first, count, data in rows:
        try:
            found.append(_unpacked(first, count, data))
        except JournalError as error:
            if found:
                break
            raise DamagedBatchError(f"matches of {query!r}", first, first + count, str(error)) from error
    return found


def _unpacked(first: int, count: int, data: bytes) -> StoredMatches:
    """The last `count` matches of a blob; the first of these has the id `first`."""
    size = summary(KIND, data).count
    return unpack_matches(data, first + count - size).slice(size - count, size)


def _between(stored: StoredMatches, first: int, stop: int | None) -> StoredMatches:
    return stored.slice(max(0, first - stored.first), len(stored) if stop is None else stop - stored.first)
