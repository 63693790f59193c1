"""A change whose client has gone ends where it is, or does not begin, and nobody hears of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from servers import served

from oxiseq.api.store import Store
from oxiseq.changes import Changed
from oxiseq.engine.attended import AbandonedError, attended
from oxiseq.engine.rdf import _LONG
from oxiseq.sparql import Request, SparqlEndpoint, SparqlSettings
from oxiseq.sparql.guards import loaded

TURTLE = (("content-type", "text/turtle"),)
UPDATE = (("content-type", "application/sparql-update"),)
GRAPH = "graph=http://e/g"
DOCUMENT = b"".join(b"<http://e/%d> <http://e/p> %d .\n" % (number, number) for number in range(40_000))
SELECT = "SELECT * { GRAPH ?g { ?s ?p ?o } }"


class Watched:
    """A store with something in it, and what others hear of its changes."""

    def __init__(self) -> None:
        self.store = Store()
        self.endpoint = SparqlEndpoint(self.store)
        self.store.update("INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/p> 1 } }")
        self.standing = self.store.register(SELECT, "sparql")
        self.before, self.heard = self.standing.number, list[Changed]()
        self.store.listen(self.heard.append)

    def unchanged(self) -> bool:
        return len(self.store) == 1 and not self.heard and self.standing.number == self.before


def going_after(asks: int) -> tuple[Callable[[], bool], list[int]]:
    """A client that is there for so many looks, and how often it was looked for."""
    asked: list[int] = []

    def gone() -> bool:
        asked.append(len(asked))
        return len(asked) > asks

    return gone, asked


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("POST", GRAPH),
        pytest.param("PUT", GRAPH, marks=pytest.mark.full),
        pytest.param("POST", "graph=http://e/new", marks=pytest.mark.full),
        ("PUT", "default"),
        pytest.param("POST", "", marks=pytest.mark.full),
    ],
)
def test_a_document_is_read_no_further(method: str, query: str) -> None:
    watched = Watched()
    assert len(DOCUMENT) > 10 * _LONG
    gone, asked = going_after(5)
    answer = watched.endpoint.answer(Request(method, "/store", query, TURTLE, DOCUMENT, gone=gone))
    assert (answer.status, len(asked)) == (503, 6)
    assert watched.unchanged()
    assert watched.endpoint.answer(Request(method, "/store", query, TURTLE, DOCUMENT)).status in (201, 204)
    assert len(watched.store) >= 40_000 and watched.heard


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_connection_that_is_closed_ends_its_document(method: str) -> None:
    watched = Watched()
    body = DOCUMENT * 4
    with served(watched.endpoint) as address:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection, watched.store.lock:
            head = f"{method} /store?{GRAPH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: watched.endpoint.evaluations.running == 1)
        until(lambda: watched.endpoint.evaluations.running == 0)
        assert watched.unchanged()


def test_who_closes_for_sending_alone_is_taken_for_gone() -> None:
    """It looks the same as one that closes all: it is not answered, and what is large enough to be looked after does
    not happen; who asks again in the usual way is answered."""
    watched = Watched()
    with served(watched.endpoint) as address:
        parts = urlsplit(address)
        for path, kind, body in (
            ("/query", "application/sparql-query", SELECT.encode()),
            (f"/store?{GRAPH}", "text/turtle", DOCUMENT * 4),
        ):
            with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
                connection.sendall(body)
                connection.shutdown(socket.SHUT_WR)
                with suppress(ConnectionResetError):
                    assert connection.recv(1000) == b""
            until(lambda: watched.endpoint.evaluations.running == 0)
        assert watched.unchanged()
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(b"GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [
        ("POST", "/update", "", UPDATE, b"INSERT DATA { <http://e/b> <http://e/p> 2 }"),
        ("POST", "/update", "", UPDATE, b"DELETE WHERE { GRAPH ?g { ?s ?p ?o } }"),
        ("POST", "/store", GRAPH, TURTLE, b"<http://e/b> <http://e/p> 2 ."),
        ("DELETE", "/store", GRAPH, (), b""),
        ("DELETE", "/store", "", (), b""),
    ],
)
def test_what_waits_for_its_turn_does_not_begin(sent: tuple[str, str, str, tuple[tuple[str, str], ...], bytes]) -> None:
    watched, left = Watched(), threading.Event()
    statuses: list[int] = []
    request = Request(*sent, gone=left.is_set)
    thread = threading.Thread(target=lambda: statuses.append(watched.endpoint.answer(request).status))
    with watched.store.lock:
        thread.start()
        until(lambda: watched.endpoint.evaluations.running == 1)
        left.set()
    thread.join(60)
    assert statuses == [503] and watched.unchanged()


def test_nothing_is_fetched_for_nobody() -> None:
    """SILENT or not."""
    gone, _ = going_after(0)
    with attended(gone), pytest.raises(AbandonedError):
        loaded("LOAD SILENT <http://localhost:1/x>", "http://e/", SparqlSettings())


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
