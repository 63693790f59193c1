"""The server around the application.

Settings of the C library's allocator for many threads that each need memory for a moment.

glibc gives each thread an arena, and keeps there what is freed: with 80 threads that each once read a large body, all
these bodies stay resident.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil
from types import FrameType
from typing import Any, Final, Literal

import flask
import uvicorn
from pythonjsonlogger.json import JsonFormatter
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from oxiseq.engine.errors import OxiseqError
from oxiseq.live.portions import LARGEST_ITEM
from oxiseq.server.app import DOORS
from oxiseq.server.connections import BACKLOG, Connection, Connections, most_connections
from oxiseq.server.edge import Edge
from oxiseq.server.settings import ServerSettings, accept
from oxiseq.sparql import Interrupted

# --- the log ---------------------------------------------------------------------------------------------

LogFormat = Literal["text", "json"]
_FIELDS: Final = {"asctime": "time", "levelname": "level", "name": "logger"}


def log_to_stderr(format: LogFormat) -> None:
    """From INFO on. JSON objects have time (ISO 8601, UTC), level, logger, message, and what the message is about, the
    query's name for instance."""
    handler = logging.StreamHandler()
    if format == "json":
        formatter = JsonFormatter("%(asctime)s%(levelname)s%(name)s%(message)s", rename_fields=_FIELDS)
        formatter.converter = time.gmtime
        formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
        handler.setFormatter(formatter)
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request's address, with users and tokens


# --- memory ----------------------------------------------------------------------------------------------

_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD: Final = -1
_ARENAS: Final = 4
_LARGE: Final = 1 << 20
"""Bytes from which memory goes back to the system when it is freed; fixed, else glibc raises it up to 32 MiB."""


def share_arenas() -> None:
    """Let all threads share a few arenas, and return what is large. To be called before threads begin; nothing where
    the C library is another."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # musl, macOS, Windows
        return
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, 4 * _LARGE)):
        mallopt(parameter, value)


# --- serving ---------------------------------------------------------------------------------------------

LOG: Final = logging.getLogger("oxiseq.server")
_LOG: Final = "uvicorn.error"
_COLLECT: Final = (2000, 10, 100)
"""When cycles are looked for. To look at all objects, kernels among them, takes 40 to 90 ms, in which nobody is
answered: Python would do it every few thousand pushes, so it is done every 200,000 or so."""
_LOOK: Final = 0.1
"""Seconds between looks whether it is to end."""
_NO_HANDSHAKE: Final = "ASGI callable returned without completing handshake."
_PING: Final = 20.0
"""Seconds between pings of a WebSocket: proxies end what is silent for longer. Nobody is cut off for a pong that does
not come: while a long push is held up, nothing is read."""
_REST: Final = 120
"""Seconds after which a connection goes that has no request."""


class Serving:
    """A bound server; `run` serves, `stop` (from another thread or a signal) lets it end.

    After `stop` no connection is accepted, requests that are running get `grace` seconds, and what they answered is
    sent before the sockets close. `ending` is called first: it lets answers without an end come to one.
    """

    def __init__(self, app: flask.Flask, settings: ServerSettings, ending: Callable[[], object] | None = None) -> None:
        self._app, self._settings = app, settings
        self._on_end = ending
        self._stopping = threading.Event()
        self._socket = _bound(settings.host, settings.port)
        self._socket.listen(BACKLOG)  # from now on clients wait instead of being refused
        self._address = self._socket.getsockname()[:2]

    @property
    def address(self) -> str:
        """`http://host:port` or `https://...`, with the port that was found for port 0."""
        host, port = self._address
        scheme = "http" if self._settings.tls is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def run(self) -> None:
        """Serve until `stop`."""
        gc.collect(1)  # the youngest only: what was loaded is old, and to look through it takes a tenth of a second
        gc.freeze()  # what is here by now stays
        gc.set_threshold(*_COLLECT)
        logging.getLogger(_LOG).setLevel(logging.ERROR)  # less reports each malformed request
        logging.getLogger(_LOG).addFilter(_shorten)
        with asyncio.Runner(loop_factory=self._config(_unanswered).get_loop_factory()) as runner:
            runner.run(self._serve())

    def stop(self) -> None:
        """Let `run` end."""
        self._app.config["DRAINING"] = True
        self._stopping.set()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT stop; a second one ends at once. For the main thread."""

        def handle(number: int, frame: FrameType | None) -> None:
            if self._stopping.is_set():
                raise SystemExit(128 + number)
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)

    async def _serve(self) -> None:
        settings = self._settings
        most = most_connections(settings.connections + settings.live)
        connections = Connections(most, settings.slow, settings.stall, _REST)
        edge = Edge(self._app, self._app.extensions[DOORS], connections)

        def protocol(**given: Any) -> asyncio.Protocol:
            return Connection(connections, HttpToolsProtocol(**given))

        config = self._config(edge, protocol)
        config.load()
        server = _Server(config)
        if settings.tls is not None:
            speak = partial(protocol, config=config, server_state=server.server_state, app_state={})
            server.accepting = asyncio.create_task(accept(self._socket, settings.tls, connections, speak))
        looking = asyncio.create_task(self._look(server, connections, edge))
        try:
            await server.serve([self._socket])
        finally:
            looking.cancel()
            connections.abort()
            edge.close()

    async def _look(self, server: uvicorn.Server, connections: Connections, edge: Edge) -> None:
        due, every = 0.0, min(1.0, self._settings.stall, self._settings.slow)
        while not self._stopping.is_set():
            await asyncio.sleep(_LOOK)
            if (now := time.monotonic()) >= due:
                due = now + every
                try:
                    connections.cut_slow()
                except Exception:  # who does not look any more cannot end the server either
                    LOG.exception("slow clients could not be cut off")
        try:
            if self._on_end is not None:
                await asyncio.to_thread(self._on_end)
            edge.end_pushers()
        finally:
            server.should_exit = True

    def _config(self, app: Any, protocol: Any = "httptools") -> uvicorn.Config:
        return uvicorn.Config(
            app,
            http=protocol,
            ws=WebSocketsSansIOProtocol,
            ws_max_size=LARGEST_ITEM,
            ws_per_message_deflate=False,
            ws_ping_interval=_PING,
            ws_ping_timeout=None,
            loop="auto",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=_REST,
            timeout_graceful_shutdown=ceil(self._settings.grace),
        )


class _Server(uvicorn.Server):
    """uvicorn's, which leaves signals to us, and connections of https to a task that accepts them."""

    accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's: listen."""
        await super().startup(sockets if self.accepting is None else [])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's: listen no more, and wait for what runs."""
        if self.accepting is not None:
            self.accepting.cancel()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's: around serving."""
        yield


async def _unanswered(*_: object) -> None:
    """An application that is never called."""


def _shorten(record: logging.LogRecord) -> bool:
    """An answer that is broken off on purpose is one line in the log, not a traceback; and that a WebSocket has been
    refused, which uvicorn takes for a fault of ours, is none."""
    if record.msg == _NO_HANDSHAKE:
        return False
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, Interrupted | asyncio.CancelledError):
        why = str(error) or "the server ends"
        record.msg, record.args, record.exc_info = "answer broken off: %s", (why,), None
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
