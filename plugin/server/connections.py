"""Connections: how many there may be, and how long one may take for what it sends and reads.

A request must come, and an answer must be taken, at a rate that no working client falls below; and when there is no
room for a new connection, the one that has waited longest without a request goes for it. So whoever sends a request is
answered, however many others only hold connections open.

A Connection lies between the socket and the server's HTTP protocol, or that of WebSockets after it. It sees bytes
come and go, and the application (edge.py) says when a request is at work. As long as all that comes are small
pushes it gives them to a Short (pushes.py), one after the other. From the first bytes on that are something else
all is the HTTP protocol's: nobody but it knows where a request of it ends, so it never goes back.
"""

from __future__ import annotations

import asyncio
import logging
import socket as socket_module
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

LOG: Final = logging.getLogger("oxiseq.server")
SPARE_FILES: Final = 128
"""File descriptors that connections leave to the store, the journal and workers."""
BACKLOG: Final = 100
"""Connections that wait to be accepted: fewer than there are spare files, for they may come all at once."""
LONGEST_HEAD: Final = 256 << 10
"""Bytes of a request before its body."""
_LEAST_RATE: Final = 1024
"""Bytes a second that a client must send of a request, and take of an answer."""
_GATHERED: Final = 64 << 10
"""Bytes beyond which nothing is gathered any more."""
_UNHEARD: Final = 4 << 20
"""Bytes of a WebSocket between two messages: pings and parts of one, of which there may be any number, else."""
_AT_ONCE: Final = 64
"""Connections that go at once where there is no room."""
LEAVE: Final = -1
"""What a Short says of what is not for it."""
_LOG_EVERY: Final = 60.0
_USER_TIMEOUT: Final[int | None] = getattr(socket_module, "TCP_USER_TIMEOUT", None)
"""Linux's."""
_TCP: Final = (socket_module.AF_INET, socket_module.AF_INET6)
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 5\r\nConnection: close\r\n\r\n"
)
_HEAD_TOO_LONG: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

try:
    import resource
except ModuleNotFoundError:  # Windows, which has no such limit
    _HAS_LIMITS = False
else:
    _HAS_LIMITS = True


def raise_open_files() -> None:
    """Let this process have as many open files as it may give itself."""
    if _HAS_LIMITS:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(wanted: int) -> int:
    """So many, or what the limit of open files leaves."""
    if not _HAS_LIMITS:
        return wanted
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - SPARE_FILES))


class Short(Protocol):
    """Takes requests that need no HTTP server."""

    def take(self, connection: Connection, data: bytes) -> int:
        """How many bytes of `data` are a request, which is under way then and ends with `connection.answer`; 0 while
        that is not known; LEAVE: it is something else."""
        ...


class CountedConnection(Protocol):
    """An open connection, whatever it speaks; times are monotonic."""

    client: object
    waits_since: float
    """When it was accepted or answered last."""

    @property
    def waiting(self) -> bool:
        """Whether it may go for another: no request of it is at work, and no answer running."""
        ...

    def too_slow(self, now: float, slow: float, stall: float) -> bool:
        """Whether it sends or takes less than it must."""
        ...

    def abort(self) -> None:
        """Close it, whatever is running."""
        ...


class Connections:
    """The open ones, at most so many. `slow`, `stall`: seconds, see ServerSettings; `rest`: seconds after which one
    goes that has no request. For the loop's thread."""

    short: Short | None = None

    def __init__(self, most: int, slow: float, stall: float, rest: float = 120.0) -> None:
        self._most, self._slow, self.stall, self._rest = most, slow, stall, rest
        self._open: dict[object, CountedConnection] = {}
        self._told = -_LOG_EVERY

    def of(self, client: object) -> Connection | None:
        """That of a client, (address, port); None when it has left already."""
        found = self._open.get(client)
        return found if isinstance(found, Connection) else None

    def admit(self, connection: CountedConnection) -> bool:
        """Take a new one in, in the place of a handshake of its client; False where all others are at work."""
        if connection.client not in self._open and len(self._open) >= self._most and not self._make_room():
            return False
        self._open[connection.client] = connection
        return True

    def lost(self, connection: CountedConnection) -> None:
        """One has ended."""
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]

    def cut_slow(self) -> None:
        """Those end that send or take less than they must, and those that rest for too long."""
        now = time.monotonic()
        for connection in list(self._open.values()):
            if connection.too_slow(now, self._slow, self.stall) or (
                connection.waiting and now - connection.waits_since > self._rest
            ):
                connection.abort()

    def abort(self) -> None:
        """All end."""
        for connection in list(self._open.values()):
            connection.abort()

    def _make_room(self) -> bool:
        """Closes a few connections without a request; returns whether there were any."""
        waiting = sorted((c for c in self._open.values() if c.waiting), key=lambda c: c.waits_since)
        now = time.monotonic()
        if now - self._told >= _LOG_EVERY:
            self._told = now
            LOG.warning("%d connections are open, the limit: those that wait longest are closed", len(self._open))
        for connection in waiting[:_AT_ONCE]:
            connection.abort()
            self.lost(connection)
        return bool(waiting)


