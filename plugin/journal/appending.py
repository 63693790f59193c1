"""Batches and punctuations at the ends of streams, many in one transaction with a few statements.

All that the group needs to know of streams and batch ids is read first; offsets, arrival times and what is refused
are decided here, in order of arrival; then entries, streams and batch ids are written, a statement each.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from oxiseq.engine.events.time import LAST_TIME
from oxiseq.grammar.records import dataclass
from oxiseq.journal.entry import Entry
from oxiseq.journal.envelope import Summary, summary
from oxiseq.journal.errors import ConflictError, JournalError
from oxiseq.journal.events import KIND, stamped
from oxiseq.journal.names import unknown_stream
from oxiseq.journal.schema import Writing

Outcome: TypeAlias = "Appended | JournalError"
_VALUES: Final = 4096
"""Rows of a statement at most: SQLite takes some 32,000 values."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The offsets first, ..., first + count - 1; `repeated`: they were stored under this batch id before.

    largest, punctuation: the stream's largest time and punctuation (µs) before these events; None: there was none.
    time: what an event was stamped with on its arrival.
    """

    first: int
    count: int
    repeated: bool = False
    largest: int | None = field(default=None, compare=False)
    punctuation: int | None = field(default=None, compare=False)
    time: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Session:
    """The place of an append in what a client numbers: it is stored if the session is at `after`, which then moves
    at `last`. So nothing is stored twice, or without what came before it, whatever is sent again."""

    name: str
    after: int
    last: int


@dataclass(frozen=True, slots=True)
class Appends:
    """What is to be stored: a batch that `pack_events` has made (`head` is what its head says), a punctuation `advance`
    (µs), or one after the other; or nothing but the place that a `session` has come to. `on_arrival`: the events are
    stamped when they are stored; see EventLog."""

    stream: str
    blob: bytes = b""
    head: Summary | None = None
    batch_id: str | None = None
    digest: bytes = b""
    advance: int | None = None
    on_arrival: bool = False
    session: Session | None = None

    @classmethod
    def of(
        cls,
        stream: str,
        blob: bytes,
        batch_id: str | None = None,
        digest: bytes | None = None,
        advance: int | None = None,
        *,
        on_arrival: bool = False,
        session: Session | None = None,
    ) -> Appends:
        """Of a batch; its `digest` under a batch id is that of the blob, if none is given. Raises DamagedError."""
        head = summary(KIND, blob)  # its checksum is enough: `pack_events` makes no other
        if batch_id is not None and digest is None:
            digest = hashlib.blake2b(blob, digest_size=16).digest()
        return cls(stream, blob, head, batch_id, digest or b"", advance, on_arrival, session)


@dataclass(slots=True)
class _End:
    """The end of a stream, with what has been appended so far."""

    id: int
    next: int
    largest: int | None
    punctuation: int | None


def append_all(clock: Callable[[], int]) -> Callable[[Writing, Sequence[Appends]], list[Outcome]]:
    """A writer's batch: for each append what became of it, or why it is refused (UnknownError, ConflictError)."""

    def work(connection: Writing, appends: Sequence[Appends]) -> list[Outcome]:
        group = _Group(connection, appends, clock())
        found = [group.append(each) for each in appends]
        group.store()
        return found

    return work


