"""What is new in a journal since a backup: small archives that are put together with that backup again.

    a full copy (`write_full`) ─▶ + what is new ─▶ + what is new ─▶ ... ─▶ the journal of the last one's moment

A `Mark` says how far a copy reaches; it can be read off every copy. New entries have greater ids, new matches greater
ids within their query; states of checkpoints are new where they were rebuilt. All other tables are small, and come
whole. What retention has deleted meanwhile follows from the oldest one kept. So making an increment takes time for
what is new, not for what is there, and one transaction that only reads: the server processes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal import archive
from oxiseq.journal.archive import is_archive, manifest_of, write_archive
from oxiseq.journal.errors import ConflictError, DamagedError, journal_error
from oxiseq.journal.journal import Journal
from oxiseq.journal.schema import APPLICATION, FILL_CHECKSUMS, RENAME_OPTIONS, VERSION, connect, open_reader

_OF_INCREMENT: Final = 0x6F787369
"""SQLite's application_id of an increment: "oxsi"."""
_GROWING: Final = ("entry", "match_batch", "receipt", "checkpoint")
"""Tables of which only what is new is taken."""
_OWN: Final = ("increment", "kept")
_SEQUENCE: Final = "sqlite_sequence"
"""Which ids were given last; that of SQLite itself."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a journal reaches: the last entry's id, and a digest of the newest one that is kept; of each stream and
    query, by id, the number that comes next; when each checkpoint was made."""

    version: int
    entry: int
    head: str
    streams: dict[str, int]
    queries: dict[str, int]
    checkpoints: dict[str, int]

    def to_json(self) -> str:
        """As `mark_from` reads it."""
        return json.dumps(asdict(self), sort_keys=True)


