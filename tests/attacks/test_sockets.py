"""Sockets that are only held open, without a token: the server goes on answering."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from attacked_server import Attacked, attacked

from oxiseq.api.store import Store
from oxiseq.server import ServerSettings, Serving, create_app
from oxiseq.sparql import SparqlEndpoint

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")

LIMIT = 1000 + 64
"""Connections, with the default of --subscribers."""


@contextmanager
def opened(server: Attacked, number: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections that send no whole request."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, number + 500)), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        sockets = []
        for _ in range(number):
            sockets.append(stack.enter_context(socket.create_connection(server.place, timeout=10)))
            if sent:
                sockets[-1].sendall(sent)
        yield sockets


@pytest.fixture(scope="module")
def server() -> Iterator[Attacked]:
    """With the default of everything."""
    with attacked() as running:
        yield running


@pytest.mark.parametrize("sent", [b"", b"GET /query HTTP/1.1\r\nHost: loca"], ids=["silent", "half a request"])
@pytest.mark.slow
def test_five_hundred_sockets_more_than_the_limit_leave_it_answering(server: Attacked, sent: bytes) -> None:
    with opened(server, LIMIT + 500, sent):
        for _ in range(3):
            begin = time.monotonic()
            assert server.ask("GET", "/health", seconds=5)[0] == 200
            assert time.monotonic() - begin < 2
        assert server.process.poll() is None


@pytest.mark.slow
def test_more_sockets_than_open_files_leave_it_answering_and_idle() -> None:
    with attacked(files=300) as server, opened(server, 600):
        assert server.ask("GET", "/health", seconds=5)[0] == 200
        before = _cpu_seconds(server.process.pid)
        time.sleep(1)
        assert _cpu_seconds(server.process.pid) - before < 0.5  # it does not ask for a connection in a loop
        assert server.query("ASK {}")[0] == 200


@pytest.mark.slow
def test_a_connection_that_is_at_work_is_not_closed_for_others() -> None:
    with attacked("--timeout", "80s") as server:
        triples = " ".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(700))
        assert server.update(f"INSERT DATA {{ {triples} }}") == 204
        found: list[bytes] = []
        query = "SELECT * { ?s ?p ?o . ?t ?q ?r }"
        reader = threading.Thread(target=lambda: found.append(server.query(query, 90)[1]))
        reader.start()
        with opened(server, LIMIT + 200):
            reader.join(90)
        assert found[0].count(b"\n") == 490_001


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off() -> None:
    settings = ServerSettings(port=0, threads=2, slow=0.5)
    serving = Serving(create_app(SparqlEndpoint(Store()), settings), settings)
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        host, port = serving.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            begin = time.monotonic()
            slow.sendall(b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            with pytest.raises(OSError):
                while time.monotonic() - begin < 8:
                    slow.sendall(b"x")
                    time.sleep(0.1)
            assert time.monotonic() - begin < 5
    finally:
        serving.stop()
        thread.join(30)


def _cpu_seconds(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
