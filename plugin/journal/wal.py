"""Detect what SQLite does not report: that it dropped the end of a damaged write-ahead log.

Each frame of the WAL has a checksum over all frames before it. Where one is wrong, SQLite ends the log there when it is
opened, without a word: for it, that is a write that was running when the machine died. But frames of the same log
behind that place were written later, so something there had been committed: it is lost. To know that, the frames' heads
are examined before SQLite opens the file; afterwards it says how many it took.

    32 bytes  head: magic, version, page size, checkpoint number, two salts, two checksums (all u32, big-endian)
    24 bytes  of each frame: page, pages of the file after a commit or 0, the two salts, two checksums; then the page
"""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path
from typing import Final

from oxiseq.grammar.records import dataclass

_HEAD: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC: Final = (0x377F0682, 0x377F0683)
_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class WalFrames:
    """What lies beside the file before it is opened. `committed`: the number of the last frame that ends a
    transaction; `whole`: whether the head can be read."""

    frames: int = 0
    committed: int = 0
    whole: bool = True


def look(path: Path) -> WalFrames:
    """At the WAL of a database file. Raises OSError."""
    wal = path.with_name(path.name + "-wal")
    if not wal.exists():
        return WalFrames()
    with wal.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return WalFrames()  # nothing has been written
        magic, _, page, _, *salts, first, second = _HEAD.unpack(head)
        size = wal.stat().st_size
        if magic not in _MAGIC or page == 0 or _checksum(head[:24], magic == _MAGIC[1]) != (first, second):
            return WalFrames(0, 0, size <= _HEAD.size)
        frames = (size - _HEAD.size) // (_FRAME.size + page)
        mine = committed = 0
        for number in range(1, frames + 1):
            file.seek(_HEAD.size + (number - 1) * (_FRAME.size + page))
            _, pages, one, other, *_ = _FRAME.unpack(file.read(_FRAME.size))
            if one == salts[0] or other == salts[1]:  # neither: of an older log, which this one is written over
                mine = number
                committed = number if pages else committed
    return WalFrames(mine, committed)


def lost(before: WalFrames, connection: sqlite3.Connection) -> str:
    """What is lost of the WAL, once SQLite has opened it; empty if nothing is. Raises sqlite3.Error."""
    if not before.whole:
        return "its write-ahead log cannot be read: the last changes of streams, queries, events or matches are lost"
    _, taken, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if before.committed <= max(0, taken):
        return ""
    return (
        f"its write-ahead log is damaged behind page {max(0, taken)} of {before.frames}: the last changes of streams, "
        "queries, events or matches are lost"
    )


def _checksum(data: bytes, big: bool) -> tuple[int, int]:
    """SQLite's, over words of 32 bits."""
    one = other = 0
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    for a, b in zip(words[::2], words[1::2], strict=True):
        one = (one + a + other) & _MASK
        other = (other + b + one) & _MASK
    return one, other
