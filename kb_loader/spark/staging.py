"""The folder that holds what Spark writes between files and store; on a cluster all workers must see it."""

from __future__ import annotations

import shutil
from pathlib import Path

from oxiseq.engine.errors import KbError

MARKER = "oxiseq-parts.json"
_OURS = {MARKER, "clean", "data", "inferred", "coded", "stop"}


def new_staging(folder: Path) -> Path:
    """The folder, made or emptied of an earlier load's files. Raises KbError if it holds anything else."""
    if folder.exists():
        inside = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {folder.name}
        other = sorted(name for name in inside if name not in _OURS and not name.startswith("inferred-"))
        if other or (inside and MARKER not in inside):
            raise KbError(f"{folder}: holds {(other or sorted(inside))[0]}, which is no load's: give another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("{}\n", encoding="utf-8")
    return folder.resolve()
