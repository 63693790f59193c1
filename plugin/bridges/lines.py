"""Lines into messages, and those of stdin.

A message is a line; of N-Quads the lines of an event, which have its graph in common and are adjacent: an event's
lines are passed on when another event begins, or nothing has come for a second.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source

READ: Final = 1 << 16
_LONGEST: Final = 16 << 20
"""Bytes of a message."""
SILENCE: Final = 1.0
"""Seconds after which an event of several lines is complete."""
_QUADS: Final = frozenset(("application/n-quads", "text/x-nquads"))


def is_quads(media_type: str) -> bool:
    """Whether an event may have several lines."""
    return media_type in _QUADS


class LineCutter:
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


class Stdin(Source):
    """To its end. It cannot be read again: what is not durable when this ends is for who writes to send again. Raises
    BridgeError where there is none."""

    def __init__(self, settings: BridgeSettings, file: BinaryIO | None = None) -> None:
        super().__init__(settings)
        try:
            self._file = file if file is not None else sys.stdin.buffer
            self._number = self._file.fileno()
        except (AttributeError, OSError, ValueError) as error:
            raise BridgeError(f"stdin cannot be read: {error if sys.stdin is not None else 'it is closed'}") from None
        self._cutter = LineCutter(0, is_quads(settings.media_type))
        self._run = os.urandom(8).hex()
        self._ahead: list[Message] = []
        self._ended = self._failed = False

    @classmethod
    def opener(cls, settings: BridgeSettings) -> Callable[[], Source]:
        """See Source: it is opened once."""
        source = cls(settings)
        return lambda: source

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        if not self._ahead and not self._ended:
            self._more(seconds)
        if not self._ahead and self._ended:
            raise EOFError
        found, self._ahead = self._ahead[:most], self._ahead[most:]
        return found

    def _more(self, seconds: float) -> None:
        data = self._data(max(seconds, SILENCE))
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
            return os.read(self._number, READ) if ready else None
        except OSError as error:
            if self._failed:
                return b""
            self._failed = True
            raise BridgeError(f"stdin cannot be read: {error.strerror}") from error
