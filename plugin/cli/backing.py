"""The work of `oxiseq backup`."""

from __future__ import annotations

from pathlib import Path

from oxiseq.journal import FILE_NAME, DamagedError, Journal


def back_up(location: Path, file: Path) -> int:
    """Copy the journal of a folder and look the copy through; its size in bytes. Raises JournalError, OSError."""
    with Journal(location / FILE_NAME, read_only=True) as journal:
        journal.backup(file)
    with Journal(file, read_only=True) as copy:
        faults = copy.verify()
    if faults:
        raise DamagedError("\n".join([f"{file}: the journal is damaged, and so is the copy:", *faults]))
    return file.stat().st_size
