"""The client's side of a long push: events go out over a WebSocket, and are acknowledged while more are sent.

    texts of events ─▶ messages, numbered ─▶ at most _AHEAD on their way ─▶ the server
                                ▲                                             │
                                └── sent again after a break ◀── session ─────┘ what it has stored

The server stores how far a session has come together with its events. So what was sent before a connection broke, or
before the server was killed, is sent again, and stored once.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.extras import needed
from oxiseq.grammar.records import dataclass
from oxiseq.live.settings import BusyError
from oxiseq.options.addresses import unredirected
from oxiseq.served.wire import PAUSES, How, UnreachableError, Wire

if TYPE_CHECKING:
    from websockets import exceptions
    from websockets.sync import client
else:
    client = needed("websockets.sync.client")
    exceptions = needed("websockets.exceptions")

_MESSAGE: Final = 256 << 10
"""Bytes from which on a message is sent."""
_LARGEST: Final = 512 << 10
"""Bytes of an event that is pushed by itself: both together are less than the 1 MiB that a message may have."""
_AHEAD: Final = 32
"""Messages that are sent and not acknowledged."""
_SILENCE: Final = 60.0
"""Seconds after which a server that says nothing is taken for gone; it says something every 12."""
_STUCK: Final = 120
"""Seconds for which the server may read nothing."""
_COUNTS: Final = ("accepted", "late", "ignored")
_REASONS: Final = 10
_REFUSING: Final = (401, 403, 409, 421, 429, 502, 503, 504, 507)
"""Statuses of a server that says no, also to other requests; before the first message any other one says that
WebSockets are not taken here."""


class NoSocketError(OxiseqError):
    """The server, or a proxy before it, takes no WebSockets. Nothing has been pushed, no event has been read."""


@dataclass(frozen=True, slots=True)
class _Message:
    """The texts of the events first, ..., last; `alone`: it is too large for a message."""

    first: int
    last: int
    body: bytes
    alone: bool


class LongPush:
    """The events of one session, numbered from 1 on. Not safe for threads."""

    def __init__(self, wire: Wire, stream: str, session: str) -> None:
        self.stored = 0
        """How many events the server had of this session, before this push."""
        self.counts: Counter[str] = Counter()
        """What its acknowledgements say of the events: accepted, late, ignored. One that a broken connection lost is
        not among them."""
        self.reasons: list[str] = []
        """Why queries leave events out, as far as the server says."""
        self._wire, self._stream, self._session = wire, stream, session
        self._way: deque[_Message] = deque()
        """Messages that are not acknowledged, in their order; the first `_sent` of them went over this connection."""
        self._sent = 0
        self._last = self._said = 0
        """The last event that is stored, and the last one that the server has named for this session."""
        self._opened = ExitStack()
        self._connection: client.ClientConnection | None = None
        self._begun = False

    def send(self, events: Iterator[str]) -> int:
        """Push the texts (N-Quads) of events; returns how many there are, with those that were stored before. All that
        was read of `events` is durable when this returns, and also when reading them has failed. Raises NoSocketError,
        and what `Wire.send` raises."""
        try:
            self._trying(self._begin)
            self._begun, self.stored, count = True, self._last, 0
            try:
                for message in _messages(events, self.stored):
                    count = message.last
                    self._take(message)
            finally:
                while self._way:
                    self._trying(self._wait)
            return count
        finally:
            self._close()

    @property
    def last(self) -> int:
        """The number of the last event that is stored."""
        return self._last

    def _take(self, message: _Message) -> None:
        if message.last <= self.stored:
            return
        if message.alone:
            while self._way:
                self._trying(self._wait)
            self._close()  # the next connection counts from the event behind this one
            self._push_alone(message)
            return
        self._way.append(message)
        self._trying(self._go_on)
        while len(self._way) >= _AHEAD:
            self._trying(self._wait)

    def _push_alone(self, message: _Message) -> None:
        key = hashlib.blake2b(f"{self._session} {message.first}".encode(), digest_size=16).hexdigest()
        how: How = {"content": message.body, "kind": "application/n-quads", "key": key}
        reply = self._wire.call("push", how, stream=self._stream)
        self._note(reply.json())
        self._last = message.last

    # --- one connection after the other -------------------------------------------------------------

    def _trying(self, work: Callable[[], None]) -> None:
        """Do something, over a new connection where one breaks, for as long as the wire is patient; each event that is
        stored meanwhile makes it patient again. Raises OxiseqError."""
        end, pause, before = 0.0, PAUSES[0], self._last
        while True:
            try:
                return work()
            except (OSError, EOFError, exceptions.WebSocketException, OxiseqError) as error:
                problem = self._problem(error)
                self._close()
                if not end or self._last > before:
                    end, pause, before = time.monotonic() + self._wire.patience, PAUSES[0], self._last
                if not isinstance(problem, UnreachableError | BusyError) or time.monotonic() + pause > end:
                    self._way.clear()  # it is over: to continue would take the session from who has it now
                    raise problem from error
            self._wire.pause(problem, pause)
            pause = min(2 * pause, PAUSES[1])

    def _problem(self, error: BaseException) -> OxiseqError:
        if isinstance(error, OxiseqError):
            return error
        if isinstance(error, exceptions.InvalidStatus):
            status, body = error.response.status_code, bytes(error.response.body or b"")
            if status in _REFUSING or (self._begun and _says_why(body)):  # as 404: the stream was deleted meanwhile
                return self._wire.refused(status, body)
        answered = not isinstance(error.__cause__, EOFError | OSError)  # else it has gone in the middle of it
        if isinstance(error, exceptions.InvalidHandshake) and answered and not self._begun:
            return NoSocketError(f"{self._wire.address} takes no WebSockets")
        return self._wire.unreachable(error)

    def _begin(self) -> None:
        """Learns the session's position."""
        self._connect()
        self._last = self._said
        if self._last:  # the server has to count from there on
            self._close()

    def _connect(self) -> None:
        first = self._way[0].first if self._way else self._last + 1
        asked = {"session": self._session, "first": str(first), "format": "nquads"}
        asked["limit"] = "1"  # a server without WebSockets answers this with events: one is enough
        address, options = self._wire.socket("readEvents", stream=self._stream, **asked)
        connecting = client.connect(
            address,
            compression=None,
            user_agent_header=None,
            ping_timeout=None,
            close_timeout=2,
            create_connection=unredirected(),
            **options,
        )
        self._connection = self._opened.enter_context(connecting)
        if os.name == "posix":  # else a server that vanished would block a send for ever
            self._connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _STUCK, 0))
        self._sent = 0
        told = self._line(_SILENCE)
        if told["last"] < self._said:
            raise OxiseqError(
                f"{self._wire.address} had acknowledged the events of the session {self._session!r} up to "
                f"{self._said}, and has them up to {told['last']} now: was it restored from a backup?"
            )
        self._said = told["last"]

    def _go_on(self) -> None:
        """Sends what has not been sent, and reads the answers."""
        if self._connection is None:
            self._connect()
        assert self._connection is not None
        while self._sent < len(self._way):
            try:
                self._connection.send(self._way[self._sent].body.decode())
            except exceptions.ConnectionClosed:
                self._hear()  # why
                raise
            self._sent += 1
            self._hear()

    def _wait(self) -> None:
        """Send, and wait until the server says something."""
        self._go_on()
        if self._way:
            self._acknowledge(self._line(_SILENCE))
            self._hear()

    def _hear(self) -> None:
        """All that has come."""
        with suppress(TimeoutError):
            while True:
                self._acknowledge(self._line(0))

    def _line(self, seconds: float) -> dict[str, Any]:
        """The next line of the server. Raises TimeoutError, and OxiseqError for one that says why it ends."""
        assert self._connection is not None
        told: dict[str, Any] = json.loads(self._connection.recv(seconds))
        if "error" in told:
            raise self._wire.refused(told["error"]["status"], json.dumps(told["error"]).encode())
        return told

    def _acknowledge(self, told: dict[str, Any]) -> None:
        self._note(told)
        self._said = max(self._said, told["seq"])
        while self._way and self._way[0].last <= self._said:
            self._last = self._way.popleft().last
            self._sent -= 1

    def _note(self, told: dict[str, Any]) -> None:
        """Raises OxiseqError for what cannot be stored: events behind it would have other numbers."""
        if told.get("rejected"):
            raise OxiseqError(f"{told['rejected']} events are not stored: {told['reasons'][0]['reason']}")
        self.counts.update({name: told.get(name) or 0 for name in _COUNTS})  # null where it was stored before
        self.reasons += [each["reason"] for each in told.get("reasons", ())][: _REASONS - len(self.reasons)]

    def _close(self) -> None:
        self._connection = None
        self._opened.close()


def _says_why(body: bytes) -> bool:
    """Whether the body of an answer is a server's problem details, not a proxy's page."""
    try:
        told = json.loads(body)
    except ValueError:
        return False
    return isinstance(told, dict) and "title" in told


def _messages(events: Iterator[str], stored: int) -> Iterator[_Message]:
    """Events together; those up to number `stored` are only counted. What was read before `events` fails is a message,
    too."""
    parts: list[bytes] = []
    size, first, number = 0, 1, 0

    def message(*, alone: bool = False) -> _Message:
        nonlocal parts, size, first
        made = _Message(first, number, b"".join(parts), alone)
        parts, size, first = [], 0, number + 1
        return made

    def rest() -> Iterator[_Message]:
        if first <= number:
            yield message()
        elif number <= stored:
            yield _Message(number, number, b"", False)  # how many there are

    try:
        for text in events:
            body = b"" if number < stored else text.encode()
            if len(body) > _LARGEST and parts:
                yield message()
            number += 1
            if number <= stored:
                first = number + 1
                continue
            parts.append(body)
            size += len(body)
            if size >= _MESSAGE:
                yield message(alone=len(body) > _LARGEST)
    except Exception:  # of `events`; the end of this generator is none
        yield from rest()
        raise
    yield from rest()
