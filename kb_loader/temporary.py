"""A temporary folder that goes away with its process; what killed processes have left is taken away by the next."""

from __future__ import annotations

import fcntl
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import IO

_PREFIX = "oxiseq-spark-"
_LOCK = "lock"
_held: list[IO[bytes]] = []
"""Locks of this process's folders; the system lets them go when the process ends, however it ends."""


def new_temporary() -> Path:
    """A new folder under TMPDIR, held by this process. Raises OSError."""
    for left in Path(gettempdir()).glob(_PREFIX + "*"):
        _remove_if_left(left)
    folder = Path(mkdtemp(prefix=_PREFIX))
    lock = (folder / _LOCK).open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    lock.write(b"held")
    lock.flush()
    _held.append(lock)
    return folder


def _remove_if_left(folder: Path) -> None:
    # an OSError: it is held, being made, another user's, or another process has been quicker
    with suppress(OSError), (folder / _LOCK).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if held.seek(0, 2):  # it is written when it is held
            shutil.rmtree(folder, ignore_errors=True)
