"""Where bad statements go: a folder with one JSON Lines file per source that has any.

A line is {"file": ..., "line": ... or null, "reason": ..., "text": ...}; lines count from 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from oxiseq.engine.errors import KbError
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.sources import Source

LONGEST = 2_000
"""Characters of a bad statement that are kept; a statement that is not closed may reach to the file's end."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A bad statement: its first and last line (None: not known), why, and its text if that is at hand."""

    line: int | None
    last: int | None
    reason: str
    text: str | None = None


def cut_off(error: Exception) -> Fault:
    """A file cannot be read to its end: it is cut off, or not what its ending says."""
    return Fault(None, None, f"cannot be read on: {error}")


_OURS = re.compile(r"[0-9]{4,}-.+\.jsonl", re.DOTALL)


class Quarantine:
    """The folder; made when the first fault comes. `strict`: the first fault stops the load instead.

    Raises KbError if the folder holds anything else than an earlier load's faults."""

    def __init__(self, folder: Path, *, strict: bool = False) -> None:
        self.folder = folder
        self._check()
        self.count = 0
        self.first: list[str] = []
        """The first five faults, as `file:line: reason`."""
        self.strict = strict
        self._files = 0

    def _check(self) -> list[Path]:
        if not self.folder.exists():
            return []
        old = list(self.folder.iterdir()) if self.folder.is_dir() else [self.folder]
        other = [e for e in old if not self.folder.is_dir() or e.is_dir() or not _OURS.fullmatch(e.name)]
        if other:
            raise KbError(f"{other[0]}: is not a quarantine's: give another folder for the quarantine")
        return old

    def empty(self) -> None:
        """Remove what an earlier load has left."""
        for entry in self._check():
            entry.unlink()

    def judge(self, source: Source, fault: Fault) -> None:
        """Count a fault. Raises KbError if strict."""
        place = f"{source.label}:{fault.line}" if fault.line is not None else source.label
        told = f"{place}: {fault.reason}"
        if self.strict:
            raise KbError(told)
        self.count += 1
        if len(self.first) < 5:
            self.first.append(told)

    def write(self, source: Source, faults: Iterable[Fault]) -> None:
        """Write a source's faults (already judged), with the text of their lines."""
        ordered = sorted(faults, key=lambda f: f.line or 0)
        if not ordered:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._files = max(self._files, sum(1 for _ in self.folder.iterdir())) + 1  # behind those of an earlier run
        with (self.folder / f"{self._files:04}-{source.path.name}.jsonl").open("w", encoding="utf-8") as out:
            for fault, text in zip(ordered, texts(source, ordered), strict=True):
                record = {"file": source.label, "line": fault.line, "reason": fault.reason, "text": text}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")


def texts(source: Source, faults: list[Fault], opened: Callable[[], IO[bytes]] | None = None) -> Iterator[str | None]:
    """The lines of each fault, cut at `LONGEST` characters. A fault within lines already given gets those again.
    `opened`: see `Source.open`; a source with a name is not read without."""
    if source.name and opened is None:
        yield from (fault.text for fault in faults)
        return
    content, raw = source.open(opened)
    with raw, content:
        at, held = 1, ""
        for fault in faults:
            if fault.text is not None or fault.line is None:
                yield fault.text[:LONGEST] if fault.text is not None else None
                continue
            if fault.line >= at:
                for _ in range(fault.line - at):
                    content.readline()
                at = max(fault.last or fault.line, fault.line) + 1
                held = _joined(content, at - fault.line)
            yield held


def _joined(content: IO[bytes], lines: int) -> str:
    held = ""
    for _ in range(lines):
        line = content.readline().decode("utf-8", "replace")
        if len(held) < LONGEST:
            held += line
    return held.rstrip("\r\n")[:LONGEST]
