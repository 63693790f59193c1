"""Group commit: writes of many threads share a transaction, and so a flush to the disk.

There is no thread of its own. Whoever wants to write puts its work on a list. If nobody leads, it leads: it commits
everything on the list and wakes those whose work that was. While one flush runs, the next group gathers; the first of
these is woken too, and leads unless somebody who has just come does already.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final, Generic, TypeVar, cast

from oxiseq.journal.errors import FullError, JournalError, journal_error

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Reads and writes within a transaction. When it raises, what it wrote is taken back."""

_GROUP: Final = 1024
"""Works of one transaction at most."""
_RESERVE: Final = 8
"""Of a file whose size is limited this part is left for what makes room: one in so many pages."""
_UNLIMITED: Final = 1 << 29
"""Pages: without a limit SQLite allows more, or as many as it can."""


class Need(IntEnum):
    """What a work needs room for."""

    DELETING = 0
    """It deletes, or adds next to nothing."""
    PROGRESS = 1
    """Matches and checkpoints: nothing that a checkpoint still needs can be deleted, so they may have half of what is
    left free. Else a journal that filled before its first checkpoint would stay full."""
    GROWING = 2
    """All else that is added."""


class _Ticket(Generic[T]):
    """One work on the list, and what became of it. `wake` is released when there is something to look at."""

    __slots__ = ("done", "error", "need", "value", "wake", "work")

    def __init__(self, work: Work[T], need: Need) -> None:
        self.work = work
        self.need = need
        self.value: T | None = None
        self.error: BaseException | None = None
        self.done = False
        self.wake = threading.Lock()
        self.wake.acquire()

    def fail(self, error: BaseException) -> None:
        self.error, self.done = error, True


class Writer:
    """The one connection that writes. Safe for many threads.

    `keep_free`: bytes of the disk below which what makes the file larger is refused (see `Need`). On a disk that is
    full to the last byte nothing could be deleted either: that too is written to the WAL first.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, keep_free: int = 0) -> None:
        self._connection = connection
        self._path = path
        self._keep_free = keep_free
        self._most_pages = int(connection.execute("PRAGMA max_page_count").fetchone()[0])
        self._list: deque[_Ticket[Any]] = deque()
        self._leading = False
        self._lock = threading.Lock()
        """Held for the list and for who leads, never while something is waited for."""
        self._busy = threading.Lock()
        """Held while the connection is used."""
        self._closed = False
        self.commits = 0
        """Transactions so far."""

    def run(self, work: Work[T], need: Need = Need.GROWING) -> T:
        """Do the work and commit it, together with others'; its result, when that is durable.

        Raises what the work raises, FullError, LockedError, JournalError; then nothing of it is stored.
        """
        ticket = _Ticket(work, need)
        with self._lock:
            self._list.append(ticket)
        while not ticket.done:
            with self._lock:
                leads = not self._leading and not ticket.done
                self._leading |= leads
            if leads:
                self._lead()
            elif not ticket.done:
                ticket.wake.acquire()
        if ticket.error is not None:
            raise ticket.error
        return cast(T, ticket.value)

    def tidy(self) -> None:
        """Where the disk is short, bring the WAL into the file, so that its room can be used again."""
        if self.short:
            with self._busy, suppress(sqlite3.Error):
                if not self._closed:
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def short(self) -> bool:
        """Whether less of the disk is free than is to be left."""
        return self._short_of(Need.GROWING)

    def _short_of(self, need: Need) -> bool:
        """Whether less of the disk is free than is to be left by such works."""
        part = need / Need.GROWING
        return self._keep_free > 0 and disk_usage(self._path.parent).free < self._keep_free * part

    def _lacking(self, need: Need) -> str:
        """Why there is no room for such works, empty if there is. (Of a file without a limit SQLite counts no pages
        here: its limit is then some four thousand million.)"""
        if self._short_of(need):
            return f"less than {self._keep_free:,} bytes are free"
        if self._most_pages > _UNLIMITED:
            return ""
        used, spare = (int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
                       for name in ("page_count", "freelist_count"))  # fmt: skip
        left = self._most_pages - used + spare
        return "the file has the size that it may have" if left * _RESERVE * 2 < self._most_pages * need else ""

    def close(self) -> None:
        """Wait for the running commit; later writes are refused."""
        with self._busy:
            self._closed = True
            self._connection.close()

    def _lead(self) -> None:
        """Commit what is on the list, a group's worth at most."""
        with self._lock:
            group = [self._list.popleft() for _ in range(min(len(self._list), _GROUP))]
        try:
            with self._busy:
                self._commit(group)
        finally:
            with self._lock:
                self._leading = False
                for ticket in (*group, *list(self._list)[:1]):
                    if ticket.wake.locked():
                        ticket.wake.release()

    def _commit(self, group: list[_Ticket[Any]]) -> None:
        if self._closed:
            for ticket in group:
                ticket.fail(JournalError(f"{self._path}: the journal is closed"))
            return
        for need in (Need.GROWING, Need.PROGRESS):
            lacking = self._lacking(need)
            if not lacking:
                break  # what needs less finds room, too: the disk is asked once a commit
            for ticket in group:
                if ticket.need is need:
                    ticket.fail(FullError(f"{self._path}: no room left: {lacking}"))
            group = [ticket for ticket in group if ticket.need is not need]
        try:
            if group:
                self._attempt(group)
        except sqlite3.Error as error:
            if len(group) == 1:
                group[0].fail(journal_error(error, self._path))
            else:  # one of them may be too large, or at fault otherwise: the others shall not suffer
                for ticket in group:
                    self._commit([ticket])
        finally:
            for ticket in group:
                if not ticket.done:
                    ticket.fail(JournalError(f"{self._path}: writing was interrupted: it may be stored or not"))

    def _attempt(self, group: list[_Ticket[Any]]) -> None:
        """All works of the group in one transaction. Raises sqlite3.Error, then nothing of it is stored.

        A work that raises is found out by doing all again, each behind a savepoint: without savepoints there are fewer
        statements, and at each of them another thread may take its turn.
        """
        failed: dict[int, Exception] = {}
        with self._transaction() as connection:
            try:
                for ticket in group:
                    ticket.value = ticket.work(connection)
            except sqlite3.Error:
                raise
            except Exception:
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                failed = self._one_by_one(group)
        self.commits += 1
        for number, ticket in enumerate(group):
            if number in failed:
                ticket.fail(failed[number])
            ticket.done = True

    def _one_by_one(self, group: list[_Ticket[Any]]) -> dict[int, Exception]:
        """Within a transaction: the works that do not raise; what the others raise."""
        failed: dict[int, Exception] = {}
        for number, ticket in enumerate(group):
            self._connection.execute("SAVEPOINT work")
            try:
                ticket.value = ticket.work(self._connection)
            except sqlite3.Error:
                raise
            except Exception as error:
                self._connection.execute("ROLLBACK TO work")
                failed[number] = error
            self._connection.execute("RELEASE work")
        return failed

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at the end, taken back by an exception."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise
