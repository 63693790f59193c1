"""Group commit: writes that come at about the same time share a transaction, and so a flush to the disk.

Whoever wants to write puts its work on a list. A thread that waits for its own work (`run`) needs no other: if nobody
leads, it leads: it commits everything on the list and wakes those whose work that was. While one flush runs, the next
group gathers; the first of these is woken too, and leads unless somebody who has just come does already. For who does
not wait (`submit`: a server's loop) a thread leads. While works come several at a time it lets two milliseconds pass
between the beginnings of two groups; one that comes alone waits for nothing.

Works of one kind that follow each other in a group are passed to their `Batch` together: that takes a few statements
for all of them, and at each statement other threads may take their turn.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from oxiseq.engine.background import Background, Backgrounds
from oxiseq.journal.errors import FullError, JournalError, journal_error
from oxiseq.journal.recent import Recent
from oxiseq.journal.schema import Writing
from oxiseq.options import room

LOG: Final = logging.getLogger("oxiseq.journal")
T = TypeVar("T")
Work = Callable[[Writing], T]
"""Reads and writes within a transaction. When it raises, what it wrote is taken back."""
Batch = Callable[[Writing, Sequence[Any]], Sequence[Any]]
"""Does several works of one kind, in their order: for each its result, or the exception that refuses it (then it has
written nothing for it). When it raises itself, what it wrote is taken back."""

_LONGEST_GAP: Final = 0.002
"""Seconds between the beginnings of two groups of the thread at least, while several come at a time..."""
_SHORTEST_GAP: Final = 0.0001
"""...and half of that each time that a group was of one, down to none below this."""
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


class Written(Generic[T]):
    """A work on the list, and what became of it. `notify` is called by the thread that has committed it."""

    __slots__ = ("_error", "_value", "batch", "done", "item", "need", "notify", "wake")

    def __init__(self, batch: Batch, item: Any, need: Need, notify: Callable[[], None] | None) -> None:
        self.batch, self.item, self.need, self.notify = batch, item, need, notify
        self.done = False
        self.wake = threading.Lock() if notify is None else None
        """Released when there is something for a waiting thread to look at."""
        self._value: T | None = None
        self._error: BaseException | None = None
        if self.wake is not None:
            self.wake.acquire()

    def result(self) -> T:
        """What the work has answered, once it is done. Raises what it raises, FullError, LockedError, JournalError;
        then nothing of it is stored."""
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def keep(self, outcome: object) -> None:
        """A result or an exception, final when it is `done`."""
        if isinstance(outcome, BaseException):
            self._value, self._error = None, outcome
        else:
            self._value, self._error = cast(T, outcome), None

    def fail(self, error: BaseException) -> None:
        """It is done, and nothing of it is stored."""
        self.keep(error)
        self.done = True


def _alone(connection: Writing, works: Sequence[Work[Any]]) -> list[Any]:
    """The batch of works that have no kind: one after the other."""
    found = []
    for work in works:
        found.append(work(connection))
        connection.ends = {}  # it may have changed streams
    return found


class Writer:
    """The one connection that writes. Safe for many threads.

    `keep_free`: bytes of the disk below which what makes the file larger is refused (see `Need`). On a disk that is
    full to the last byte nothing could be deleted either: that too is written to the WAL first.
    """

    def __init__(
        self, connection: Writing, path: Path, recent: Recent, threads: Backgrounds, keep_free: int = 0
    ) -> None:
        self._connection = connection
        connection.ends = {}
        self._path = path
        self._recent = recent
        self._threads = threads
        self._keep_free = keep_free
        self._most_pages = int(connection.execute("PRAGMA max_page_count").fetchone()[0])
        self._list: deque[Written[Any]] = deque()
        self._leading = False
        self._lock = threading.Lock()
        """Held for the list and for who leads, never while something is waited for."""
        self._busy = threading.Lock()
        """Held while the connection is used."""
        self._closed = False
        self._thread: Background | None = None
        """Leads for those who do not wait; made when the first of them comes."""
        self._due = self._gap = 0.0
        """When the thread may begin its next group (monotonic clock), and how long after the one before."""
        self._submitted = threading.Event()
        self.commits = 0
        """Transactions so far."""

    def run(self, work: Work[T], need: Need = Need.GROWING) -> T:
        """Do the work and commit it, together with others'; its result, when that is durable.

        Raises what the work raises, FullError, LockedError, JournalError; then nothing of it is stored.
        """
        return cast(T, self.run_batched(_alone, work, need))

    def run_batched(self, batch: Batch, item: Any, need: Need = Need.GROWING) -> Any:
        """`run` for an item of a batch."""
        written: Written[Any] = Written(batch, item, need, None)
        wake = written.wake
        assert wake is not None
        with self._lock:
            self._list.append(written)
        while not written.done:
            if self._take_the_lead():
                self._lead()
            elif not written.done:
                wake.acquire()
        return written.result()

    def submit(self, batch: Batch, item: Any, notify: Callable[[], None], need: Need = Need.GROWING) -> Written[Any]:
        """Have an item of a batch done by the thread; `notify` is called there when it is."""
        written: Written[Any] = Written(batch, item, need, notify)
        with self._lock:
            if self._closed:
                written.fail(self._is_closed())
            else:
                self._list.append(written)
                if self._thread is None:
                    self._thread = Background("oxiseq-journal", self._lead_for_all, vital=True)
                    self._threads.add(self._thread).start()
        if written.done:
            _notified(notify)
        elif not self._submitted.is_set():
            self._submitted.set()
        return written

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
        return self._keep_free > 0 and room.free(self._path.parent) < self._keep_free * part

    def _lacking(self, need: Need) -> str:
        """Why there is no room for such works, empty if there is. (Of a file without a limit SQLite counts no pages
        here: its limit is then some four thousand million.)"""
        if self._short_of(need):
            return f"less than {self._keep_free:,} bytes are free"
        if self._most_pages > _UNLIMITED:
            return ""
        used, spare = (
            int(self._connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count")
        )
        left = self._most_pages - used + spare
        return "the file has reached its maximum size" if left * _RESERVE * 2 < self._most_pages * need else ""

    def close(self) -> None:
        """Wait for the running commit; later writes are refused."""
        with self._busy, self._lock:
            self._closed = True
            self._connection.close()
        self._submitted.set()
        if self._thread is not None:
            self._thread.join()

    def _lead_for_all(self) -> None:
        """The thread's turn: commit what is there; the last one is behind the end."""
        assert self._thread is not None
        if (rest := self._due - time.monotonic()) > 0:
            time.sleep(rest)  # first, for who submits meanwhile has nobody to wake
        self._submitted.wait(_LONGEST_GAP if self._closed else None)  # another one may lead the last group
        self._submitted.clear()
        begun = time.monotonic()
        if self._take_the_lead():
            many = True  # also where it fails: who comes later shall not wait for ever
            try:
                many = self._lead() > 1
            finally:
                gap = self._gap
                self._gap = _LONGEST_GAP if many or self._list else gap / 2 if gap > _SHORTEST_GAP else 0.0
                self._due = begun + self._gap
        with self._lock:
            if self._closed and not self._list:
                self._thread.end()

    def _take_the_lead(self) -> bool:
        """Whether the calling thread leads now: it must, then."""
        with self._lock:
            leads = not self._leading and bool(self._list)
            self._leading |= leads
        return leads

    def _lead(self) -> int:
        """Commit what is on the list, a group's worth at most; how many works that was."""
        with self._lock:
            group = [self._list.popleft() for _ in range(min(len(self._list), _GROUP))]
        try:
            with self._busy:
                self._commit(group)
        finally:
            with self._lock:
                self._leading = False
                for written in (*group, *list(self._list)[:1]):
                    if written.wake is not None and written.wake.locked():
                        written.wake.release()
                if self._list and self._list[0].wake is None:
                    self._submitted.set()
            for written in group:
                if written.notify is not None:
                    _notified(written.notify)
        return len(group)

    def _is_closed(self) -> JournalError:
        return JournalError(f"{self._path}: the journal is closed")

    def _commit(self, group: list[Written[Any]]) -> None:
        if self._closed:
            for ticket in group:
                ticket.fail(self._is_closed())
            return
        try:
            group = self._with_room(group)
            if group:
                self._attempt(group)
        except sqlite3.Error as error:
            if len(group) == 1:
                group[0].fail(journal_error(error, self._path))
            else:  # one of them may be too large, or at fault otherwise: the others shall not suffer
                for ticket in group:
                    self._commit([ticket])
        except OSError as error:  # of a disk that does not report its free space
            for ticket in group:
                ticket.fail(JournalError(f"{self._path}: {error}"))
        finally:
            for ticket in group:
                if not ticket.done:
                    ticket.fail(JournalError(f"{self._path}: the write was interrupted: its data may be stored or not"))

    def _with_room(self, group: list[Written[Any]]) -> list[Written[Any]]:
        """Those for which there is room; the others are refused. Raises sqlite3.Error, OSError."""
        refused: dict[Need, str] = {}
        for need in (Need.GROWING, Need.PROGRESS):
            if not (lacking := self._lacking(need)):
                break  # what needs less finds room, too: free disk space is read once a commit
            refused[need] = lacking
        for ticket in group:
            if ticket.need in refused:
                ticket.fail(FullError(f"{self._path}: no room left: {refused[ticket.need]}"))
        return [ticket for ticket in group if not ticket.done]

    def _attempt(self, group: list[Written[Any]]) -> None:
        """All works of the group in one transaction. Raises sqlite3.Error, then nothing of it is stored.

        A work that raises is found out by doing all again, each behind a savepoint: without savepoints there are fewer
        statements, and at each of them another thread may take its turn.
        """
        with self._transaction() as connection:
            try:
                for batch, of_kind in groupby(group, lambda written: written.batch):
                    _do(connection, batch, list(of_kind))
            except sqlite3.Error:
                raise
            except Exception:
                connection.execute("ROLLBACK")
                connection.ends = {}
                self._begin()
                self._one_by_one(group)
        self.commits += 1
        for written in group:
            written.done = True

    def _one_by_one(self, group: list[Written[Any]]) -> None:
        """Within a transaction: the works that do not raise; of the others what they raise is kept."""
        connection = self._connection
        for written in group:
            connection.execute("SAVEPOINT work")
            arrived = len(connection.arrived)
            try:
                _do(connection, written.batch, [written])
            except sqlite3.Error:
                raise
            except Exception as error:
                connection.execute("ROLLBACK TO work")
                connection.ends = {}
                del connection.arrived[arrived:]
                written.keep(error)
            connection.execute("RELEASE work")

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.arrived, self._connection.forgotten = [], False

    @contextmanager
    def _transaction(self) -> Iterator[Writing]:
        """Committed at the end, taken back by an exception."""
        connection = self._connection
        try:
            self._begin()
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            connection.ends = {}
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise
        if connection.forgotten:
            self._recent.forget()
        try:
            self._recent.add(connection.arrived)
        except Exception:  # it is stored all the same
            LOG.exception("%s: that entries have come could not be told", self._path)


def _notified(notify: Callable[[], None]) -> None:
    """One that fails is nobody else's concern: the others wait for their own."""
    try:
        notify()
    except Exception:
        LOG.exception("who waits for a write could not be notified")


def _do(connection: Writing, batch: Batch, works: list[Written[Any]]) -> None:
    """Works of one kind, and what becomes of them if the transaction is committed."""
    for written, outcome in zip(works, batch(connection, [each.item for each in works]), strict=True):
        written.keep(outcome)
