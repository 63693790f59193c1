"""Ten thousand connections that want nothing, or mean harm: whether the server answers meanwhile.

    python -m benchmarks.serving.crowd [--idle 3000] [--readers 3000] [--sockets 3000] [--slow 500] [--gone 500]
        [--seconds 60]

Idle ones have had an answer; readers (Server-Sent Events) and sockets (WebSockets) follow a query that finds nothing;
slow ones send a byte of a request now and then, and come again when they are cut off (Slowloris); those that are gone
were readers and have ended without a word (half-open; needs the right to, CAP_NET_ADMIN). A client pushes 20 events a
second and reads their matches: milliseconds from request to match and of SPARQL queries, before and beside the crowd.
"""

from __future__ import annotations

import argparse
import http.client
import os
import resource
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import numpy as np

from benchmarks.serving.__main__ import EACH, Readers, ask, connect, cpu_seconds, exchange, request, server
from benchmarks.serving.memory import resident

SOCKET = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
_TCP_REPAIR = 19
"""Linux: a socket that is closed in this state sends nothing."""
_RATE = 20
_DRIP = 2.0
"""Seconds between two bytes of a slow one."""


class Crowd:
    """Connections to a server; readers follow a query that finds nothing."""

    def __init__(self, place: tuple[str, int], query: str) -> None:
        self._place, self._matches = place, f"GET /queries/{query}/matches HTTP/1.1\r\n"
        self._open: dict[str, list[socket.socket]] = {}
        self.cut = 0
        """How many slow ones the server has cut off."""
        self._ended = threading.Event()
        self._slow: threading.Thread | None = None

    def idle(self, count: int) -> None:
        """They have had an answer."""
        for _ in range(count):
            self._open.setdefault("idle", []).append(self._asked("GET /health HTTP/1.1\r\n", b"HTTP/1.1 200"))

    def readers(self, count: int) -> None:
        """They read Server-Sent Events."""
        for _ in range(count):
            self._open.setdefault("readers", []).append(self._reader())

    def sockets(self, count: int) -> None:
        """They read by WebSockets."""
        for _ in range(count):
            made = self._asked(self._matches + SOCKET, b"listening")
            self._open.setdefault("sockets", []).append(made)

    def gone(self, count: int) -> bool:
        """Readers that end without a word. False where that is not allowed."""
        for _ in range(count):
            made = self._reader()
            try:
                made.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
            except OSError:
                made.close()
                return False
            made.close()
        return True

    def slow(self, count: int) -> None:
        """They send a byte every two seconds, and come again when they are cut off."""
        self._open["slow"] = [self._dripping() for _ in range(count)]
        self._slow = threading.Thread(target=self._drip, daemon=True)
        self._slow.start()

    @property
    def left(self) -> dict[str, int]:
        """Those that the server has not closed."""
        return {kind: sum(map(_is_open, each)) for kind, each in self._open.items() if kind != "slow"}

    def close(self) -> None:
        """All go."""
        self._ended.set()
        if self._slow is not None:
            self._slow.join()
        for each in self._open.values():
            for made in each:
                made.close()

    def _reader(self) -> socket.socket:
        return self._asked(self._matches + "Accept: text/event-stream\r\n", b": listening")

    def _asked(self, head: str, mark: bytes) -> socket.socket:
        made = socket.create_connection(self._place, timeout=60)
        made.sendall(f"{head}Host: localhost\r\n\r\n".encode())
        got = b""
        while mark not in got:
            if not (more := made.recv(4096)):
                raise ConnectionError(got)
            got += more
        return made

    def _dripping(self) -> socket.socket:
        made = socket.create_connection(self._place, timeout=60)
        made.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        return made

    def _drip(self) -> None:
        slow = self._open["slow"]
        while not self._ended.wait(_DRIP):
            for i, made in enumerate(slow):
                if not _is_open(made):
                    self.cut += 1
                    made.close()
                    with suppress(OSError):
                        slow[i] = self._dripping()
                    continue
                with suppress(OSError):
                    made.sendall(b"x")


