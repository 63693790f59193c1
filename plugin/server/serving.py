"""The server's life: bind, serve until a signal, end what is running, close."""

from __future__ import annotations

import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import flask
from waitress import wasyncore
from waitress.adjustments import Adjustments

from oxiseq.engine.errors import OxiseqError
from oxiseq.server.connections import Listener, most_connections
from oxiseq.server.outlets import Channel
from oxiseq.server.settings import ServerSettings
from oxiseq.sparql import Interrupted

_SLACK = 1 << 20
_AHEAD = 1 << 20
"""Bytes that are made of an answer before the client has taken them."""


class Serving:
    """A bound server; `run` serves, `stop` (from another thread or a signal) lets it end.

    waitress has no graceful stop: its loop is turned here, so that after `stop` no connection is accepted,
    requests that are running get `grace` seconds, and what they answered is sent before the sockets close. `ending` is
    called first: it lets answers without an end come to one.
    """

    def __init__(
        self, app: flask.Flask, settings: ServerSettings, ending: Callable[[], object] | None = None
    ) -> None:
        self._app = app
        self._on_end = ending
        self._stall = settings.stall
        self._looked = 0.0
        self._slow = settings.slow
        self._grace = settings.grace
        self._stopping = threading.Event()
        self._ending = threading.RLock()  # a signal may come while its own thread holds it
        self._ended = False
        logging.getLogger("waitress").addFilter(_shorten)
        self._socket = _bound(settings.host, settings.port)
        adjustments = Adjustments(
            sockets=[self._socket], threads=settings.threads + settings.live, ident=None,
            clear_untrusted_proxy_headers=True,
            # our own limit speaks first, and clearly: beyond this one, waitress cuts the connection
            max_request_body_size=2 * settings.body + _SLACK,
            connection_limit=most_connections(settings.connections + settings.live),
            channel_timeout=120, outbuf_high_watermark=_AHEAD, channel_request_lookahead=1,
        )  # fmt: skip
        bound = (self._socket.family, self._socket.type, self._socket.proto, self._socket.getsockname())
        self._server: Any = Listener(app, _sock=self._socket, adj=adjustments, sockinfo=bound, bind_socket=False)
        self._server.channel_class = Channel

    @property
    def address(self) -> str:
        """`http://host:port`, with the port that was found for port 0."""
        host, port = self._server.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self) -> None:
        """Serve until `stop`."""
        gc.collect()
        gc.freeze()  # what is here by now stays: to look through it takes a tenth of a second each time
        while not self._stopping.is_set():
            self._turn(0.5)
            self._cut_slow()
        self._drain()

    def stop(self) -> None:
        """Let `run` end."""
        self._app.config["DRAINING"] = True
        self._stopping.set()
        with self._ending:
            if not self._ended:
                self._server.pull_trigger()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT stop; a second one ends at once. For the main thread."""

        def handle(number: int, frame: FrameType | None) -> None:
            if self._stopping.is_set():
                raise SystemExit(128 + number)
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)

    def _turn(self, seconds: float) -> None:
        # select() takes no descriptor above 1,023
        wasyncore.loop(timeout=seconds, map=self._server._map, count=1, use_poll=True)

    def _cut_slow(self) -> None:
        """waitress waits for ever for a client that takes nothing of its answer, or sends a byte a minute."""
        now = time.monotonic()
        if now - self._looked < min(1.0, self._stall, self._slow):
            return
        self._looked = now
        for channel in list(self._server.active_channels.values()):
            stalled = channel.total_outbufs_len and time.time() - channel.last_activity > self._stall
            if stalled or channel.too_slow(now, self._slow):
                channel.handle_close()

    def _drain(self) -> None:
        if self._on_end is not None:
            self._on_end()
        wasyncore.dispatcher.close(self._server)  # the listening socket only
        end = time.monotonic() + self._grace
        while self._busy() and time.monotonic() < end:
            self._turn(0.1)
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
        for channel in list(self._server.active_channels.values()):
            channel.handle_close()
        with self._ending:
            self._ended = True
            self._server.trigger.close()

    def _busy(self) -> bool:
        channels = list(self._server.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)


def _shorten(record: logging.LogRecord) -> bool:
    """An answer that is broken off on purpose is one line in the log, not waitress's traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, Interrupted):
        record.msg, record.args, record.exc_info = "answer broken off: %s", (str(error),), None
    return True


def _bound(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises OxiseqError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise OxiseqError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return bound
