"""What folders of data have besides their files: names that are not data, logs of table formats, partitions.

The knowledge base's loader and the readers of events share it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
LAKE_LOGS: Final = {"Delta": "_delta_log", "Iceberg": "metadata/*.metadata.json", "Hudi": ".hoodie"}
"""Kind of table → a pattern of what only its folder has."""


def is_hidden(path: Path, below: Path) -> bool:
    """Whether a name on the way from the folder `below` to the path begins with "_" or ".": the marks, checksums and
    unfinished files of those who write folders (_SUCCESS, .part.crc, _temporary)."""
    return any(name.startswith(("_", ".")) for name in path.relative_to(below).parts)


def partitions(path: Path) -> tuple[tuple[str, str | None], ...]:
    """Columns and their values by the names of the folders on the way to a file, as Hive and Spark write them:
    `country=DE/`. Names and values are percent-decoded; Hive's name for null is None."""
    found = {}
    for name in path.parts[:-1]:
        column, separator, value = name.partition("=")
        if column and separator:
            found[unquote(column)] = None if value == _NULL else unquote(value)
    return tuple(found.items())


def lake_kind(folder: Path) -> str | None:
    """Delta, Iceberg or Hudi, if the folder is such a table: its log says which of its files count."""
    return next((kind for kind, log in LAKE_LOGS.items() if next(folder.glob(log), None) is not None), None)


def lake_log(folder: Path) -> str | None:
    """Why the files of a folder must not be read one by one, if it is such a table."""
    kind = lake_kind(folder)
    return None if kind is None else lake_reason(kind)


def lake_reason(kind: str) -> str:
    """Why the files of such a table must not be read one by one."""
    article, name = "an" if kind == "Iceberg" else "a", kind.lower()
    return (
        f"is {article} {kind} table: its log says which of its files count, and oxiseq does not read that: "
        f"write its rows to another folder with what reads {kind} "
        f'(Spark: spark.read.format("{name}").load(...).write.parquet(...)), and give that folder'
    )
