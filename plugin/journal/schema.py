"""The file: its tables, how it is opened, what is refused.

SQLite in WAL mode: one writes (writer.py), any number read meanwhile, each from a snapshot. Beside the file are
`-wal` and `-shm`, which belong to it, and `.lock`, an empty SQLite file whose lock says that a process writes here;
it ends with the process, however that ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeAlias

from oxiseq.engine.events.time import FIRST_TIME, LAST_TIME
from oxiseq.journal.entry import Entry
from oxiseq.journal.errors import DamagedError, JournalError, LockedError, VersionError, journal_error

Durability: TypeAlias = Literal["full", "normal"]
"""`full`: what is acknowledged is on the disk. `normal`: it outlives the process, however that dies; the last moments
may be lost when the machine itself dies. Either way the file stays whole."""

VERSION: Final = 9
APPLICATION: Final = 0x6F78736A
"""SQLite's application_id of a journal: "oxsj"."""
WAIT_SECONDS: Final = 5.0
"""How long a connection waits for another's lock."""
_HEAD: Final = 100
"""Bytes of the head of an SQLite file."""
_WAL_PAGES: Final = 2000
"""Pages in the WAL after which they are brought into the file: 8 MB."""

CHECKSUMS: Final = {
    "query": "checksum(CAST(text AS BLOB), CAST(language AS BLOB), CAST(options AS BLOB))",
    "sink": "checksum(CAST(config AS BLOB))",
    "stream": "checksum(CAST(mapping AS BLOB))",
}
"""By table what its column `checksum` is of: texts that nothing else tells from damaged ones."""
FILL_CHECKSUMS: Final = f"""
UPDATE query SET checksum = {CHECKSUMS["query"]} WHERE checksum = '';
UPDATE sink SET checksum = {CHECKSUMS["sink"]} WHERE checksum = '';
UPDATE stream SET checksum = {CHECKSUMS["stream"]} WHERE checksum = '' AND mapping <> '';
"""
"""Of what earlier versions have stored, which knew none."""

_NEW_NAMES: Final[Mapping[str, str]] = {
    "report": "stream_operator",
    "at": "evaluation_times",
    "state_records": "max_state_records",
    "state_bytes": "max_state_bytes",
    "on_budget": "on_state_limit",
}
"""Of options, by those that versions up to 8 stored."""
_RENAMED: Final = CHECKSUMS["query"].replace("options", "renamed(options)")
RENAME_OPTIONS: Final = f"""
UPDATE query SET checksum = CASE checksum WHEN {CHECKSUMS["query"]} THEN {_RENAMED} ELSE checksum END,
    options = renamed(options) WHERE options <> renamed(options);
"""
"""Of queries that versions up to 8 stored. A checksum that does not fit still does not: the query is damaged."""

