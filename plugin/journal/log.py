"""The event log: batches under stable offsets that increase by one per event, per stream from 0 on.

Punctuations ("no event before t will come any more") are in it too, at the offset of the next event and without one
of their own: what a query found depends on them, so a replay needs them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal.appending import Appended, Appends, append_all, is_known, receipt, session_last
from oxiseq.journal.entry import Entry
from oxiseq.journal.errors import CursorError, DamagedBatchError, DamagedError, FullError, JournalError
from oxiseq.journal.events import pack_events, unpack_events
from oxiseq.journal.names import last_position, stream_id
from oxiseq.journal.reader import PAGE_BYTES, ROW_BYTES, Reader, page
from oxiseq.journal.recent import Recent
from oxiseq.journal.retention import Old, Retention, delete, expired, oldest
from oxiseq.journal.writer import Need, Writer, Written

BATCH_EVENTS: Final = 8192
"""Events after which small batches are no longer put together for reading."""
REMEMBER: Final = 86_400_000_000
"""For how long (µs) at least a batch id is known after its batch has come."""
_ALWAYS: Final = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Logged:
    """Events of a stream with their offsets, i64[n] ascending; or without any the punctuation `advance` (µs)."""

    stream: str
    offset: NDArray[np.int64]
    batch: EventBatch
    advance: int | None = None


class Appending:
    """A running append: `done` when it is durable or refused."""

    def __init__(self, append: Appends, written: Written[Appended], reader: Reader) -> None:
        self._append, self._written, self._reader = append, written, reader

    @property
    def done(self) -> bool:
        """Whether `result` may be called."""
        return self._written.done

    def result(self) -> Appended:
        """What `EventLog.append` answers, and raises."""
        return _unless_stored(self._written.result, self._append, self._reader)


class EventLog:
    """Append, read, replay, delete what is old. Safe for many threads; but what is given a TermDictionary uses it, so
    that dictionary's lock must be held meanwhile (for an iterator: during each step)."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int], recent: Recent) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._recent = recent
        self._together = append_all(clock)

    # --- appending ----------------------------------------------------------------------------------

    def append(
        self,
        stream: str,
        blob: bytes,
        batch_id: str | None = None,
        digest: bytes | None = None,
        advance: int | None = None,
    ) -> Appended:
        """Store a batch that `pack_events` has made, and with `advance` a punctuation (µs) after it; returns when it is
        durable.

        With `batch_id` it is idempotent: the same id again, also after a restart, answers the same offsets and stores
        nothing; ids are known for a day at least. `digest` identifies the body (default: a hash of the blob).
        Raises UnknownError, ConflictError for another body under a known id, FullError, DamagedError.
        """
        return self.store(Appends.of(stream, blob, batch_id, digest, advance))

    def append_on_arrival(
        self, stream: str, blob: bytes, batch_id: str | None = None, digest: bytes | None = None
    ) -> Appended:
        """`append` for events of which each gets the time of its arrival: the clock's, or one µs more than the latest
        time in the stream where that is not earlier. A punctuation follows, so their instants are complete. Raises like
        `append`, and ConflictError for a stream at the end of time."""
        return self.store(Appends.of(stream, blob, batch_id, digest, on_arrival=True))

    def append_batch(
        self, stream: str, batch: EventBatch, terms: TermDictionary, batch_id: str | None = None
    ) -> Appended:
        """`append` for events coded in `terms`."""
        return self.append(stream, pack_events(batch, terms), batch_id)

    def advance(self, stream: str, time: int) -> int:
        """Store a punctuation: no event before `time` (µs) will come; returns the offset that it precedes."""
        return self.store(Appends(stream, advance=time)).first

    def store(self, append: Appends) -> Appended:
        """Do an append; returns when it is durable. Raises as `append` does."""
        return _unless_stored(lambda: self._writer.run_batched(self._together, append), append, self._reader)

    def submit(self, append: Appends, notify: Callable[[], None]) -> Appending:
        """Begin an append, without waiting; `notify` is called when it is done, by another thread."""
        return Appending(append, self._writer.submit(self._together, append, notify), self._reader)

    def knows(self, stream: str, batch_id: str, digest: bytes | None = None) -> bool:
        """Whether a batch of this id is stored, and still known; with `digest`, only one of this body."""
        with self._reader.snapshot() as connection:
            return is_known(connection, stream, batch_id, digest)

    def session(self, stream: str, name: str) -> int:
        """The number of the last item of a client's session that is stored; 0 where it is not known (a session is
        known for a day at least after its last item). Raises UnknownError."""
        with self._reader.snapshot() as connection:
            stream_id(connection, stream)
            return session_last(connection, stream, name) or 0

    def on_arrival(self, notify: Callable[[int], None]) -> None:
        """Have `notify` called whenever events have been stored, with their number (0: a punctuation)."""
        self._recent.on_arrival = notify

    # --- reading ------------------------------------------------------------------------------------

    def read(
        self,
        stream: str,
        terms: TermDictionary,
        since: int | None = None,
        until: int | None = None,
        start: int | None = None,
        stop: int | None = None,
    ) -> Iterator[Logged]:
        """The events with offsets in since:until and times (µs) in start:stop, in order of their offsets.

        Without `since` from the first that is kept. Ends at what was the end when it got there. Raises UnknownError,
        DamagedBatchError when it comes to a batch that cannot be read and, when what follows `since` or the place
        reached has been deleted, CursorError.
        """
        for part in self._parts(stream, since, until, start, stop):
            for unpacked in _readable(part, terms):
                logged = _restricted(unpacked, since, until, start, stop)
                if len(logged.batch):
                    yield logged

    def replay(self, offsets: Mapping[str, int], terms: TermDictionary) -> Iterator[Logged]:
        """Events and punctuations of several streams, each from its offset on, in the order in which they arrived.

        Raises like `read`.
        """
        for entries in self._arrivals(offsets):
            for (stream, events), run in groupby(entries, key=lambda e: (e.stream, e.count > 0)):
                if not events:
                    for entry in run:
                        yield Logged(stream, np.zeros(0, np.int64), EventBatch.empty(), entry.time)
                    continue
                for part in _batched(run):
                    yield _restricted(_unpacked(part, terms), offsets[stream], None, None, None)

    def entries(self, offsets: Mapping[str, int]) -> Iterator[Entry]:
        """What `replay` reads, as it is stored: no dictionary is needed. The first batch of a stream may begin before
        the offset given."""
        for found in self._arrivals(offsets):
            yield from found

    def follow(self, after: int, most: int = PAGE_BYTES) -> list[Entry]:
        """The entries of all streams behind position `after`, in order of arrival: about `most` bytes of them; none
        when that was the last one."""
        if (recent := self._recent.after(after, most)) is not None:
            return recent
        with self._reader.snapshot() as connection:
            cursor = connection.execute(
                "SELECT e.id, iri, e.first, count, max_time, data FROM entry e NOT INDEXED"
                " JOIN stream ON stream.id = e.stream WHERE e.id > ? ORDER BY e.id",
                (after,),
            )
            rows, _ = page(cursor, lambda row: len(row[5]) + ROW_BYTES, most)
        return [Entry(iri, first, count, time, data, at) for at, iri, first, count, time, data in rows]

    def position(self) -> int:
        """That of the last entry; 0 before the first."""
        with self._reader.snapshot() as connection:
            return last_position(connection)

    def before(self, time: int) -> int:
        """The position of the last entry that arrived before a time (µs since 1970), 0 if none is kept."""
        row = self._reader.row("SELECT max(id) FROM entry WHERE received < ?", (time,))
        return 0 if row is None or row[0] is None else int(row[0])

    def reaches(self, streams: Iterable[str], position: int) -> bool:
        """Whether every entry of these streams behind a position is kept: nothing of a stream has been deleted, or an
        entry at or before the position is still there. Raises UnknownError."""
        with self._reader.snapshot() as connection:
            for iri in streams:
                number, first, _ = stream_id(connection, iri)
                kept = connection.execute(
                    "SELECT 1 FROM entry WHERE stream = ? AND id <= ? LIMIT 1", (number, position)
                ).fetchone()
                if first > 0 and kept is None:
                    return False
        return True

    def _arrivals(self, offsets: Mapping[str, int]) -> Iterator[list[Entry]]:
        last, ended = -1, False
        at = dict(offsets)
        while not ended:
            with self._reader.snapshot() as connection:
                ids = {}
                for iri, offset in at.items():
                    number, first, _ = stream_id(connection, iri)
                    _check_kept(iri, offset, first)
                    ids[number] = iri
                if last < 0:
                    last = min((_before(connection, n, at[iri]) for n, iri in ids.items()), default=0)
                marks = ", ".join("?" * len(ids))
                cursor = connection.execute(  # NOT INDEXED: in order of arrival, not stream by stream
                    "SELECT id, stream, first, count, max_time, data FROM entry NOT INDEXED"
                    f" WHERE id > ? AND stream IN ({marks}) ORDER BY id",
                    (last, *ids),
                )
                rows, ended = page(cursor, lambda row: len(row[5]) + ROW_BYTES, PAGE_BYTES)
            found = []
            for number_, stream, first, count, time, data in rows:
                last, iri = number_, ids[stream]
                if first + count > at[iri] or (count == 0 and first >= at[iri]):
                    found.append(Entry(iri, first, count, time, data))
                    at[iri] = first + count
            yield found

    def _parts(
        self, stream: str, since: int | None, until: int | None, start: int | None, stop: int | None
    ) -> Iterator[list[Entry]]:
        at, ended = since, False
        while not ended:
            with self._reader.snapshot() as connection:
                number, first, _ = stream_id(connection, stream)
                at = first if at is None else at
                _check_kept(stream, at, first)
                found = connection.execute(
                    "SELECT first FROM entry WHERE stream = ? AND first <= ? ORDER BY first DESC LIMIT 1", (number, at)
                ).fetchone()
                cursor = connection.execute(
                    "SELECT first, count, max_time, data FROM entry INDEXED BY entry_place WHERE stream = ?"
                    " AND first >= ? AND first < ? AND count > 0 AND first + count > ?"
                    " AND min_time < ? AND max_time >= ? ORDER BY first, id",
                    (
                        number,
                        at if found is None else found[0],
                        _ALWAYS if until is None else until,
                        at,
                        _ALWAYS if stop is None else stop,
                        -_ALWAYS if start is None else start,
                    ),
                )
                rows, ended = page(cursor, lambda row: len(row[3]) + ROW_BYTES, PAGE_BYTES)
            if rows:
                at = rows[-1][0] + rows[-1][1]
            yield from _batched(Entry(stream, *row) for row in rows)

    # --- retention ----------------------------------------------------------------------------------

    def trim(self, stream: str, now: int) -> int:
        """Delete a slice of batches that are too old or too many, and that no checkpoint needs; how many."""

        def work(connection: sqlite3.Connection) -> int:
            number, _, following = stream_id(connection, stream)
            keep = Retention(
                *connection.execute("SELECT keep_time, keep_count FROM stream WHERE id = ?", (number,)).fetchone()
            )
            held = connection.execute("SELECT min(next) FROM checkpoint_offset WHERE stream = ?", (number,)).fetchone()
            gone = []
            for old in expired(oldest(connection, "entry", "stream", number), keep, now, following):
                if held[0] is not None and not _passed(old, held[0]):
                    break
                gone.append(old)
            if gone:
                delete(connection, "entry", gone)
                connection.execute(
                    "UPDATE stream SET first = ? WHERE id = ?", (gone[-1].first + gone[-1].count, number)
                )
            return len(gone)

        return self._writer.run(work, Need.DELETING)

    def forget(self, now: int, slice_: int = 1000) -> int:
        """Forget a slice of batch ids, and of sessions, that came more than a day ago; how many."""

        def work(connection: sqlite3.Connection) -> int:
            rows = connection.execute("SELECT id, received FROM receipt ORDER BY id LIMIT ?", (slice_,)).fetchall()
            old = [row[0] for row in rows if row[1] < now - REMEMBER]
            connection.executemany("DELETE FROM receipt WHERE id = ?", [(number,) for number in old])
            sessions = connection.execute(
                "DELETE FROM session WHERE (stream, name) IN"
                " (SELECT stream, name FROM session WHERE changed < ? LIMIT ?)",
                (now - REMEMBER, slice_),
            )
            return max(len(old), sessions.rowcount)

        return self._writer.run(work, Need.DELETING)


