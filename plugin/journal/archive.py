"""The archive of a backup: a ZIP file that tells of each of its bytes whether it is as it was written.

    manifest.json     what the backup is, how far it reaches, and size and SHA-256 of each other member
    journal.sqlite    a full copy; or increment.sqlite: what is new since another backup
    the ZIP's comment sha256: and the SHA-256 of all bytes before it

SQLite checks the structure of its files but not what rows hold, and ZIP's own CRCs leave out its headers. Older backups
are the SQLite file alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from oxiseq.grammar.records import dataclass
from oxiseq.journal.errors import DamagedError, JournalError

FULL: Final = "journal.sqlite"
INCREMENT: Final = "increment.sqlite"
_MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_COMMENT: Final = b"sha256:"
_DIGITS: Final = 64
_SQLITE: Final = b"SQLite format 3\0"
_WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""ZIP's first moment: the same backup has the same bytes."""
_PIECE: Final = 1 << 20
_LARGEST: Final = 64 << 20
"""Bytes of a manifest, which names each stream and query."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`member`: FULL or INCREMENT; `marks`: how far the backup reaches (`until`) and, of an increment, the one before
    it (`since`), as JSON; `members`: of each the size and the SHA-256."""

    member: str
    marks: Mapping[str, str]
    members: Mapping[str, tuple[int, str]]


def write_archive(made: Path, member: str, marks: Mapping[str, str], target: Path) -> None:
    """Pack an SQLite file, as this member."""
    with made.open("rb") as file:
        told = {"size": made.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    manifest = {"format": _FORMAT, "member": member, "marks": dict(marks), "members": {member: told}}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_MANIFEST, _WHEN), json.dumps(manifest, indent=1))
        with made.open("rb") as source, archive.open(zipfile.ZipInfo(member, _WHEN), "w", force_zip64=True) as into:
            shutil.copyfileobj(source, into, _PIECE)
        archive.comment = _COMMENT + b"0" * _DIGITS
    with target.open("r+b") as file:
        digest = _digest_before(file, target.stat().st_size - _DIGITS)
        file.seek(-_DIGITS, 2)
        file.write(digest)


def is_archive(path: Path) -> bool:
    """Whether a file is not, as older backups are, an SQLite file. Raises JournalError."""
    with _file(path) as file:
        return file.read(len(_SQLITE)) != _SQLITE


def manifest_of(path: Path) -> Manifest:
    """What an archive says that it holds. Raises DamagedError, JournalError."""
    with _file(path) as file, _told(path), zipfile.ZipFile(file) as archive:
        if archive.getinfo(_MANIFEST).file_size > _LARGEST:
            raise DamagedError(f"{path}: is damaged: its manifest is too large")
        given: dict[str, Any] = json.loads(archive.read(_MANIFEST))
        if given["format"] != _FORMAT:
            raise JournalError(
                f"{path}: is a backup of the format {given['format']}, which a newer version of oxiseq reads"
            )
        members = {str(name): (int(each["size"]), str(each["sha256"])) for name, each in given["members"].items()}
        return Manifest(str(given["member"]), {name: str(mark) for name, mark in given["marks"].items()}, members)


def check_archive(path: Path) -> None:
    """Read every byte. Raises DamagedError, JournalError."""
    with _file(path) as file:
        size = path.stat().st_size - _DIGITS
        whole = size > len(_COMMENT) and _digest_before(file, size) == file.read(_DIGITS)
    if not whole:
        raise DamagedError(f"{path}: is damaged, or no backup of oxiseq: its SHA-256 is not that at its end")
    manifest_of(path)


def unpack(path: Path, made: Path) -> None:
    """Write the SQLite file of an archive; an older backup is one. Raises DamagedError, JournalError, OSError."""
    if not is_archive(path):
        shutil.copyfile(path, made)
        return
    manifest = manifest_of(path)
    with _file(path) as file, _told(path), zipfile.ZipFile(file) as archive, made.open("w+b") as into:
        size, digest = manifest.members[manifest.member]
        with archive.open(manifest.member) as source:
            shutil.copyfileobj(source, into, _PIECE)
        into.flush()
        if (made.stat().st_size, _digest_before(into, size).decode()) != (size, digest):
            raise DamagedError(f"{path}: is damaged: {manifest.member} is not what its manifest says")


def _digest_before(file: IO[bytes], size: int) -> bytes:
    """Of that many bytes of a file, from its begin."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, _PIECE))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest().encode()


@contextmanager
def _file(path: Path) -> Iterator[IO[bytes]]:
    if not path.is_file():
        raise JournalError(f"{path}: there is no backup")
    with path.open("rb") as file:
        yield file


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What a ZIP file that is none, or other members than were written, may raise."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        NotImplementedError,
    ) as error:
        if isinstance(error, JournalError):
            raise
        raise DamagedError(f"{path}: is damaged, or no backup of oxiseq: {error}") from None
