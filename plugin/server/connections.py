"""Connections: how many there may be, and how long one may take for what it sends and reads.

waitress waits for ever for some clients, and stops to listen when it has too many. Here a request must come, and an
answer must be taken, at a rate that no working client falls below; and when there is no room for a new connection, the
one that has waited longest without a request goes for it. So whoever sends a request is answered, however many others
only hold connections open.
"""

from __future__ import annotations

import errno
import logging
import time
from typing import Any, Final

from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

LOG: Final = logging.getLogger("oxiseq.server")
SPARE_FILES: Final = 128
"""File descriptors that connections leave to the store, the journal and workers."""
_LEAST_RATE: Final = 1024
"""Bytes a second that a client must send of a request, and take of an answer."""
_AT_ONCE: Final = 64
"""Connections that are accepted before others get their turn."""
_PAUSE: Final = 0.25
"""Seconds without accepting after the system had no room for one more."""
_LOG_EVERY: Final = 60.0
_NO_ROOM: Final = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])

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


class Timed(HTTPChannel):  # type: ignore[misc]  # waitress has no types: its classes are Any
    """A connection that knows how slow its client is; times are monotonic."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.waits_since = time.monotonic()
        """When it was accepted or answered last."""
        self._begun = self._looked = self.waits_since
        self._received = self._sent = 0
        super().__init__(*given, **named)

    @property
    def waiting(self) -> bool:
        """Whether no request of it is at work, and no answer under way."""
        return not self.requests and not self.total_outbufs_len

    def received(self, data: bytes) -> bool:
        """waitress's: bytes of a request have come."""
        if self.request is None:
            self._begun, self._received = time.monotonic(), 0
        self._received += len(data)
        return bool(super().received(data))

    def send(self, data: bytes, do_close: bool = True) -> int:
        """waitress's: bytes of an answer go."""
        sent = int(super().send(data, do_close=do_close))
        self._sent += sent
        return sent

    def service(self) -> None:
        """waitress's: a request is answered."""
        super().service()
        self.waits_since = time.monotonic()

    def handle_expt(self) -> None:
        """Urgent data, which no HTTP client sends: it would be told again and again."""
        self.handle_close()

    def too_slow(self, now: float, grace: float) -> bool:
        """Whether it sends or takes less than it must, for longer than `grace` seconds."""
        if self.request is not None and not self.requests and now - self._begun > grace + self._received / _LEAST_RATE:
            return True
        if not self.total_outbufs_len:
            self._looked, self._sent = now, 0
        elif now - self._looked > grace:
            slow = self._sent < grace * _LEAST_RATE
            self._looked, self._sent = now, 0
            return slow
        return False


class Listener(TcpWSGIServer):  # type: ignore[misc]  # as above
    """A listening socket and its connections; at most `adj.connection_limit` of them."""

    next_channel_cleanup: float
    _paused_until = 0.0
    _logged = -_LOG_EVERY

    def readable(self) -> bool:
        """waitress's: whether to accept. Its own limit says no at once; here only when all connections are at work."""
        now = time.time()
        if now >= self.next_channel_cleanup:
            self.next_channel_cleanup = now + self.adj.cleanup_interval
            self.maintenance(now)
        if not self.accepting or time.monotonic() < self._paused_until:
            return False
        channels = list(self.active_channels.values())
        return len(channels) < self.adj.connection_limit or any(channel.waiting for channel in channels)

    def handle_accept(self) -> None:
        """Accept what waits; those that wait longest go where there is no room."""
        for _ in range(_AT_ONCE):
            if len(self.active_channels) >= self.adj.connection_limit and not self._make_room():
                return
            try:
                accepted = self.accept()
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._pause(error)
                return
            if accepted is None:
                return
            connection, address = accepted
            try:
                self.set_socket_options(connection)
            except OSError:  # it has left already
                connection.close()
                continue
            self.channel_class(self, connection, self.fix_addr(address), self.adj, map=self._map)

    def _make_room(self) -> bool:
        """Close a few connections without a request, and tell whether there were any."""
        waiting = sorted((c for c in self.active_channels.values() if c.waiting), key=lambda c: c.waits_since)
        self._tell(f"{len(self.active_channels)} connections are open, which is the most: those that wait longest go")
        for channel in waiting[:_AT_ONCE]:
            channel.handle_close()
        return bool(waiting)

    def _pause(self, error: OSError) -> None:
        """The system has no room: asked again at once it would say so again, for ever."""
        self._tell(f"no connection can be accepted: {error.strerror}")
        self._make_room()
        self._paused_until = time.monotonic() + _PAUSE

    def _tell(self, message: str) -> None:
        """In the log, but not each time."""
        now = time.monotonic()
        if now - self._logged >= _LOG_EVERY:
            self._logged = now
            LOG.warning(message)