def _is_open(made: socket.socket) -> bool:
    """Whether the server has not ended it; takes what has come, as heartbeats."""
    made.setblocking(False)
    try:
        while made.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        with suppress(OSError):
            made.settimeout(60)
    return False


class Client:
    """Pushes events and reads their matches, and asks with SPARQL now and then."""

    def __init__(self, address: str) -> None:
        self._pushes, self._control = connect(address).sock, connect(address)
        self._reader = Readers(address, "each0", 1)
        self._number = 0

    def measure(self, seconds: float) -> str:
        """What it sees, as text."""
        first, sent, asked = self._number, [], []
        begun = time.perf_counter()
        while (now := time.perf_counter()) < begun + seconds:
            sent.append(now)
            exchange(self._pushes, request(self._number, 1))
            self._number += 1
            if self._number % _RATE == 0:
                now = time.perf_counter()
                assert _query(self._control) == 200
                asked.append((time.perf_counter() - now) * 1000)
            time.sleep(max(0.0, begun + len(sent) / _RATE - time.perf_counter()))
        time.sleep(1)
        took = [(self._reader.seen[first + i] - at) * 1000 for i, at in enumerate(sent)]
        return (
            f"request to match {np.median(took):.1f} ms, p99 {np.percentile(took, 99):.1f} ms; SPARQL "
            f"{np.median(asked):.1f} ms, at most {max(asked):.1f} ms; load {os.getloadavg()[0]:.1f}"
        )

    def close(self) -> None:
        """Leave."""
        self._reader.close()
        self._pushes.close()
        self._control.close()


def _query(control: http.client.HTTPConnection) -> int:
    return ask(control, "POST", "/query", b"ASK { ?s ?p ?o }", "application/sparql-query")


def main() -> None:
    """A line for each part."""
    parser = argparse.ArgumentParser()
    for name, count in {"idle": 3000, "readers": 3000, "sockets": 3000, "slow": 500, "gone": 500}.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 1 << 16)), hard))
    os.environ["OXISEQ_CONNECTIONS"] = str(given.idle + given.slow + 100)
    with server("own", "normal", given.readers + given.sockets + given.gone + 10) as (address, pid):
        control, parts = connect(address), urlsplit(address)
        for i in range(2):
            assert ask(control, "PUT", f"/queries/each{i}", (EACH % i).encode(), "application/spaseq-query") == 200
        client, crowd = Client(address), Crowd((parts.hostname or "", parts.port or 0), "each1")
        client.measure(5)  # kernels may have to be compiled
        print(f"alone: {client.measure(given.seconds / 4)}", flush=True)
        before, begun = resident(pid), time.perf_counter()
        crowd.slow(given.slow)
        crowd.idle(given.idle)
        crowd.readers(given.readers)
        crowd.sockets(given.sockets)
        allowed = crowd.gone(given.gone)
        print(
            f"{crowd.left}, {given.slow} slow, {given.gone if allowed else 'no'} gone: opened in "
            f"{time.perf_counter() - begun:.0f} s; {resident(pid) - before:.0f} MB more",
            flush=True,
        )
        used = cpu_seconds(pid)
        print(f"beside them: {client.measure(given.seconds)}", flush=True)
        share = (cpu_seconds(pid) - used) / (given.seconds + 1)
        print(f"{share:.1%} of a core; left {crowd.left}; {crowd.cut} slow ones cut off; {_subscribers(address)}")
        crowd.close()
        client.close()


def _subscribers(address: str) -> str:
    control = connect(address)
    control.request("GET", "/metrics")
    text = control.getresponse().read().decode()
    return next(line for line in text.splitlines() if line.startswith("oxiseq_subscribers "))


if __name__ == "__main__":
    main()