_TABLES: Final = """
CREATE TABLE stream (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    iri TEXT NOT NULL UNIQUE,
    first INTEGER NOT NULL,      -- offset of the first event that is kept
    next INTEGER NOT NULL,       -- offset that the next event will get
    keep_time INTEGER,           -- µs since arrival, NULL: for ever
    keep_count INTEGER,          -- events, NULL: all
    largest INTEGER,             -- the largest time of an event, NULL: there was none
    punctuated INTEGER,          -- the largest punctuation
    created INTEGER NOT NULL     -- µs since 1970, as everywhere
);
CREATE TABLE entry (             -- the event log: batches and punctuations, in order of arrival
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- the position in the log: never given again
    stream INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,      -- 0: no event of the stream before max_time will come any more
    min_time INTEGER NOT NULL,
    max_time INTEGER NOT NULL,
    received INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX entry_place ON entry (stream, first, id, count, min_time, max_time);
CREATE TABLE receipt (           -- batch ids that clients gave, remembered longer than the batches
    id INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    name TEXT NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    digest BLOB NOT NULL,
    received INTEGER NOT NULL
);
CREATE UNIQUE INDEX receipt_name ON receipt (stream, name);
CREATE TABLE query (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    language TEXT NOT NULL,
    options TEXT NOT NULL,       -- JSON
    state TEXT NOT NULL,         -- 'deleted': kept only so that ids of matches are never given again
    first INTEGER NOT NULL,      -- id of the first match that is kept
    next INTEGER NOT NULL,       -- id that the next match will get
    keep_time INTEGER,
    keep_count INTEGER,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
CREATE TABLE match_batch (
    id INTEGER PRIMARY KEY,
    query INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    received INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX match_place ON match_batch (query, first, count);
CREATE TABLE checkpoint (
    owner TEXT PRIMARY KEY,
    state BLOB NOT NULL,
    position INTEGER NOT NULL,   -- id of the last entry that it has seen
    made INTEGER NOT NULL
);
CREATE TABLE checkpoint_offset (
    owner TEXT NOT NULL,
    stream INTEGER NOT NULL,
    next INTEGER NOT NULL,
    PRIMARY KEY (owner, stream)
) WITHOUT ROWID;
CREATE TABLE checkpoint_match (
    owner TEXT NOT NULL,
    query INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (owner, query)
) WITHOUT ROWID;
"""
_UPGRADES: Final = (  # from version 1, 2...
    """
ALTER TABLE query ADD COLUMN error TEXT NOT NULL DEFAULT ''; -- why its state is 'failed'
CREATE TABLE kb_answer (         -- of a knowledge base elsewhere
    text TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    asked INTEGER NOT NULL
) WITHOUT ROWID;
""",
    f"""
ALTER TABLE query ADD COLUMN begun INTEGER; -- the log's entry after which it was registered, NULL: not known
ALTER TABLE query ADD COLUMN rebuilt TEXT NOT NULL DEFAULT ''; -- how its state was rebuilt from the log
CREATE TABLE set_aside (         -- quarantined: entries of the log that a query could not work through
    query INTEGER NOT NULL,
    position INTEGER NOT NULL,   -- id of the entry
    stream TEXT NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (query, position)
) WITHOUT ROWID;
-- an earlier version took any time: such a one must not make all that follows late
UPDATE stream SET largest = (SELECT max(max_time) FROM entry WHERE stream = stream.id AND count > 0
                             AND max_time BETWEEN {FIRST_TIME} AND {LAST_TIME})
    WHERE largest NOT BETWEEN {FIRST_TIME} AND {LAST_TIME};
UPDATE stream SET punctuated = (SELECT max(max_time) FROM entry WHERE stream = stream.id AND count = 0
                                AND max_time BETWEEN {FIRST_TIME} AND {LAST_TIME} + 1)
    WHERE punctuated NOT BETWEEN {FIRST_TIME} AND {LAST_TIME} + 1;
""",
    """
-- options have other names, and durations their unit (oxiseq.options)
UPDATE query SET options = json_remove(json_set(options, '$.origin', json_extract(options, '$.start')), '$.start')
    WHERE json_type(options, '$.start') IS NOT NULL;
UPDATE query SET options = json_remove(json_set(options, '$.at', json_extract(options, '$.instants')), '$.instants')
    WHERE json_type(options, '$.instants') IS NOT NULL;
UPDATE query SET options = json_set(options, '$.lateness', json_extract(options, '$.lateness') || 'us')
    WHERE json_type(options, '$.lateness') = 'integer';
UPDATE query SET options = json_remove(json_set(options, '$.stream_names', json_extract(options, '$.streamNames')),
    '$.streamNames') WHERE json_type(options, '$.streamNames') IS NOT NULL;
UPDATE query SET options = json_remove(json_set(options,
    '$.state_records', ifnull(json_extract(options, '$.stateBudget.records'), 0),
    '$.state_bytes', ifnull(json_extract(options, '$.stateBudget.bytes'), 0)),
    '$.stateBudget') WHERE json_type(options, '$.stateBudget') IS NOT NULL;
UPDATE query SET options = json_remove(json_set(options, '$.on_budget', json_extract(options, '$.onBudget')),
    '$.onBudget') WHERE json_type(options, '$.onBudget') IS NOT NULL;
""",
    """
CREATE TABLE sink (              -- where matches of a query are delivered
    query INTEGER NOT NULL,
    name TEXT NOT NULL,
    config TEXT NOT NULL,        -- JSON, with secrets that are given as texts
    position INTEGER NOT NULL,   -- id of the last match that is delivered, or given up
    place TEXT NOT NULL,         -- the receiver's own: how far a file has been written
    delivered INTEGER NOT NULL,  -- matches, in all
    lost INTEGER NOT NULL,       -- matches that were given up, or deleted before they were delivered
    failing INTEGER,             -- since when it fails, NULL: it does not
    error TEXT NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    PRIMARY KEY (query, name)
) WITHOUT ROWID;
""",
    """
ALTER TABLE stream ADD COLUMN mapping TEXT NOT NULL DEFAULT ''; -- what rows mean, JSON; '': rows are not taken
""",
    """
CREATE TABLE session (           -- clients that number what they push
    stream INTEGER NOT NULL,
    name TEXT NOT NULL,
    last INTEGER NOT NULL,       -- the number of the last item that is stored
    changed INTEGER NOT NULL,
    PRIMARY KEY (stream, name)
) WITHOUT ROWID;
CREATE INDEX session_changed ON session (changed);
""",
    f"""
ALTER TABLE query ADD COLUMN omitted TEXT NOT NULL DEFAULT ''; -- instants left out for it when it failed, JSON
ALTER TABLE query ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
ALTER TABLE sink ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
ALTER TABLE stream ADD COLUMN checksum TEXT NOT NULL DEFAULT ''; -- '': it has no mapping
{FILL_CHECKSUMS}
""",
    RENAME_OPTIONS,
)