class _Group:
    """Appends of one transaction."""

    def __init__(self, connection: Writing, appends: Sequence[Appends], now: int) -> None:
        self._connection, self._now = connection, now
        self._ends = _ends(connection, list({each.stream for each in appends}))
        self._known = _receipts(connection, [each for each in appends if each.batch_id is not None])
        self._entries: list[tuple[int, int, Entry]] = []
        """Each with its stream's id and the smallest time in it."""
        self._changed: set[str] = set()
        self._receipts: list[tuple[int, str, int, int, bytes, int]] = []
        self._sessions = _sessions(connection, [each for each in appends if each.session is not None])
        self._moved: dict[tuple[int, str], int] = {}
        """(stream's id, session) → where it has come to."""

    def append(self, given: Appends) -> Outcome:
        """Decide about one, which comes after those before."""
        end = self._ends.get(given.stream)
        if given.batch_id is not None:
            known = self._known.get((given.stream, given.batch_id))
            if known is not None:
                return _repeated(given, *known)
        if end is None:
            return unknown_stream(given.stream)
        if given.session is not None and (stood := self._stood(given.stream, given.session)) != given.session.after:
            name, after = given.session.name, given.session.after
            return ConflictError(
                f"the session {name!r} is at {stood}, not at {after}: another connection has continued it, or"
                " what came before could not be stored"
            )
        appended = self._stamp(given, end) if given.on_arrival else self._put(given, end)
        if given.batch_id is not None and isinstance(appended, Appended):
            receipt = (appended.first, appended.count, given.digest)
            self._known[given.stream, given.batch_id] = receipt
            self._receipts.append((end.id, given.batch_id, *receipt, self._now))
        if given.session is not None and isinstance(appended, Appended):
            self._sessions[given.stream, given.session.name] = given.session.last
            self._moved[end.id, given.session.name] = given.session.last
        return appended

    def _stood(self, stream: str, session: Session) -> int:
        return self._sessions.get((stream, session.name), 0)

    def _put(self, given: Appends, end: _End) -> Appended:
        first, count = end.next, 0 if given.head is None else given.head.count
        appended = Appended(first, count, False, end.largest, end.punctuation)
        if given.head is not None and count:
            self._add(given.stream, end, count, given.head.min_time, given.head.max_time, given.blob)
        if given.advance is not None:
            self._add(given.stream, end, 0, given.advance, given.advance, b"")
        return appended

    def _stamp(self, given: Appends, end: _End) -> Outcome:
        first, largest, punctuation = end.next, end.largest, end.punctuation
        count = 0 if given.head is None else given.head.count
        time = max([self._now, *(latest + 1 for latest in (largest, punctuation) if latest is not None)])
        last = time + count - 1
        if last > LAST_TIME:
            return ConflictError(
                f"the stream <{given.stream}> has reached the end of the year 9999: no event can be later"
            )
        self._add(given.stream, end, count, time, last, stamped(given.blob, time))
        self._add(given.stream, end, 0, last + 1, last + 1, b"")
        return Appended(first, count, False, largest, punctuation, time)

    def _add(self, stream: str, end: _End, count: int, low: int, high: int, blob: bytes) -> None:
        self._entries.append((end.id, low, Entry(stream, end.next, count, high, blob)))
        end.next += count
        if count:
            end.largest = high if end.largest is None else max(end.largest, high)
        else:
            end.punctuation = high if end.punctuation is None else max(end.punctuation, high)
        self._changed.add(stream)

    def store(self) -> None:
        """Write all that was decided."""
        connection, now = self._connection, self._now
        if self._entries:
            rows = [(id_, e.first, e.count, low, e.time, now, e.data) for id_, low, e in self._entries]
            last = _insert(connection, "entry (stream, first, count, min_time, max_time, received, data)", rows)
            for number, (_, _, entry) in enumerate(self._entries, last - len(rows) + 1):
                placed = Entry(entry.stream, entry.first, entry.count, entry.time, entry.data, number)
                connection.arrived.append(placed)
        if self._receipts:
            _insert(connection, "receipt (stream, name, first, count, digest, received)", self._receipts)
        for (stream_id, name), last in self._moved.items():
            connection.execute(
                "INSERT INTO session VALUES (?, ?, ?, ?)"
                " ON CONFLICT (stream, name) DO UPDATE SET last = excluded.last, changed = excluded.changed",
                (stream_id, name, last, now),
            )
        for stream in self._changed:
            end = self._ends[stream]
            connection.execute(
                "UPDATE stream SET next = ?, largest = ?, punctuated = ? WHERE id = ?",
                (end.next, end.largest, end.punctuation, end.id),
            )
            connection.ends[stream] = end.id, end.next, end.largest, end.punctuation


