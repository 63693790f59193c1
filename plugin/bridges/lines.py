"""Lines of stdin, and of a file that grows, as `tail -F` reads it.

A message is a line; of N-Quads the lines of an event, which have its graph in common and are adjacent: an event's
lines are passed on when another event begins, or nothing has come for a second. Of a file the position is kept beside:
after a restart it continues after the last line that was confirmed. A file that was moved away is read to its end
first.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from oxiseq.bridges.settings import BridgeError, BridgeSettings
from oxiseq.bridges.source import Message
from oxiseq.engine.events.write import replacing

_READ: Final = 1 << 16
_LONGEST: Final = 16 << 20
"""Bytes of a message."""
_SILENCE: Final = 1.0
"""Seconds after which an event of several lines is complete."""
_QUADS: Final = frozenset(("application/n-quads", "text/x-nquads"))


class _Cutter:
    """Bytes into messages with the offset behind each."""

    def __init__(self, offset: int, quads: bool) -> None:
        self._rest, self._offset, self._quads = b"", offset, quads
        self._event: list[bytes] = []
        self._graph = b""

    def cut(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) + sum(map(len, self._event)) > _LONGEST:
            raise BridgeError(f"a message has more than {_LONGEST} bytes")
        for line in lines:
            graph = _graph(line) if self._quads else b""
            if self._quads and graph == self._graph and self._event:
                self._event.append(line)
            else:
                yield from self.complete()
                self._event, self._graph = [line], graph
            if not self._quads:
                yield from self.complete()

    def complete(self) -> Iterator[tuple[bytes, int]]:
        """What is held back of whole lines."""
        if self._event:
            body = b"\n".join(self._event)
            self._offset += len(body) + 1
            self._event = []
            if body.strip():
                yield body, self._offset

    @property
    def rest(self) -> bytes:
        """Of a line that has no end yet."""
        return self._rest


def _graph(line: bytes) -> bytes:
    """The graph of a quad; of a triple with the time of an event its subject, which is the event's graph."""
    words = line.rstrip().removesuffix(b".").split()
    if not words:
        return b""
    if len(words) > 3 and words[-1][:1] in b"<_" and b"^^" not in words[-1]:
        return words[-1]
    return words[0]


class FollowedFile:
    """A file that grows, also before it exists and when another takes its name."""

    def __init__(self, settings: BridgeSettings, path: Path, memory: list[tuple[int, int]] | None = None) -> None:
        """`memory`: the position, where there is no file for it; it outlives this object."""
        self._path, self._position = path, settings.position
        self._memory = memory if memory is not None else []
        self._quads = settings.media_type in _QUADS
        self._file: BinaryIO | None = None
        self._cutter = _Cutter(0, self._quads)
        self._came = time.monotonic()
        self._ahead: list[Message] = []
        self._begin = settings.start == "all"
        self._known = self._read_position()

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        deadline = time.monotonic() + seconds
        while not self._ahead:
            if not self._more() and time.monotonic() >= deadline:
                break
            if not self._ahead:
                time.sleep(0.05)
        found, self._ahead = self._ahead[:most], self._ahead[most:]
        return found

    def _more(self) -> bool:
        """Whether something was read."""
        if self._file is None and not self._opened():
            return False
        assert self._file is not None
        data = self._file.read(_READ)
        if data:
            self._came = time.monotonic()
            self._ahead += map(self._message, self._cutter.cut(data))
            return True
        if time.monotonic() - self._came >= _SILENCE:
            self._ahead += map(self._message, self._cutter.complete())
            self._followed()
        return False

    def _message(self, cut: tuple[bytes, int]) -> Message:
        assert self._file is not None
        body, behind = cut
        number = os.fstat(self._file.fileno()).st_ino
        name = hashlib.blake2b(os.fsencode(self._path), digest_size=8).hexdigest()
        return Message(body, f"file/{name}/{number}/{behind}", (number, behind))

    def _opened(self) -> bool:
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            self._begin = True  # what appears is new
            return False
        number, size = (found := os.fstat(file.fileno())).st_ino, found.st_size
        known, offset = self._known
        anew = 0 if self._begin or known else _line_end(file, size)
        start = offset if known == number and offset <= size else anew
        file.seek(start)
        self._memory[:] = self._memory or [(number, start)]
        self._file, self._cutter, self._begin = file, _Cutter(start, self._quads), True
        return True

    def _followed(self) -> None:
        """Go over to a file that has taken the name, or begin again in one that was cut off."""
        assert self._file is not None
        here = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return
        if not os.path.samestat(here, there) or there.st_size < self._file.tell():
            if self._cutter.rest:  # its last line has no end, and will have none
                self._ahead += map(self._message, [*self._cutter.cut(b"\n"), *self._cutter.complete()])
            self._file.close()
            self._file, self._known = None, (0, 0)

    def _read_position(self) -> tuple[int, int]:
        if self._position is None or not self._position.exists():
            return self._memory[0] if self._memory else (0, 0)
        try:
            found = json.loads(self._position.read_text())
            return int(found[0]), int(found[1])
        except (ValueError, TypeError, IndexError) as error:
            raise BridgeError(f"{self._position} is no position of a file: {error}") from error

    def confirm(self, messages: Sequence[Message]) -> None:
        """See Source."""
        self._known = messages[-1].position
        self._memory[:] = [self._known]
        if self._position is not None:
            self._position.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self._position) as part:
                part.write_text(json.dumps(self._known))

    def close(self) -> None:
        """See Source."""
        if self._file is not None:
            self._file.close()


