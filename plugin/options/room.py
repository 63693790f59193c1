"""Room on the disk, of which all that write beside the journal leave a reserve.

A disk that is full to the last byte lets nobody delete anything, nor a server start: journal and store write first.
So what makes files larger is refused while less than KEEP_FREE would be left: of the journal, the store, sinks' files,
dead letters. Others fill disks, too: a server also holds a file of that size, and lets it go when it needs the room.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage
from typing import Final

# --- paths -----------------------------------------------------------------------------------------------


def overlap(one: Path, other: Path) -> bool:
    """Whether a path is the other one, or lies below or above it, wherever links, `..` and the working folder lead. Two
    names of one file (hard links, upper and lower case where the disk does not tell them apart) are one."""
    first, second = one.resolve(), other.resolve()
    return _within(first, second) or _within(second, first)


def _within(inner: Path, outer: Path) -> bool:
    if outer == inner or outer in inner.parents:
        return True
    for each in (inner, *inner.parents):
        with suppress(OSError):  # it does not exist
            if os.path.samefile(each, outer):
                return True
    return False


# --- room ------------------------------------------------------------------------------------------------

KEEP_FREE: Final = 32 << 20
"""Bytes of the disk that are left free."""
HELD: Final = "oxiseq-reserve"
"""The file that holds as many, in a server's folder."""


def free(folder: Path) -> int:
    """Bytes. Raises OSError."""
    return disk_usage(folder).free


def lacking(folder: Path, more: int = 0, part: float = 1.0) -> str:
    """Why there is no room for so many bytes more beside a part of the reserve; empty if there is. Raises OSError."""
    left = free(folder)
    needed = int(KEEP_FREE * part) + more
    return f"{left:,} bytes are free, {needed:,} are needed" if left < needed else ""


def hold(folder: Path) -> None:
    """Hold a reserve in a folder, where there is room enough."""
    file = folder / HELD
    with suppress(OSError):  # a disk that cannot allocate, or is too small, is watched by `lacking` alone
        if file.exists() or free(folder) < 2 * KEEP_FREE or not hasattr(os, "posix_fallocate"):
            return
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            os.posix_fallocate(opened, 0, KEEP_FREE)
        finally:
            os.close(opened)


def let_go(folder: Path) -> None:
    """Let the held reserve go, so that its room can be used."""
    with suppress(OSError):
        (folder / HELD).unlink()
