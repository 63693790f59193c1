"""Receivers of matches for tests: a web server that notes what it is sent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Mapping[str, str]]
OK: Answer = (200, {})


class Webhooks:
    """What a server was sent, in order. `answer` says what each request is answered, by its headers and body."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[tuple[dict[str, str], bytes]] = []
        """Requests that were answered by 2xx."""
        self.refused = 0
        self.said = b""
        """The body of each answer."""
        self.answer: Callable[[Mapping[str, str], bytes], Answer] = lambda headers, body: OK
        self.changed = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/hook/secret-path"

    @property
    def keys(self) -> list[str]:
        """Idempotency keys, in order of arrival."""
        with self.changed:
            return [headers["idempotency-key"] for headers, _ in self.seen]

    def wait(self, count: int, seconds: float = 120.0) -> None:
        """Until so many have been taken."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.seen) >= count, seconds), len(self.seen)


@contextmanager
def webhooks() -> Iterator[Webhooks]:
    """A server on a free port of the loopback."""
    made = Webhooks()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(length := int(self.headers["content-length"]))
            if len(body) < length:  # whoever sent it was killed: it is no request
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more = made.answer(headers, body)
            with made.changed:
                if 200 <= status < 300:
                    made.seen.append((headers, body))
                else:
                    made.refused += 1
                made.changed.notify_all()
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(made.said)))
            self.end_headers()
            self.wfile.write(made.said)

        do_PUT = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def dripping() -> Iterator[int]:
    """The port of a server that answers a byte every tenth of a second, without end."""
    ended = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not ended.is_set():
                connection.sendall(b"x")
                time.sleep(0.1)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        ended.set()
        listening.close()
