"""What a task reads: stretches of big line files, and whole files of other formats, small ones together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from oxiseq.grammar.byte_order import MARK
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.lines import BLOCK
from oxiseq.kb_loader.sources import LINE_FORMATS, Partitions, Source

SIZE = 1 << 26
"""Bytes of a task, about: at most of a line file's, at least of small files together."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a file: the lines that begin at the bytes from `start` on, before `end`; None: the whole file.

    `source` is the file's place in the list of sources; `partitions`: its own.
    """

    source: int
    path: str
    start: int = 0
    end: int | None = None
    partitions: Partitions = ()


def tasks(sources: Sequence[Source], size: int = SIZE) -> list[list[Piece]]:
    """The pieces of all sources, by task."""
    found: list[list[Piece]] = []
    room = 0
    for number, source in enumerate(sources):
        for piece, length in _pieces(number, source, size):
            if length > room or not found:
                found.append([])
                room = size
            found[-1].append(piece)
            room -= length
    return found


def _pieces(number: int, source: Source, size: int) -> Iterator[tuple[Piece, int]]:
    if source.name:  # no file of this machine: see asked.py
        return
    path, length = str(source.path.resolve()), source.size
    if source.format not in LINE_FORMATS or source.packing:
        yield Piece(number, path, partitions=source.partitions), length * (4 if source.packing else 1)
        return
    for start in range(0, length, size):
        yield Piece(number, path, start, min(start + size, length)), min(size, length - start)


def lines_of(piece: Piece) -> Iterator[bytes]:
    """The lines of a stretch, in blocks."""
    assert piece.end is not None
    with Path(piece.path).open("rb") as content:
        if piece.start:
            content.seek(piece.start - 1)
            content.readline()  # the end of a line that begins before
        elif content.peek(len(MARK)).startswith(MARK):
            content.seek(len(MARK))
        while (at := content.tell()) < piece.end:
            block = content.read(min(BLOCK, piece.end - at))
            yield block if block.endswith(b"\n") else block + content.readline()
