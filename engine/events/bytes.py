"""The bytes of a file, plain or gzip, or of a pipe.

Gzip is unpacked ahead by a thread of its own: zlib works without Python's lock, so the second core unpacks while
the first one reads and matches. Plain files are read on demand: a copy from the system's cache.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import BinaryIO, Final, TypeAlias

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.gzip_members import inflated

_AHEAD: Final = 3
"""Pieces that may wait."""
DAMAGED: Final = (gzip.BadGzipFile, EOFError, zlib.error)
"""The errors that damaged gzip data raises."""
_GZIP: Final = b"\x1f\x8b"

Piece: TypeAlias = tuple[bytes, int]
"""Bytes, and how far the file had been read for them."""


class ByteSource(io.RawIOBase):
    """A file's bytes, unpacked. Raises gzip.BadGzipFile, EOFError and zlib.error for damaged gzip data."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.size = path.stat().st_size
        """Of the file, in bytes."""
        self.position = 0
        """How much of the file was read for the returned pieces."""
        start = self._file.read(2)
        self._piece = memoryview(b"" if self._file.seekable() else start)
        if self._file.seekable():
            self._file.seek(0)
        elif start == _GZIP:
            self._file.close()
            raise EventError(str(path), None, "a pipe with gzip data: unpack it before the pipe (zcat)")
        self._ahead = Ahead(unpacked(self._file)) if start == _GZIP else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer that can be written
        """Fill the buffer, or a part of it; 0 at the end."""
        if self._ahead is None and not self._piece:
            count = self._file.readinto(buffer) or 0
            self.position += count
            return count
        while not self._piece:
            piece = None if self._ahead is None else next(self._ahead, None)
            if piece is None:
                return 0
            self._piece, self.position = memoryview(piece[0]), piece[1]
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            if self._ahead is not None:
                self._ahead.close()
            self._file.close()
        super().close()

    def __enter__(self) -> ByteSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def unpacked(file: BinaryIO) -> Iterator[Piece]:
    """The content of a gzip file of one or several members; zeros after them are skipped."""
    for piece in inflated(file.read):
        yield piece, file.tell()


class Ahead:
    """An iterator whose pieces a thread makes ahead; its errors are raised here."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._queue: Queue[Piece | Exception | None] = Queue(_AHEAD)
        self._closing = Event()
        self._thread = Thread(target=self._work, args=(pieces,), daemon=True, name="oxiseq-unpack")
        self._thread.start()

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Piece:
        if self._closing.is_set():
            raise StopIteration
        got = self._queue.get()
        if isinstance(got, tuple):
            return got
        self._closing.set()
        if got is None:
            raise StopIteration
        raise got

    def close(self) -> None:
        """Stop the thread, and wait for it."""
        self._closing.set()
        self._thread.join()

    def _work(self, pieces: Iterator[Piece]) -> None:
        try:
            for piece in pieces:
                if not self._offer(piece):
                    return
            self._offer(None)
        except Exception as error:
            self._offer(error)

    def _offer(self, what: Piece | Exception | None) -> bool:
        while not self._closing.is_set():
            try:
                self._queue.put(what, timeout=0.1)
            except Full:
                continue
            return True
        return False