_QUERY_AS_NOW: Final = """
CREATE TEMP VIEW query AS SELECT id, name, text, language, renamed(options) AS options, state, first, next, keep_time,
    keep_count, created, changed, error, begun, rebuilt,
"""
_AS_NOW: Final[Mapping[int, str]] = {
    7: f"""
{_QUERY_AS_NOW} '' AS omitted, '' AS checksum FROM main.query;
CREATE TEMP VIEW sink AS SELECT *, '' AS checksum FROM main.sink;
CREATE TEMP VIEW stream AS SELECT *, '' AS checksum FROM main.stream;
""",
    8: f"""
{_QUERY_AS_NOW} omitted, CASE checksum WHEN {CHECKSUMS["query"]} THEN {_RENAMED} ELSE checksum END AS checksum
    FROM main.query;
""",
}
"""Earlier versions that are read as they are: what their tables lack, for who reads them."""
RECEIVED: Final = (("entry", "received"), ("match_batch", "received"), ("receipt", "received"), ("session", "changed"))
"""Tables of which retention deletes what is old, and the column that says since when it is there."""


class Writing(sqlite3.Connection):
    """A connection that writes. `arrived`: what the running transaction has put into the log; `forgotten`: whether it
    has taken streams out of it; `ends`: of some streams id, next offset, largest time and punctuation, as appends have
    left them: whoever else writes, or takes back what was written, clears it."""

    arrived: list[Entry]
    forgotten: bool
    ends: dict[str, tuple[int, int, int | None, int | None]]


def connect(path: Path, *, wait: float = WAIT_SECONDS, reading: bool = False) -> Writing:
    """A connection for use by one thread at a time. Raises JournalError for a file that cannot be opened."""
    _check_size(path)
    mode = "rw" if reading else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=wait,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=128,
            factory=Writing,
        )
    except sqlite3.Error as error:
        raise JournalError(f"{path}: cannot be opened: {error}") from error
    connection.create_function("checksum", -1, _checksum, deterministic=True)
    connection.create_function("renamed", 1, _renamed, deterministic=True)
    if reading:
        connection.execute("PRAGMA query_only = 1")
    return connection


