"""Whether one process will do, or Spark is needed: from the input's size and the machine's memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from oxiseq.engine.errors import KbError
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.java import SparkMissing, spark_missing
from oxiseq.kb_loader.sources import CODED, Source

Engine: TypeAlias = Literal["auto", "plain", "spark"]
UNPACKED = {"": 1, ".gz": 10, ".bz2": 14, ".xz": 16, ".zst": 11, CODED: 5}
"""How many times as big RDF text is unpacked, about."""
_SHARE = 0.5
"""Of the memory: what one process may take of text. Counting and reasoning hold distinct terms in memory."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine, and why."""

    engine: Literal["plain", "spark"]
    why: str


def choose(engine: Engine, sources: Sequence[Source], asked: str | None = None) -> Choice:
    """`engine`, or with "auto": Spark if the sources are too big for one process, or if `asked` names an option that
    only Spark has.

    Raises KbError if `engine` is unknown, or plain in spite of `asked`; SparkMissing if Spark is requested and missing.
    """
    if engine not in ("auto", "plain", "spark"):
        raise KbError(f"unknown engine {engine!r}; known: auto, plain, spark")
    if engine == "plain":
        if asked is not None:
            raise KbError(f"{asked} is Spark's: leave it, or take engine spark")
        return Choice("plain", "one process, as requested")
    size, memory = unpacked(sources), machine_memory()
    big = f"about {_told(size)} of text"
    room = f"{_told(int(memory * _SHARE))}, half of the memory"
    if engine == "spark" or asked is not None:
        if (missing := spark_missing()) is not None:
            raise SparkMissing(missing)
        return Choice("spark", "Spark, as requested" if engine == "spark" else f"Spark, which {asked} is for")
    if size <= memory * _SHARE:
        return Choice("plain", f"one process: {big}, and Spark from {room}")
    if (missing := spark_missing()) is not None:
        return Choice("plain", f"one process, although {big} is more than {room}; Spark cannot be used: {missing}")
    return Choice("spark", f"Spark: {big} is more than {room}")


def unpacked(sources: Sequence[Source]) -> int:
    """Bytes of the sources when unpacked, about."""
    return sum(source.size * (UNPACKED[source.packing] if source.ending != ".parquet" else 5) for source in sources)


def machine_memory() -> int:
    """Bytes that this process may have: the machine's, or its container's if less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in map(Path, _LIMITS):
        try:
            text = limit.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)


def _told(size: int) -> str:
    return f"{size / _GIB:.1f} GiB" if size >= _GIB / 10 else f"{size / (1 << 20):.1f} MiB"
