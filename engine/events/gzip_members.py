"""The content of gzip data, of one member or of many, in time that grows with the data alone.

zlib copies input that it does not need: with a whole block behind each member, many small members would
cost the square of their number. So a member begins with a small piece, and pieces double.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final

PACKED: Final = 1 << 18
"""Compressed bytes read at a time."""
UNPACKED: Final = 1 << 21
"""Bytes unpacked at a time, at most."""
_FIRST: Final = 512
"""Compressed bytes that a member begins with."""
_MAGIC: Final = b"\x1f\x8b"
_ZEROS: Final = re.compile(rb"\0*")


def inflated(read: Callable[[int], bytes], most_members: int | None = None) -> Iterator[bytes]:
    """The content, piece by piece; zeros behind a member are skipped. `read` gives at most so many bytes, none at
    the end. Raises gzip.BadGzipFile, EOFError and zlib.error for damaged data and for too many members."""
    block, at, members = read(PACKED), 0, 0
    while block:
        start = block[at : at + len(_MAGIC)]
        if not _MAGIC.startswith(start):
            raise gzip.BadGzipFile(f"Not a gzipped file ({start!r})")
        members += 1
        if most_members is not None and members > most_members:
            raise gzip.BadGzipFile(f"more than {most_members:,} gzip members; pack the data in one")
        inflate, size = zlib.decompressobj(zlib.MAX_WBITS | 16), _FIRST
        while not inflate.eof:
            if at == len(block):
                block, at = read(PACKED), 0
                if not block:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            packed = block[at : at + size]
            at, size = at + len(packed), min(2 * size, PACKED)
            while packed:
                piece = inflate.decompress(packed, UNPACKED)
                if piece:
                    yield piece
                packed = inflate.unconsumed_tail
        at = _member_begins(block, at - len(inflate.unused_data))
        while block and at == len(block):
            block = read(PACKED)
            at = _member_begins(block, 0)


def _member_begins(block: bytes, at: int) -> int:
    zeros = _ZEROS.match(block, at)
    assert zeros is not None  # no zeros are zeros, too
    return zeros.end()
