"""Whether a store's folder is loaded whole: a file in it says so as long as it is not.

load begins ─▶ oxiseq-loading.json is there ─▶ ... ─▶ all is written, the file is taken away
"""

from __future__ import annotations

import gc
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError

MARKER = "oxiseq-loading.json"
STORE_FILE = "CURRENT"
"""A file that every RocksDB folder has."""
BATCHES = "oxiseq-batches.json"
"""What has been appended, by id."""
_OURS = re.compile(
    r"CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+|\d+\.(sst|log|dbtmp)|"
    r"bulk-\d+\.sst|OPTIONS.*dbtmp|oxiseq-(loading|batches)\.json(\.part)?|oxiseq-reserve"
)
_LOCKED = re.compile("lock file|lock hold")
"""In RocksDB's words: by another process, by this one."""


def is_store_file(name: str) -> bool:
    """Whether a store has, or may come to have, a file of this name in its folder, in upper or lower case."""
    return re.fullmatch(_OURS.pattern, name, re.IGNORECASE) is not None


def half_loaded(location: Path) -> bool:
    """Whether a load into this folder has begun and not ended."""
    return (location / MARKER).exists()


def check_whole(location: Path) -> None:
    """Raise KbError if the folder is half loaded."""
    if half_loaded(location):
        note = _note(location)
        since = note.get("begun", "?")
        if "batch" in note:
            raise KbError(
                f"{location}: the store is half loaded: an append of batch {note['batch']!r}, begun at {since}, has "
                "not ended (it was interrupted, or still runs); append the same sources as this batch again, or load "
                "all with --restart"
            )
        raise KbError(
            f"{location}: the store is half loaded: a load begun at {since} has not ended (it was interrupted, or "
            "still runs); load again with `oxiseq load ... --location` to start over"
        )


def begin(location: Path, *, restart: bool) -> RdfStore:
    """An empty store, marked as half loaded. What an interrupted load left is taken away; a whole store only if
    `restart`. Raises KbError, also if the folder holds other things than a store."""
    old = _old_entries(location, restart)
    location.mkdir(parents=True, exist_ok=True)
    _write(location / MARKER, _begun())
    for entry in old:  # after the marker is there: a kill in between must not leave half an old store unmarked
        entry.unlink(missing_ok=True)
    try:
        return _opened(location)
    except OSError as error:
        raise not_opened(location, error) from error


def holds_store(location: Path) -> bool:
    """Whether a store is in the folder: every one of RocksDB's has this file."""
    return (location / STORE_FILE).exists()


def begin_append(location: Path, batch: str, reasons: Callable[[RdfStore], bool]) -> tuple[RdfStore, bool]:
    """The store that is there, marked as half loaded with the batch, and whether its inferred statements are to be made
    again: `reasons` says so, or did when an append of this batch began that was interrupted.

    Raises KbError if the folder holds no store, or another load into it has not ended."""
    if not holds_store(location):
        raise KbError(f"{location}: holds no store to append to; load without --append")
    note = _note(location) if half_loaded(location) else {}
    if half_loaded(location) and note.get("batch") != batch:
        check_whole(location)
    try:
        store = _opened(location)
    except OSError as error:
        raise not_opened(location, error) from error
    for left in location.glob("bulk-*.sst"):  # of a bulk load that was killed: what is loaded has another name
        left.unlink(missing_ok=True)
    wanted = bool(note.get("reasoning")) or reasons(store)
    _write(location / MARKER, _begun() | {"batch": batch, "reasoning": wanted})
    return store, wanted


def batches(location: Path) -> dict[str, Any]:
    """What has been appended to a store and is whole there: id → what is known of it."""
    if half_loaded(location) or not (location / BATCHES).exists():
        return {}
    found: dict[str, Any] = json.loads((location / BATCHES).read_text(encoding="utf-8"))
    return found


def note_batch(location: Path, batch: str, read: int) -> None:
    """A batch is whole in the store; before `end`."""
    known = json.loads((location / BATCHES).read_text(encoding="utf-8")) if (location / BATCHES).exists() else {}
    _write(location / BATCHES, known | {batch: _begun() | {"read": read}})


def _begun() -> dict[str, Any]:
    return {"begun": datetime.now(UTC).isoformat(timespec="seconds"), "process": os.getpid()}


def _note(location: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((location / MARKER).read_text(encoding="utf-8") or "{}")
    return found


def _write(path: Path, note: dict[str, Any]) -> None:
    """The file as a whole, or as it was."""
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as out:
        out.write(json.dumps(note))
        out.flush()
        os.fsync(out.fileno())
    part.replace(path)


def not_opened(location: Path, error: OSError) -> KbError:
    """What to raise where a folder cannot be opened as a store: RocksDB lets only one process write to it."""
    reason = "it is open already, perhaps in a server" if _LOCKED.search(str(error)) else str(error)
    return KbError(f"{location}: cannot be opened as a store: {reason}")


def end(location: Path) -> None:
    """The store is whole."""
    (location / MARKER).unlink()


def _opened(location: Path) -> RdfStore:
    try:
        return RdfStore(str(location))
    except OSError as error:
        if "current process" not in str(error):
            raise
    gc.collect()  # a load of this process that has failed: its error's traceback may hold the store
    return RdfStore(str(location))


def _old_entries(location: Path, restart: bool) -> list[Path]:
    """The files of the store that is to be replaced. Raises KbError if it must not be."""
    if not location.exists():
        return []
    if not location.is_dir():
        raise KbError(f"{location}: is not a folder")
    entries = list(location.iterdir())
    foreign = sorted(e.name for e in entries if not _OURS.fullmatch(e.name))
    if foreign:
        raise KbError(f"{location}: holds {foreign[0]}, which is not a store's: give a new folder")
    if not entries:
        return []
    if half_loaded(location) and "batch" in _note(location) and not restart:
        check_whole(location)
    if not half_loaded(location) and not restart:
        raise KbError(f"{location}: holds a store already; --restart replaces it")
    try:
        _opened(location)  # takes RocksDB's lock, and lets it go at once
    except OSError as error:
        if _LOCKED.search(str(error)):
            raise KbError(f"{location}: another process has the store open: {error}") from error
    return [entry for entry in location.iterdir() if entry.name != MARKER]