def _unless_stored(result: Callable[[], Appended], append: Appends, reader: Reader) -> Appended:
    """Data that is already stored is answered even if the disk is full."""
    try:
        return result()
    except FullError:
        if append.batch_id is None:
            raise
        with reader.snapshot() as connection:
            if (known := receipt(connection, append)) is None:
                raise
            return known


def _passed(old: Old, held: int) -> bool:
    """Whether a checkpoint at offset `held` is past a batch; a punctuation just there may still be needed."""
    return old.first + old.count <= held if old.count else old.first < held


def _check_kept(stream: str, offset: int, first: int) -> None:
    if offset < first:
        raise CursorError(f"events of <{stream}>", offset, first)


def _before(connection: sqlite3.Connection, stream: int, offset: int) -> int:
    """An id up to which nothing of a stream is needed from `offset` on."""
    batch = connection.execute(
        "SELECT first FROM entry WHERE stream = ? AND first <= ? AND count > 0 ORDER BY first DESC LIMIT 1",
        (stream, offset),
    ).fetchone()
    begin = 0 if batch is None else batch[0]
    entry = connection.execute(
        "SELECT id FROM entry WHERE stream = ? AND first >= ? ORDER BY first, id LIMIT 1", (stream, begin)
    ).fetchone()
    return _ALWAYS if entry is None else int(entry[0]) - 1