def is_known(connection: sqlite3.Connection, stream: str, batch_id: str, digest: bytes | None = None) -> bool:
    """Whether something is stored under a batch id; with `digest`, whether that body is."""
    row = connection.execute(
        "SELECT digest FROM stream JOIN receipt r ON r.stream = stream.id WHERE iri = ? AND name = ?",
        (stream, batch_id),
    ).fetchone()
    return row is not None and digest in (None, row[0])


def receipt(connection: sqlite3.Connection, given: Appends) -> Appended | None:
    """What is stored under the batch id of an append. Raises ConflictError for another body."""
    known = _receipts(connection, [given]).get((given.stream, given.batch_id or ""))
    if known is None:
        return None
    found = _repeated(given, *known)
    if isinstance(found, JournalError):
        raise found
    return found


def _repeated(given: Appends, first: int, count: int, digest: bytes) -> Outcome:
    if digest != given.digest:
        return ConflictError(f"the batch id {given.batch_id!r} was used with another body: give a new batch a new id")
    return Appended(first, count, repeated=True)


def _ends(connection: Writing, streams: Sequence[str]) -> dict[str, _End]:
    """Of the streams that there are."""
    if unknown := [iri for iri in streams if iri not in connection.ends]:
        marks = ", ".join("?" * len(unknown))
        rows = connection.execute(
            f"SELECT iri, id, next, largest, punctuated FROM stream WHERE iri IN ({marks})", unknown
        ).fetchall()
        connection.ends.update((iri, (number, *end)) for iri, number, *end in rows)
    return {iri: _End(*connection.ends[iri]) for iri in streams if iri in connection.ends}


def _receipts(
    connection: sqlite3.Connection, appends: Sequence[Appends]
) -> dict[tuple[str, str], tuple[int, int, bytes]]:
    """(stream, batch id) → first offset, number of events, digest; of those that are known."""
    if not appends:
        return {}
    streams = list({each.stream for each in appends})
    names = list({each.batch_id for each in appends})
    rows = connection.execute(
        "SELECT iri, name, r.first, count, digest FROM stream JOIN receipt r ON r.stream = stream.id"
        f" WHERE iri IN ({', '.join('?' * len(streams))}) AND name IN ({', '.join('?' * len(names))})",
        (*streams, *names),
    ).fetchall()
    return {(iri, name): (first, count, digest) for iri, name, first, count, digest in rows}


def _sessions(connection: sqlite3.Connection, appends: Sequence[Appends]) -> dict[tuple[str, str], int]:
    """(stream, session) → its last number, for the known sessions."""
    asked = {(each.stream, each.session.name) for each in appends if each.session is not None}
    return {(iri, name): last for iri, name in asked if (last := session_last(connection, iri, name)) is not None}


def session_last(connection: sqlite3.Connection, stream: str, name: str) -> int | None:
    """The number of the last item of a session that is stored; None where it is not known."""
    row = connection.execute(
        "SELECT last FROM session WHERE stream = (SELECT id FROM stream WHERE iri = ?) AND name = ?", (stream, name)
    ).fetchone()
    return None if row is None else int(row[0])


def _insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]]) -> int:
    """Rows in one statement, or a few: at each statement other threads may take their turn. The id of the last one;
    those before it have the ids before it."""
    cursor = connection.cursor()
    for start in range(0, len(rows), _VALUES):
        part = rows[start : start + _VALUES]
        row = f"({', '.join('?' * len(part[0]))})"
        cursor.execute(
            f"INSERT INTO {into} VALUES {', '.join([row] * len(part))}", [value for given in part for value in given]
        )
    return cursor.lastrowid or 0