class Connection(asyncio.Protocol):
    """One of them; times are monotonic. `inner` speaks HTTP."""

    def __init__(self, owner: Connections, inner: asyncio.Protocol) -> None:
        self._owner, self._inner = owner, inner
        self._short = owner.short
        """Gets what comes, until something comes that it leaves."""
        self._kept = b""
        """What has come for it, and is not taken yet."""
        self._taking = False
        """Whether it is being called."""
        self.full = False
        """Whether the client does not take what is sent."""
        self._transport: _Gathering | None = None
        self.client: object = None
        self.gone = False
        """Whether the client has left."""
        self.on_gone: Callable[[], None] = lambda: None
        self.waits_since = self._begun = time.monotonic()
        """When it was accepted or answered last; when its request began."""
        self._requests = 0
        """How many have been known."""
        self._reading = self._in_body = self._working = False
        """Whether a request has begun to come; is known, but its body has not come; has come whole."""
        self._received = self._unasked = 0
        """Bytes of the request; those that came since one, or a message, was last known or read."""
        self._unheard_since = 0.0
        """When a WebSocket's last message came; 0: it is none."""
        self._moved: tuple[int, float] | None = None
        """Bytes of answers that the client has taken, and since when no more of them; while there are some for it."""
        self._looked: tuple[int, float] | None = None
        """Their number when the rate was last measured, and the time of that."""

    # --- asyncio's ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is accepted."""
        self._transport = _Gathering(cast(asyncio.Transport, transport), self._go_over)
        self._give_up_after(self._owner.stall)
        client = transport.get_extra_info("peername")
        self.client = client[:2] if client else self
        if not self._owner.admit(self):
            self._transport.write(_TOO_MANY)
            self._transport.close()
        self._inner.connection_made(cast(asyncio.Transport, self._transport))

    def data_received(self, data: bytes) -> None:
        """Bytes of a request have come."""
        if not self._reading and not self._working:
            self._begin_reading()
        self._received += len(data)
        if self._unheard_since:
            self._unasked += len(data)
            if self._unasked > _UNHEARD + (time.monotonic() - self._unheard_since) * _LEAST_RATE:
                self.abort()
                return
        elif not self._in_body:
            if self._unasked > LONGEST_HEAD:
                self._refuse(_HEAD_TOO_LONG)
                return
            self._unasked += len(data)
        if self._short is None:
            self._inner.data_received(data)
        else:
            self._kept += data
            self._take()

    def eof_received(self) -> bool | None:
        """The client sends nothing more."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self.gone = True
        self._owner.lost(self)
        self._inner.connection_lost(exc)
        self.on_gone()

    def pause_writing(self) -> None:
        """The client does not take what is sent."""
        self.full = True
        self._inner.pause_writing()
        if self._unheard_since and self._transport is not None:
            self._transport.hold(True)  # its pings would be answered without end

    def resume_writing(self) -> None:
        """It does again."""
        self.full = False
        self._inner.resume_writing()
        if self._short is not None:
            self._take()
        elif self._transport is not None:
            self._transport.hold(False)

    # --- the application's --------------------------------------------------------------------------

    def begin(self) -> int:
        """A request is known; its body is read. Its number."""
        if not self._reading:
            self._begin_reading()
        self._in_body, self._unasked = True, 0
        self._requests += 1
        return self._requests

    def work(self) -> None:
        """Its body has come. uvicorn stops reading while it hands out a long one; it would not see the client go."""
        self._reading = self._in_body = False
        self._working = True
        flow = getattr(self._inner, "flow", None)  # a WebSocket has none
        if flow is not None:
            flow.resume_reading()

    def converse(self, *, socket: bool) -> None:
        """The request has no end: what it sends comes when there is something. `socket`: as messages, each of which is
        given by `hear`."""
        self.work()
        self._in_body = True
        if socket:
            self._unheard_since, self._unasked = time.monotonic(), 0
        else:
            self._give_up_after(0)  # who sends all first and reads then does not take for long what we say

    def hear(self) -> None:
        """A message has come whole."""
        self._unheard_since, self._unasked = time.monotonic(), 0

    def close(self) -> None:
        """Close it when what has been sent is taken."""
        if self._transport is not None:
            self._transport.close()

    def end(self, request: int) -> None:
        """A request is answered. The client may know that before we do, and have sent the next one."""
        if request < self._requests:
            return
        self._reading = self._in_body = self._working = False
        self._unasked = 0
        self.waits_since = time.monotonic()

    def answer(self, data: bytes) -> None:
        """The answer to what a Short has taken."""
        assert self._transport is not None
        self._transport.write(data)
        self.end(self._requests)
        self._transport.finish()
        self._take()

    def abort(self) -> None:
        """Close it, whatever is running."""
        if self._transport is not None:
            self._transport.abort()

    def _take(self) -> None:
        """Have the next request of what has come taken; nothing more is read meanwhile. One that is answered at once
        is followed by the next in the loop's next turn: what one client sends in a row must not hold up others."""
        if self._taking or self._transport is None or self._short is None:
            return
        size = 0
        if self._kept and not (self._working or self.full or self._transport.is_closing()):
            if not self._reading:
                self._begin_reading()
            self._taking = True
            try:
                size = self._short.take(self, self._kept)
            finally:
                self._taking = False
            self._kept = self._kept[max(size, 0) :]
            self._transport.answering = self._working
        again = size > 0 and bool(self._kept) and not self._working
        self._transport.hold(bool(self._kept) and (self._working or self.full or again))
        if again:
            asyncio.get_running_loop().call_soon(self._take)
        elif size == LEAVE:
            self._short, data, self._kept = None, self._kept, b""
            self._inner.data_received(data)

    def _go_over(self, inner: asyncio.Protocol) -> None:
        """Another protocol speaks from now on."""
        self._inner = inner

    def _give_up_after(self, seconds: float) -> None:
        """Have the system end the connection when the other side has acknowledged nothing for so long, though there
        was something to: the client has vanished. 0: the system's own limit."""
        made = None if self._transport is None else self._transport.get_extra_info("socket")
        if made is not None and made.family in _TCP and _USER_TIMEOUT is not None:
            made.setsockopt(socket_module.IPPROTO_TCP, _USER_TIMEOUT, int(seconds * 1000))

    def _begin_reading(self) -> None:
        self._reading, self._begun, self._received = True, time.monotonic(), 0

    def _refuse(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if not self._working:
                self._transport.write(answer)
            self._transport.close()

    # --- how slow it is -----------------------------------------------------------------------------

    @property
    def address(self) -> str | None:
        """That of the client."""
        return str(self.client[0]) if isinstance(self.client, tuple) else None

    @property
    def pending(self) -> int:
        """Bytes of answers that the client has not taken yet."""
        return 0 if self._transport is None or self.gone else self._transport.get_write_buffer_size()

    @property
    def waiting(self) -> bool:
        """Whether no whole request of it is at work, and no answer running."""
        return not self._working and not self.pending

    def too_slow(self, now: float, slow: float, stall: float) -> bool:
        """Whether it sends or takes less than it must."""
        if self._reading and now - self._begun > slow + self._received / _LEAST_RATE:
            return True
        pending = self.pending
        if not pending or self._transport is None:
            self._moved = self._looked = None
            return False
        taken = self._transport.written - pending
        if self._moved is None or self._looked is None:
            self._moved = self._looked = (taken, now)
            return False
        if taken > self._moved[0]:
            self._moved = (taken, now)
        elif now - self._moved[1] > stall:
            return True
        before, since = self._looked
        if now - since <= slow:
            return False
        self._looked = (taken, now)
        return taken - before < slow * _LEAST_RATE


class _Gathering:
    """A transport that sends what is written in one turn of the loop together, and counts it."""

    def __init__(self, transport: asyncio.Transport, go_over: Callable[[asyncio.Protocol], None]) -> None:
        self._transport, self._go_over = transport, go_over
        self._paused = self._held = False
        """Whether the protocol reads nothing for now; whether we do not let it."""
        self.answering = self._closes = False
        """Whether what a Short has taken is not answered yet; whether it is to be closed then."""
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self.written = 0

    def write(self, data: bytes) -> None:
        """asyncio's, as all here."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._size += len(data)
        self.written += len(data)
        if self._size > _GATHERED:
            self._flush()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._go_over(cast(asyncio.Protocol, protocol))

    def pause_reading(self) -> None:
        self._paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._paused = False
        if not self._held:
            self._transport.resume_reading()

    def hold(self, held: bool) -> None:
        """Read nothing, whatever the protocol says; or as it says."""
        if held == self._held:
            return
        self._held = held
        if held:
            self._transport.pause_reading()
        elif not self._paused and not self._transport.is_closing():
            self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._size + self._transport.get_write_buffer_size()

    def close(self) -> None:
        if self.answering:
            self._closes = True
        else:
            self._flush()
            self._transport.close()

    def finish(self) -> None:
        """What has been taken is answered."""
        self.answering = False
        if self._closes:
            self.close()

    def is_closing(self) -> bool:
        return self._closes or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))
