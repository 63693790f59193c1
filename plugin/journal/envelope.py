"""The outer form of every blob: what it is, how much it holds, whether it is whole.

32 bytes, little-endian, then the body:

    bytes  2   kind: `oE` events, `oM` matches
    u8         version of the body's form
    u8         1: the body is compressed (Zstandard)
    u32        CRC-32 of all other fields and of the body as stored (SQLite has no checksums of its own)
    u32        how many events or matches
    u32        the size of the body before compression
    i64 i64    the smallest and the largest time (µs), 0 when there is none
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.zstd import compress, decompress
from oxiseq.grammar.records import dataclass
from oxiseq.journal.errors import DamagedError, VersionError

_HEAD: Final = struct.Struct("<2sBB")
_CHECK: Final = struct.Struct("<I")
_REST: Final = struct.Struct("<IIqq")
_REST_AT: Final = _HEAD.size + _CHECK.size
_SIZE: Final = _REST_AT + _REST.size
VERSION: Final = 1
_COMPRESS_FROM: Final = 256
"""Bytes from which on compression is tried: a single event of five triples becomes a third smaller."""
_LARGEST: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Summary:
    """The fields of the head: the number of events or matches, smallest and largest time (µs)."""

    count: int
    min_time: int
    max_time: int


def seal(kind: bytes, times: NDArray[np.int64], body: bytes) -> bytes:
    """The blob of a body that holds things of these times."""
    low, high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
    return seal_with(kind, Summary(len(times), low, high), body)


def seal_with(kind: bytes, head: Summary, body: bytes) -> bytes:
    """The blob of a body that holds what `head` says."""
    size, packed = len(body), 0
    if size >= _COMPRESS_FROM:
        small = compress(body)
        if len(small) < size:
            body, packed = small, 1
    begin = _HEAD.pack(kind, VERSION, packed)
    rest = _REST.pack(head.count, size, head.min_time, head.max_time)
    return begin + _CHECK.pack(_checksum(begin, rest + body)) + rest + body


def summary(kind: bytes, blob: bytes) -> Summary:
    """What the head of a blob says, after a check that the blob is whole. Raises DamagedError, VersionError."""
    _, count, _, low, high = _checked(kind, blob)
    return Summary(count, low, high)


def unseal(kind: bytes, blob: bytes) -> tuple[int, bytes]:
    """How many things a blob holds, and its body. Raises DamagedError, VersionError."""
    packed, count, size, _, _ = _checked(kind, blob)
    body = blob[_SIZE:]
    if packed:
        try:
            body = decompress(body, size)
        except ValueError as error:
            raise DamagedError(f"a damaged blob: {error}") from error
    if len(body) != size:
        raise DamagedError("a damaged blob: its size is wrong")
    return count, body


def _checksum(begin: bytes, rest: bytes | memoryview) -> int:
    return zlib.crc32(rest, zlib.crc32(begin))


def _checked(kind: bytes, blob: bytes) -> tuple[int, int, int, int, int]:
    if len(blob) < _SIZE:
        raise DamagedError("a damaged blob: it is cut off")
    given, version, packed = _HEAD.unpack_from(blob)
    if given != kind:
        raise DamagedError(f"a blob of another kind: {given!r} instead of {kind!r}")
    if version != VERSION:
        raise VersionError(f"a blob of version {version}; this program reads {VERSION}")
    (check,) = _CHECK.unpack_from(blob, _HEAD.size)
    if _checksum(blob[: _HEAD.size], memoryview(blob)[_REST_AT:]) != check:
        raise DamagedError("a damaged blob: its checksum is wrong")
    count, size, low, high = _REST.unpack_from(blob, _REST_AT)
    if size > _LARGEST:
        raise DamagedError("a damaged blob: its size is beyond all bounds")
    return packed, count, size, low, high


class Cutter:
    """Takes a body apart, array by array."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def fields(self, form: struct.Struct) -> tuple[int, ...]:
        """The next fields. Raises DamagedError like the others."""
        self._need(form.size)
        found: tuple[int, ...] = form.unpack_from(self._body, self._at)
        self._at += form.size
        return found

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        """The next `count` numbers, a view that cannot be written to."""
        width = int(dtype[-1])
        self._need(count * width)
        found = np.frombuffer(self._body, dtype, count, self._at)
        self._at += count * width
        return found

    def bytes(self, size: int) -> bytes:
        """The next bytes."""
        self._need(size)
        self._at += size
        return self._body[self._at - size : self._at]

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._body):
            raise DamagedError("a damaged blob: something is left over")

    def _need(self, size: int) -> None:
        if size < 0 or self._at + size > len(self._body):
            raise DamagedError("a damaged blob: it ends too soon")
