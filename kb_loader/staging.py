"""The folder that holds what Spark writes between files and store; on a cluster all workers must see it."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader.sources import PARTS

_OURS = {PARTS, "clean", "data", "inferred", "coded", "stop"}


def check_staging(folder: Path) -> None:
    """Raise KbError if the folder holds anything else than an earlier load's files."""
    if not folder.exists():
        return
    inside = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {folder.name}
    other = sorted(name for name in inside if name not in _OURS and not name.startswith("inferred-"))
    if other or (inside and PARTS not in inside):
        raise KbError(f"{folder}: holds {(other or sorted(inside))[0]}, which no load wrote: give another folder")


def new_staging(folder: Path, *, keep: bool = False) -> Path:
    """The folder, made or emptied of an earlier load's files. Raises KbError if it holds anything else."""
    check_staging(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _empty(folder)
    (folder / PARTS).write_text(json.dumps({"kept": keep}) + "\n", encoding="utf-8")
    return folder.resolve()


def remove_staging(folder: Path) -> None:
    """Take the folder away."""
    with suppress(OSError):
        _empty(folder)
        (folder / PARTS).unlink()
        folder.rmdir()


def remove_left(folder: Path) -> None:
    """Removes what a killed load has left there, unless it was to be kept."""
    try:
        check_staging(folder)
        note = json.loads((folder / PARTS).read_text(encoding="utf-8"))
    except (KbError, OSError, ValueError):
        return
    if note.get("kept") is False:
        remove_staging(folder)


def _empty(folder: Path) -> None:
    """The marker stays: whenever this is interrupted, the folder is still seen to be ours."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != PARTS:
            entry.unlink()
