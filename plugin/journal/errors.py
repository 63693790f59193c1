"""What can be wrong with the journal.

OxiseqError                  everything this package raises on purpose (grammar/errors.py)
└── JournalError             something about the journal; names the file where the file is at fault
    ├── LockedError          another process holds the file
    ├── DamagedError         the file, or something in it, is not what was written
    │   └── DamagedBatchError    a stored batch of events or matches, and it alone
    ├── VersionError         the file is of a newer version than this program
    ├── FullError            no room: nothing of the refused write is stored, and reading continues
    ├── UnknownError         there is no stream or query of this name
    ├── ConflictError        a write that contradicts what is stored; nothing is changed
    └── CursorError          the requested items have been deleted: the cursor is too old
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.options import room

_NOTHING: Final = 1 << 20
"""Bytes of the disk that are as good as none: SQLite makes its files larger by parts."""


class JournalError(OxiseqError):
    """Something about the journal."""


class LockedError(JournalError):
    """Another process holds the file."""


class DamagedError(JournalError):
    """The file, or something in it, is not what was written."""


class DamagedBatchError(DamagedError):
    """A stored batch of `what` cannot be read: those with the numbers `first`, ..., `next` - 1, and no others."""

    def __init__(self, what: str, first: int, next: int, reason: str) -> None:
        super().__init__(what, first, next, reason)
        self.what, self.first, self.next, self.reason = what, first, next, reason

    def __str__(self) -> str:
        return f"{self.what} from number {self.first} to {self.next - 1} cannot be read: {self.reason}"


class VersionError(JournalError):
    """The file is of a newer version than this program."""


class FullError(JournalError):
    """No room on the disk, or within the size allowed; nothing of the refused write is stored."""


class UnknownError(JournalError):
    """No stream or query has this name."""


class ConflictError(JournalError):
    """A write that contradicts what is stored."""


class CursorError(JournalError):
    """The cursor is too old: what follows it has been deleted. `asked` is the first number wanted, `first` the first
    that is still there."""

    def __init__(self, what: str, asked: int, first: int) -> None:
        super().__init__(what, asked, first)
        self.what = what
        self.asked = asked
        self.first = first

    def __str__(self) -> str:
        return f"cursor too old: {self.what} are kept from number {self.first} on, number {self.asked} was requested"


def journal_error(error: sqlite3.Error, path: Path) -> JournalError:
    """SQLite's error as one of ours, naming the file."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and _is_full(path)):
        return FullError(f"{path}: no room left for the write")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockedError(f"{path}: is locked by another process")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        instead = "; a backup becomes one by `oxiseq restore`" if primary == sqlite3.SQLITE_NOTADB else ""
        return DamagedError(f"{path}: is not a readable journal: {error}{instead}")
    if primary == sqlite3.SQLITE_READONLY:
        return JournalError(f"{path}: cannot be written to: opened for reading only, or protected")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return JournalError(f"{path}: {error} ({name})")


def _is_full(path: Path) -> bool:
    """Whether the disk is almost full: for some writes SQLite reports only that they failed."""
    try:
        return room.free(path.parent) < _NOTHING
    except OSError:
        return False