def _checksum(*texts: bytes) -> str:
    """The function of this name in SQL: SHA-256 of all together."""
    return sha256(b"".join(len(text).to_bytes(8) + text for text in texts)).hexdigest()


def _renamed(options: str) -> str:
    """The function of this name in SQL: stored options under the names of version 9; what cannot be read stays."""
    try:
        given = json.loads(options)
    except ValueError:
        return options
    if not isinstance(given, dict) or not given.keys() & _NEW_NAMES.keys():
        return options
    if given.get("on_budget") == "reset":
        given["on_budget"] = "drop"
    return json.dumps({_NEW_NAMES.get(name, name): value for name, value in given.items()})


def _check_size(path: Path) -> None:
    """SQLite takes a file shorter than its header for an empty one, and would write over it.

    The file is not opened: to close it again would end the locks that this process has on it (POSIX), and then another
    one that has read the journal, as `oxiseq backup`, would take itself for the last and delete the WAL in use.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"{path}: cannot be opened: {error.strerror or error}") from error
    if 0 < size < _HEAD:
        raise DamagedError(f"{path}: is not a readable journal: it is no SQLite file")


def open_writer(path: Path, durability: Durability, wait: float = WAIT_SECONDS) -> Writing:
    """The connection that writes; it creates the file if there is none.

    Raises LockedError, DamagedError, VersionError, JournalError.
    """
    connection = connect(path, wait=wait)
    try:
        _check(connection, path)
        _set_up(connection, path, durability)
    except sqlite3.Error as error:
        connection.close()
        raise journal_error(error, path) from error
    except JournalError:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> Writing:
    """A connection that only reads. Raises like `open_writer`, and JournalError where there is no journal."""
    if not path.is_file():
        raise JournalError(f"{path}: there is no journal")
    connection = connect(path, reading=True)
    try:
        version = _check(connection, path)
        if not version:
            raise JournalError(f"{path}: there is no journal: the file is empty")
        if version in _AS_NOW:
            connection.executescript(f"PRAGMA query_only = 0; {_AS_NOW[version]} PRAGMA query_only = 1;")
        elif version < VERSION:
            raise VersionError(f"{path}: is of version {version}; opened for writing it becomes one of {VERSION}")
    except sqlite3.Error as error:
        connection.close()
        raise journal_error(error, path) from error
    except JournalError:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the tables, 0 if there are none; that they are a journal's, and of one that this program knows."""
    made = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if made == 0 and application == 0:
        return 0
    if application != APPLICATION:
        raise DamagedError(f"{path}: is an SQLite file, but not a journal of oxiseq")
    if version > VERSION:
        raise VersionError(f"{path}: is of version {version}; this program knows versions up to {VERSION}")
    return version


def _set_up(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(f"{path}: WAL mode is not possible here (a network drive?): SQLite answers {mode!r}")
    connection.execute(f"PRAGMA synchronous = {durability.upper()}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
    connection.execute("PRAGMA secure_delete = 0")
    version = _check(connection, path)
    if version < VERSION:
        steps = ([] if version else [_TABLES]) + list(_UPGRADES[max(version - 1, 0) :])
        script = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {' '.join(steps)} {script} COMMIT;")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def limit_size(connection: sqlite3.Connection, size: int) -> None:
    """How large the file may become, in bytes; what it is already it may stay. Not stored in the file."""
    page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {max(1, size // page_size)}")


def lock(path: Path) -> sqlite3.Connection:
    """Say that this process writes here, until the connection is closed. Raises LockedError when another one does."""
    beside = path.with_name(path.name + ".lock")
    connection = connect(beside, wait=0.0)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        connection.close()
        if isinstance(journal_error(error, beside), LockedError):
            raise LockedError(f"{path}: another process is writing to this journal") from error
        raise JournalError(f"{beside}: cannot be locked: {error}") from error
    return connection