def _batched(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Entries in groups, small ones together."""
    group: list[Entry] = []
    events = 0
    for entry in entries:
        group.append(entry)
        events += entry.count
        if events >= BATCH_EVENTS:
            yield group
            group, events = [], 0
    if group:
        yield group


def _unpacked(entries: Sequence[Entry], terms: TermDictionary) -> Logged:
    batch = unpack_events([entry.data for entry in entries], terms)
    if len(batch) != sum(entry.count for entry in entries):
        raise DamagedError("a damaged blob: it holds another number of events than was stored")
    numbers = [np.arange(entry.first, entry.first + entry.count) for entry in entries]
    return Logged(entries[0].stream, np.concatenate(numbers), batch)


def _readable(entries: Sequence[Entry], terms: TermDictionary) -> Iterator[Logged]:
    """The events of batches of a stream, up to the first that cannot be read. Raises DamagedBatchError there."""
    try:
        whole = [_unpacked(entries, terms)]
    except JournalError:
        whole = []
    yield from whole
    for entry in () if whole else entries:
        try:
            part = _unpacked([entry], terms)
        except JournalError as error:
            what = f"events of <{entry.stream}>"
            raise DamagedBatchError(what, entry.first, entry.first + entry.count, str(error)) from error
        yield part


def _restricted(logged: Logged, since: int | None, until: int | None, start: int | None, stop: int | None) -> Logged:
    """The events within the bounds."""
    mine = np.ones(len(logged.batch), np.bool_)
    for values, low, high in ((logged.offset, since, until), (logged.batch.time, start, stop)):
        if low is not None:
            mine &= values >= low
        if high is not None:
            mine &= values < high
    if mine.all():
        return logged
    index = np.flatnonzero(mine)
    return Logged(logged.stream, logged.offset[index], logged.batch.take(index))
