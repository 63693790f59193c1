"""Zstandard, as Python has it from 3.14 on (`compression.zstd`) and a small package brings it before."""

from __future__ import annotations

import sys
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL: Final = 1
"""The fastest usual one: state and events are compressed while others wait."""
open_zstd, ZstdError = zstd.open, zstd.ZstdError
"""A file object as `gzip.open` gives it, and what it raises of damaged content."""


def compress(data: bytes, level: int = _LEVEL) -> bytes:
    """One frame, which says its content's size."""
    packed: bytes = zstd.compress(data, level)
    return packed


def decompress(data: bytes | memoryview, size: int) -> bytes:
    """The content of one frame, which is `size` bytes long. Raises ValueError if it is damaged or of another size."""
    unpacking = zstd.ZstdDecompressor()
    try:
        found: bytes = unpacking.decompress(data, size)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(found) != size or not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"not one compressed block of {size} bytes")
    return found
