"""A journal from a full copy and what came after it, in another folder; and what is known of it there afterwards.

Beside the journal it leaves `journal.oxiseq.restored`: the position of each stream. Later pushes are not in the
backup, and clients push it again from there on.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from oxiseq.engine.events.write import replacing
from oxiseq.grammar.records import dataclass
from oxiseq.journal.archive import check_archive, is_archive, unpack
from oxiseq.journal.errors import DamagedError, JournalError
from oxiseq.journal.increments import apply_increment, is_increment
from oxiseq.journal.journal import FILE_NAME, Journal, flush
from oxiseq.journal.schema import open_writer

_NOTE: Final = ".restored"


@dataclass(frozen=True, slots=True)
class Resumed:
    """The position of a stream in the backup: the next offset, and when the last event came (µs, None: there was
    none)."""

    next: int
    last: int | None


def restore(backups: Sequence[Path], folder: Path) -> None:
    """Put a full copy and its increments, in order, together in a folder that has no journal. All of them are verified
    before anything is written: of archives each byte, of older backups what SQLite and a journal know of themselves.

    Raises DamagedError with all that is wrong, JournalError, OSError; then there is no journal there.
    """
    target = folder / FILE_NAME
    if target.exists():
        raise JournalError(f"{target}: there is a journal already")
    for each in backups:
        if is_archive(each):
            check_archive(each)
    if is_increment(backups[0]):
        raise JournalError(f"{backups[0]}: holds only the changes since another backup: name that one first")
    if not is_archive(backups[0]):
        check_whole(backups[0], backups[0])
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(target) as part:
        beside = part.with_name(part.name + ".sqlite")
        try:
            unpack(backups[0], part)
            with closing(open_writer(part, "full")) as connection:
                for each in backups[1:]:
                    unpack(each, beside)
                    apply_increment(connection, beside, each)
                note = _positions(connection)
            check_whole(part, backups[-1])
            flush(part)
            with replacing(target.with_name(target.name + _NOTE)) as written:
                written.write_text(json.dumps(note, indent=1) + "\n", "utf-8")
        finally:
            for name in (f"{part.name}-wal", f"{part.name}-shm", beside.name):
                part.with_name(name).unlink(missing_ok=True)


def check_whole(path: Path, backup: Path) -> None:
    """Raises DamagedError with what is wrong with a journal."""
    with Journal(path, read_only=True) as made:
        faults = made.verify()
    if faults:
        raise DamagedError("\n".join([f"{backup}: is damaged:", *faults]))


def _positions(connection: sqlite3.Connection) -> dict[str, tuple[int, int | None]]:
    """Of each stream the next offset, and when its last event came."""
    return {
        iri: (following, last)
        for iri, following, last in connection.execute(
            "SELECT iri, next, (SELECT received FROM entry WHERE entry.stream = stream.id"
            " ORDER BY entry.first DESC, entry.id DESC LIMIT 1) FROM stream"
        )
    }


def resumed(journal: Path) -> Mapping[str, Resumed]:
    """Of a restored journal: stream → its end in the backup. Raises JournalError for an invalid note."""
    note = journal.with_name(journal.name + _NOTE)
    try:
        told = json.loads(note.read_text("utf-8"))
        return {iri: Resumed(int(following), last) for iri, (following, last) in told.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise JournalError(f"{note}: cannot be read: {error}") from None
