"""The journal: one file with all that must outlive the process."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final

from oxiseq.engine.background import Backgrounds
from oxiseq.engine.events.write import replacing
from oxiseq.journal.answers import KbAnswers
from oxiseq.journal.appending import Appends, append_all
from oxiseq.journal.checkpoints import Checkpoints
from oxiseq.journal.errors import JournalError, journal_error
from oxiseq.journal.log import EventLog
from oxiseq.journal.matches import Found, MatchLog, storing
from oxiseq.journal.names import last_position
from oxiseq.journal.quarantine import QuarantinedEntries
from oxiseq.journal.queries import Queries
from oxiseq.journal.reader import Reader
from oxiseq.journal.recent import Recent
from oxiseq.journal.schema import RECEIVED, Durability, Writing, limit_size, lock, open_reader, open_writer
from oxiseq.journal.sinks import SinkRows
from oxiseq.journal.steady import SteadyClock, wall
from oxiseq.journal.streams import Streams
from oxiseq.journal.verify import faults
from oxiseq.journal.wal import WalFrames, look, lost
from oxiseq.journal.writer import Need, Writer
from oxiseq.options.room import KEEP_FREE

LOG: Final = logging.getLogger("oxiseq.journal")
FILE_NAME: Final = "journal.oxiseq"
"""The file's name in a store's folder."""


def microseconds() -> int:
    """Now, in microseconds since 1970."""
    return wall()


class Journal:
    """Streams, event log, queries, matches, checkpoints, answers of a KB elsewhere: an SQLite file. Safe for threads.

    One process writes at a time; others may open it with `read_only` meanwhile. `streams`, `log`, `queries`, `matches`,
    `checkpoints`, `quarantine`, `sinks` and `kb_answers` do the work.

    `max_size`: bytes that the file may have (those of the WAL, some 8 MB, come on top); beyond it writes are refused
    with FullError until `retain` has made room. `keep_free`: bytes of the disk that are left for that; with less, only
    what deletes is written (less than twice the WAL, and deleting may fail too).

    Raises LockedError, DamagedError, VersionError or JournalError, which name the file.
    """

    def __init__(
        self,
        path: str | Path,
        durability: Durability = "full",
        *,
        read_only: bool = False,
        max_size: int | None = None,
        keep_free: int = KEEP_FREE,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """`clock`: microseconds since 1970; by default the system's, without its jumps."""
        clock = SteadyClock() if clock is None else clock
        self.path = Path(path)
        if durability not in ("full", "normal"):
            raise JournalError(f"the durability {durability!r} is not known; known: full, normal")
        self._clock = clock
        self.lost = ""
        """What of its last changes was lost to damage before it was opened, empty if nothing is known to be."""
        with ExitStack() as opened:
            if read_only:
                writer = opened.enter_context(closing(open_reader(self.path)))  # refuses to write
            else:
                if not self.path.parent.is_dir():
                    raise JournalError(f"{self.path}: the folder does not exist")
                opened.enter_context(closing(lock(self.path)))
                before = _wal(self.path)
                writer = opened.enter_context(closing(open_writer(self.path, durability)))
                if max_size is not None:
                    limit_size(writer, max_size)
                self.lost = _lost(before, writer, self.path)
            self._opened = opened.pop_all()
        recent = Recent(last_position(writer))
        self.threads = Backgrounds()
        """The background threads that work with it, its own among them."""
        self._writer = Writer(writer, self.path, recent, self.threads, 0 if read_only else keep_free)
        self._reader = Reader(self.path)
        parts = (self._writer, self._reader, clock)
        self.streams = Streams(*parts)
        self.log = EventLog(*parts, recent)
        self.queries = Queries(*parts)
        self.matches = MatchLog(*parts)
        self.checkpoints = Checkpoints(*parts)
        self.kb_answers = KbAnswers(*parts)
        self.quarantine = QuarantinedEntries(*parts)
        self.sinks = SinkRows(*parts)

    def emit(
        self,
        found: Sequence[Found],
        events: Sequence[tuple[str, bytes]] = (),
        complete: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Store matches, as `matches.append` does, packed events that they have led to (stream, blob), and up to when
        (µs) streams are complete then, all or none.

        Raises UnknownError, ConflictError, DamagedError, FullError.
        """
        store = storing(tuple(found), self._clock)
        appends = [Appends.of(stream, blob) for stream, blob in events]
        appends += [Appends(stream, advance=time) for stream, time in complete.items()]
        together = append_all(self._clock)

        def work(connection: Writing) -> None:
            store(connection)
            for outcome in together(connection, appends):
                if isinstance(outcome, JournalError):
                    raise outcome

        self._writer.run(work, Need.PROGRESS)

    # --- upkeep -------------------------------------------------------------------------------------

    def retain(self) -> int:
        """Delete what retention allows to delete; how many batches. To be called every few seconds or so."""
        now, deleted = self._clock(), 0
        self._follow_jumps()
        for stream in self.streams.all():
            while gone := self.log.trim(stream.iri, now):
                deleted += gone
        for query in self.queries.all():
            while query.first < query.next and (gone := self.matches.trim(query.name, now)):
                deleted += gone
        while self.log.forget(now):
            pass
        self._writer.tidy()
        return deleted

    def _follow_jumps(self) -> None:
        """Where the clock has gone over to another time, what was received before is as old as it was."""
        steps = self._clock.take_steps() if isinstance(self._clock, SteadyClock) else []
        for until, by in steps:

            def work(connection: sqlite3.Connection, until: int = until, by: int = by) -> None:
                for table, column in RECEIVED:
                    connection.execute(f"UPDATE {table} SET {column} = {column} + ? WHERE {column} <= ?", (by, until))

            self._writer.run(work, Need.DELETING)

    @property
    def now(self) -> int:
        """Its clock (µs since 1970)."""
        return self._clock()

    def backup(self, path: str | Path) -> None:
        """Copy the file as it is at one moment, while it is in use; the copy is a journal like this one.

        It appears, or takes the place of a file of that name, when it is complete. Raises JournalError, OSError.
        """
        target = Path(path)
        if target.resolve() == self.path.resolve():
            raise JournalError(f"{path}: is the journal itself")
        with replacing(target) as part:
            try:
                with closing(sqlite3.connect(part)) as copy, closing(open_reader(self.path)) as source:
                    source.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")  # one file; it is WAL again when it is opened
            except sqlite3.Error as error:
                raise journal_error(error, target) from error
            flush(part)
        flush(target.absolute().parent)

    def verify(self) -> list[str]:
        """What is wrong with the whole file: empty if nothing is."""
        try:
            with self._reader.snapshot() as connection:
                return list(faults(connection))
        except JournalError as error:
            return [str(error)]

    @property
    def size(self) -> int:
        """Bytes of the file and of what belongs to it."""
        names = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in names if file.exists())

    @property
    def full(self) -> bool:
        """Whether less of the disk is free than is to be left."""
        return self._writer.short

    @property
    def commits(self) -> int:
        """Transactions so far: fewer than writes, where threads share them."""
        return self._writer.commits

    # --- the end ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for the running commit and close the file. May be called twice."""
        self._reader.close()
        self._writer.close()
        self._opened.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Journal {self.path}>"


def _wal(path: Path) -> WalFrames:
    try:
        return look(path)
    except OSError as error:
        raise JournalError(f"{path}: its write-ahead log cannot be opened: {error.strerror or error}") from error


def _lost(before: WalFrames, connection: sqlite3.Connection, path: Path) -> str:
    try:
        found = lost(before, connection)
    except sqlite3.Error as error:
        raise journal_error(error, path) from error
    if found:
        LOG.error("%s: %s", path, found)
    return found and f"{path.name}: {found}"


def flush(path: Path) -> None:
    """Bring a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