def _line_end(file: BinaryIO, size: int) -> int:
    """The begin of the last line: behind the last end of one."""
    file.seek(max(0, size - _READ))
    tail = file.read()
    return size - (len(tail) - tail.rfind(b"\n") - 1) if b"\n" in tail else size


class Stdin:
    """To its end. It cannot be read again: what is not durable when this ends is for who writes to send again. Raises
    BridgeError where there is none."""

    def __init__(self, settings: BridgeSettings, file: BinaryIO | None = None) -> None:
        try:
            self._file = file if file is not None else sys.stdin.buffer
            self._number = self._file.fileno()
        except (AttributeError, OSError, ValueError) as error:
            raise BridgeError(f"stdin cannot be read: {error if sys.stdin is not None else 'it is closed'}") from None
        self._cutter = _Cutter(0, settings.media_type in _QUADS)
        self._run = os.urandom(8).hex()
        self._ahead: list[Message] = []
        self._ended = self._failed = False

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source. Raises EOFError behind the last."""
        if not self._ahead and not self._ended:
            self._more(seconds)
        if not self._ahead and self._ended:
            raise EOFError
        found, self._ahead = self._ahead[:most], self._ahead[most:]
        return found

    def _more(self, seconds: float) -> None:
        data = self._data(max(seconds, _SILENCE))
        if data is None:
            cuts = list(self._cutter.complete())
        elif data:
            cuts = list(self._cutter.cut(data))
        else:
            self._ended = True
            cuts = [*self._cutter.cut(b"\n"), *self._cutter.complete()]
        self._ahead += [Message(body, f"stdin/{self._run}/{behind}") for body, behind in cuts]

    def _data(self, seconds: float) -> bytes | None:
        """None: there was nothing in time. Empty: it has ended; where it cannot be read any more that is an error
        first."""
        try:
            ready = select.select([self._number], [], [], seconds)[0]
            return os.read(self._number, _READ) if ready else None
        except OSError as error:
            if self._failed:
                return b""
            self._failed = True
            raise BridgeError(f"stdin cannot be read: {error.strerror}") from error

    def confirm(self, messages: Sequence[Message]) -> None:
        """Nobody to acknowledge to."""

    def close(self) -> None:
        """It is not ours."""