def mark_from(text: str) -> Mark:
    """Raises DamagedError."""
    try:
        return Mark(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise DamagedError(f"the mark of a backup cannot be read: {error}") from None


def mark_of(path: Path) -> Mark:
    """How far a copy or an increment reaches. Raises JournalError."""
    if is_archive(path):
        return mark_from(manifest_of(path).marks.get("until", ""))
    if _application(path, path) == _OF_INCREMENT:
        with _reading(path) as increment:
            return mark_from(increment.execute("SELECT until FROM increment").fetchone()[0])
    with closing(open_reader(path)) as connection, _told(path):
        return _mark(connection)


def write_increment(journal: Path, since: Mark, part: Path) -> Mark:
    """Write what a journal, which may be in use, has more than `since`, to an archive. How far it reaches.

    Raises ConflictError where the journal is not the one of the mark or has gone other ways since, so that a full copy
    is due; JournalError.
    """
    if since.version != VERSION:
        raise ConflictError(f"{journal}: the backup is of version {since.version}, the journal of {VERSION}")
    open_reader(journal).close()  # it is a journal, of this version
    made = part.with_name(part.name + ".sqlite")
    try:
        with closing(connect(journal)) as connection, _told(journal):
            connection.execute("ATTACH ? AS more", (str(made),))
            connection.execute(f"PRAGMA more.application_id = {_OF_INCREMENT}")
            connection.execute("PRAGMA more.journal_mode = OFF")
            connection.execute("BEGIN")
            until = _mark(connection)
            _check_follows(connection, journal, since, until)
            _copy(connection, since, until)
            connection.execute("COMMIT")
        write_archive(made, archive.INCREMENT, {"since": since.to_json(), "until": until.to_json()}, part)
    finally:
        made.unlink(missing_ok=True)
    return until


def write_full(journal: Journal, part: Path) -> Mark:
    """Write a copy of a journal, which may be in use, to an archive. How far it reaches. Raises DamagedError, with what
    is wrong, for a journal that is damaged, JournalError, OSError."""
    made = part.with_name(part.name + ".sqlite")
    try:
        journal.backup(made)
        with Journal(made, read_only=True) as copy:
            faults = copy.verify()
        if faults:
            raise DamagedError("\n".join([f"{journal.path}: the journal is damaged, and a copy would be:", *faults]))
        until = mark_of(made)
        write_archive(made, archive.FULL, {"until": until.to_json()}, part)
    finally:
        for name in (made.name, f"{made.name}-wal", f"{made.name}-shm"):
            made.with_name(name).unlink(missing_ok=True)
    return until


def apply_increment(connection: sqlite3.Connection, file: Path, path: Path) -> None:
    """Add an increment, the SQLite file in the backup `path`, to a journal that reaches as far as the one that it was
    made for. All or nothing.

    Raises ConflictError for one that does not belong there, JournalError.
    """
    if _application(file, path) != _OF_INCREMENT:
        raise DamagedError(f"{path}: is no increment of a backup")
    with _told(path):
        connection.execute("ATTACH ? AS more", (f"{file.absolute().as_uri()}?mode=ro",))
        try:
            faults = [said for (said,) in connection.execute("PRAGMA more.integrity_check(5)") if said != "ok"]
            if faults:
                raise DamagedError(f"{path}: is damaged: {'; '.join(faults)}")
            since, until, digest = connection.execute("SELECT * FROM more.increment").fetchone()
            if digest and digest != _sum(connection):
                raise DamagedError(f"{path}: is damaged: it holds other rows than were written")
            if mark_from(since) != _mark(connection):
                raise ConflictError(
                    f"{path}: is not the next backup: one in between is missing, or it is of another journal"
                )
            connection.execute("BEGIN")
            try:
                _apply(connection)
                if _mark(connection) != mark_from(until):
                    raise DamagedError(f"{path}: does not lead to the state that it names")
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        finally:
            connection.execute("DETACH more")


def is_increment(path: Path) -> bool:
    """Whether a file is an increment. Raises JournalError if it is not a backup at all."""
    if is_archive(path):
        return manifest_of(path).member == archive.INCREMENT
    return _application(path, path) == _OF_INCREMENT


def _mark(connection: sqlite3.Connection) -> Mark:
    def numbers(sql: str) -> dict[str, int]:
        return {str(key): value for key, value in connection.execute(sql)}

    entry = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return Mark(
        version,
        entry[0] if entry is not None else 0,
        _digest(connection, "ORDER BY id DESC LIMIT 1"),
        numbers("SELECT id, next FROM main.stream"),
        numbers("SELECT id, next FROM main.query"),
        numbers("SELECT owner, made FROM main.checkpoint"),
    )


def _digest(connection: sqlite3.Connection, which: str, *given: int) -> str:
    """Of an entry, empty where there is none."""
    row = connection.execute(f"SELECT id, stream, first, received, data FROM main.entry {which}", given).fetchone()
    if row is None:
        return ""
    return f"{row[0]} {hashlib.blake2b(repr(row[:4]).encode() + row[4], digest_size=16).hexdigest()}"


def _check_follows(connection: sqlite3.Connection, path: Path, since: Mark, until: Mark) -> None:
    """Raises ConflictError where what is there now cannot have come of what was there at the mark."""
    behind = until.entry < since.entry or any(
        now.get(key, number) < number
        for before, now in ((since.streams, until.streams), (since.queries, until.queries))
        for key, number in before.items()
    )
    head = since.head and _digest(connection, "WHERE id = ?", int(since.head.split()[0]))
    if behind or head not in ("", since.head):
        raise ConflictError(f"{path}: is not the journal that the last backup was made from")


def _copy(connection: sqlite3.Connection, since: Mark, until: Mark) -> None:
    connection.execute(  # of each stream the oldest entry that is kept: retention deletes from there
        "CREATE TABLE more.kept AS SELECT id AS stream, (SELECT entry.id FROM main.entry WHERE entry.stream = stream.id"
        " ORDER BY entry.first, entry.id LIMIT 1) AS entry FROM main.stream"
    )
    connection.execute("CREATE TABLE more.entry AS SELECT * FROM main.entry WHERE id > ?", (since.entry,))
    for table, owner, before in (("match_batch", "query", since.queries), ("receipt", "stream", since.streams)):
        connection.execute(f"CREATE TABLE more.{table} AS SELECT * FROM main.{table} WHERE 0")
        for (number,) in connection.execute(f"SELECT id FROM main.{owner}").fetchall():
            connection.execute(
                f"INSERT INTO more.{table} SELECT * FROM main.{table} WHERE {owner} = ? AND first >= ?",
                (number, before.get(str(number), 0)),
            )
    connection.execute("CREATE TABLE more.checkpoint AS SELECT * FROM main.checkpoint WHERE 0")
    for owner, made in until.checkpoints.items():
        if since.checkpoints.get(owner) != made:
            connection.execute("INSERT INTO more.checkpoint SELECT * FROM main.checkpoint WHERE owner = ?", (owner,))
    for table in _whole(connection):
        connection.execute(f"CREATE TABLE more.{_copied(table)} AS SELECT * FROM main.{table}")
    connection.execute("CREATE TABLE more.increment (since TEXT NOT NULL, until TEXT NOT NULL, digest TEXT NOT NULL)")
    told = since.to_json(), until.to_json(), ""  # the archive knows it of all its bytes
    connection.execute("INSERT INTO more.increment VALUES (?, ?, ?)", told)


def _sum(connection: sqlite3.Connection) -> str:
    """Of all rows of an increment that is not in an archive."""
    digest = hashlib.blake2b(digest_size=32)
    tables = connection.execute("SELECT name FROM more.sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    for (name,) in tables:
        if name != "increment":
            digest.update(name.encode())
            for row in connection.execute(f"SELECT * FROM more.{name} ORDER BY rowid"):
                digest.update(repr(row).encode())
    return digest.hexdigest()


def _apply(connection: sqlite3.Connection) -> None:
    for table in _whole(connection):
        if table != _SEQUENCE:
            _replace(connection, table)
    connection.execute(
        "DELETE FROM main.entry WHERE id < ifnull((SELECT kept.entry FROM more.kept"
        " WHERE kept.stream = entry.stream), id + 1)"
    )
    connection.execute("INSERT INTO main.entry SELECT * FROM more.entry")
    connection.execute(
        "DELETE FROM main.match_batch WHERE first < ifnull((SELECT query.first FROM main.query"
        " WHERE query.id = match_batch.query), first + 1)"
    )
    _insert_without_id(connection, "match_batch")
    connection.execute("DELETE FROM main.receipt WHERE stream NOT IN (SELECT id FROM main.stream)")
    connection.execute(
        "DELETE FROM main.receipt WHERE EXISTS (SELECT 1 FROM more.receipt new"
        " WHERE new.stream = receipt.stream AND new.name = receipt.name)"
    )
    _insert_without_id(connection, "receipt")
    (until,) = connection.execute("SELECT until FROM more.increment").fetchone()
    for (owner,) in connection.execute("SELECT owner FROM main.checkpoint").fetchall():
        if owner not in mark_from(until).checkpoints:
            connection.execute("DELETE FROM main.checkpoint WHERE owner = ?", (owner,))
    connection.execute("INSERT OR REPLACE INTO main.checkpoint SELECT * FROM more.checkpoint")
    for step in (RENAME_OPTIONS + FILL_CHECKSUMS).split(";"):
        connection.execute(step)
    _replace(connection, _SEQUENCE)  # behind all that gives ids


def _replace(connection: sqlite3.Connection, table: str) -> None:
    connection.execute(f"DELETE FROM main.{table}")
    names = ", ".join(row[1] for row in connection.execute(f"PRAGMA more.table_info({_copied(table)})"))
    connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM more.{_copied(table)}")


def _insert_without_id(connection: sqlite3.Connection, table: str) -> None:
    """Ids of these rows are given again after a deletion, so they may be taken here."""
    columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})") if row[1] != "id"]
    names = ", ".join(columns)
    connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM more.{table} ORDER BY id")


def _whole(connection: sqlite3.Connection) -> list[str]:
    """The tables that are copied as they are: also those that later versions add."""
    found = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in found if name not in (*_GROWING, *_OWN)]


def _copied(table: str) -> str:
    """SQLite keeps names that begin with its own to itself."""
    return table.replace("sqlite_", "of_sqlite_")


def _application(file: Path, path: Path) -> int:
    """SQLite's application_id of a file, which is in the backup `path`."""
    with _reading(file) as connection:
        found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if found not in (APPLICATION, _OF_INCREMENT):
        raise DamagedError(f"{path}: is no backup of oxiseq")
    return found


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path, reading=True)) as connection, _told(path):
        yield connection


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise journal_error(error, path) from error
    except UnicodeDecodeError as error:  # SQLite's message cites what is damaged
        raise DamagedError(f"{path}: is damaged: {error}") from error
