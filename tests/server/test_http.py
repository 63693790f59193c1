"""What HTTP adds: packing, pages from elsewhere, tokens, cut connections, health."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import socket
import threading
import time
from urllib.parse import quote, urlsplit

import pytest
from asking import DATA, limited
from http_client import Answer, ask
from servers import ours, served

from oxiseq.api.store import Store
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sparql import SparqlEndpoint, SparqlSettings

QUERY = "/query?query=" + quote("SELECT ?o { ?s ?p ?o } ORDER BY ?o")
MANY = "/query?query=" + quote("SELECT * { ?s ?p ?o . ?t ?p ?q }")
UPDATE = ("Content-Type", "application/sparql-update")


def filled(number: int = 2) -> Store:
    """A store with some triples."""
    store = Store()
    store.update("INSERT DATA {" + " ".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(number)) + "}")
    return store


def values(answer: Answer) -> list[str]:
    """The values of a one-column result."""
    rows = json.loads(answer.body)["results"]["bindings"]
    return [value["value"] for row in rows for value in row.values()]


def test_a_packed_body_is_unpacked(our_address: str) -> None:
    packed = gzip.compress(b"CLEAR ALL;") + gzip.compress(DATA.encode())  # two members are one body
    assert ask(our_address, "POST", "/update", [UPDATE, ("Content-Encoding", "gzip")], packed).status == 204
    assert values(ask(our_address, "GET", QUERY)) == ["1", "2"]


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [("br", b"x", 415), ("gzip", b"no gzip", 400), ("gzip", gzip.compress(b"ASK {}", mtime=0)[:-4], 400)],
    ids=["unknown", "malformed", "cut"],
)
def test_a_body_that_cannot_be_unpacked(our_address: str, coding: str, body: bytes, status: int) -> None:
    assert ask(our_address, "POST", "/update", [UPDATE, ("Content-Encoding", coding)], body).status == status


def test_a_body_is_never_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(b"#" * (64 << 20))
    with served(SparqlEndpoint(Store()), ServerSettings(port=0, body=1 << 20)) as address:
        assert ask(address, "POST", "/update", [UPDATE, ("Content-Encoding", "gzip")], bomb).status == 413
        assert ask(address, "POST", "/update", [UPDATE], b"#" * ((1 << 20) + 1)).status == 413
        with contextlib.suppress(ConnectionError):  # far beyond, it is cut off while it is still being sent
            assert ask(address, "POST", "/update", [UPDATE], b"#" * (8 << 20)).status == 413


def test_answers_are_packed_for_who_takes_that() -> None:
    with ours(store=filled(200)) as address:
        plain = ask(address, "GET", MANY)
        packed = ask(address, "GET", MANY, [("Accept-Encoding", "gzip")])
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) < len(plain.body) / 10
        assert gzip.decompress(packed.body) == plain.body
        assert "content-encoding" not in ask(address, "GET", MANY, [("Accept-Encoding", "gzip;q=0, *")]).headers


def test_a_long_answer_that_is_broken_off_has_no_last_chunk(caplog: pytest.LogCaptureFixture) -> None:
    with ours(limited(seconds=0.5), filled(3000)) as address:
        for headers in ([], [("Accept-Encoding", "gzip")]):
            with pytest.raises(http.client.IncompleteRead):
                ask(address, "GET", MANY.replace("q%20", "q%20.%20%3Fu%20%3Fv%20%3Fw%20"), headers)
        assert ask(address, "GET", "/health").status == 200
    told = [record for record in caplog.records if "broken off" in record.getMessage()]
    assert len(told) == 2
    assert not any(record.exc_info for record in told)


def test_http_1_0_gets_the_whole_answer_or_an_error() -> None:
    """It has no chunks: the end of the connection is the end of the answer."""
    with ours(limited(rows=50_000), filled(200)) as address:
        head, _, body = raw(address, MANY, "HTTP/1.0").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200") and b"chunked" not in head  # the server says what it speaks itself
        assert len(json.loads(body)["results"]["bindings"]) == 40_000
    with ours(limited(rows=30_000), filled(200)) as address:
        assert raw(address, MANY, "HTTP/1.0").startswith(b"HTTP/1.1 503")


def raw(address: str, target: str, version: str) -> bytes:
    """All that a server sends until it closes."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.sendall(f"GET {target} {version}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        received = []
        while part := connection.recv(1 << 16):
            received.append(part)
    return b"".join(received)


def test_work_stops_when_the_client_has_gone() -> None:
    endpoint = SparqlEndpoint(filled(3000))
    with served(endpoint) as address:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(f"GET {MANY} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(100)
        end = time.monotonic() + 10
        while endpoint.evaluations.running:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_pages_from_elsewhere() -> None:
    origin = ("Origin", "http://elsewhere")
    asked = [origin, ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "authorization")]
    with served(SparqlEndpoint(Store()), ServerSettings(port=0, cors=("*",), tokens=Tokens("r", "w"))) as address:
        allowed = ask(address, "OPTIONS", "/query", asked)
        assert allowed.status == 204
        assert allowed.headers["access-control-allow-methods"] == "POST"
        assert allowed.headers["access-control-allow-headers"] == "authorization"
        for target in (QUERY, "/nothing", "/health"):
            assert ask(address, "GET", target, [origin]).headers["access-control-allow-origin"] == "*"
    with ours() as address:
        assert "access-control-allow-origin" not in ask(address, "GET", QUERY, [origin]).headers
        assert ask(address, "OPTIONS", "/query", asked).status == 405


@pytest.mark.parametrize(
    ("tokens", "given", "reads", "writes"),
    [
        (Tokens(), None, 200, 204),
        (Tokens(write="w"), None, 200, 401),
        (Tokens(write="w"), "w", 200, 204),
        (Tokens("r", "w"), None, 401, 401),
        (Tokens("r", "w"), "wrong", 401, 401),
        (Tokens("r", "w"), "é", 401, 401),
        (Tokens("r", "w"), "r", 200, 403),
        (Tokens("r", "w"), "w", 200, 204),
        (Tokens(read="r"), None, 401, 401),
        (Tokens(read="r"), "r", 200, 403),
    ],
)
def test_tokens(tokens: Tokens, given: str | None, reads: int, writes: int) -> None:
    headers = [] if given is None else [("Authorization", f"Bearer {given}")]
    with served(SparqlEndpoint(Store()), ServerSettings(port=0, tokens=tokens)) as address:
        read = [ask(address, "GET", target, headers) for target in (QUERY, "/query", "/store", "/update")]
        read.append(ask(address, "POST", "/query", [*headers, ("Content-Type", "application/sparql-query")], b"ASK {}"))
        written = [
            ask(address, "POST", "/update", [*headers, UPDATE], b"CLEAR ALL"),
            ask(address, "PUT", "/store?default", [*headers, ("Content-Type", "text/turtle")], b""),
            ask(address, "POST", "/store/?default", [*headers, ("Content-Type", "text/turtle")], b""),
            ask(address, "DELETE", "/store", headers),
        ]
        assert {answer.status for answer in read} == {reads}
        assert {answer.status for answer in written} == {writes}
        assert all(("www-authenticate" in answer.headers) == (answer.status in (401, 403)) for answer in read + written)
        assert ask(address, "GET", "/health").status == 200


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(ServerSettings(tokens=Tokens("secret", "secret")))


def test_unknown_addresses_and_methods_are_problems(our_address: str) -> None:
    for method, target, status in [("GET", "/nothing", 404), ("PURGE", "/query", 405), ("POST", "/health", 405)]:
        answer = ask(our_address, method, target)
        assert (answer.status, answer.media_type) == (status, "application/problem+json")
        assert json.loads(answer.body)["status"] == status
    assert ask(our_address, "BREW", "/query").status == 400  # HTTP knows no such method


def test_ready_tells_whether_the_store_answers(our_address: str) -> None:
    assert ask(our_address, "GET", "/ready").status == 200


def test_the_address_names_a_graph_as_it_was_sent(our_address: str) -> None:
    sent = ask(our_address, "PUT", "/store/a%2Fb/c", [("Content-Type", "text/turtle")], b"<x> <y> 1 .")
    assert sent.status == 201
    graph = quote(f"{our_address}/store/a%2Fb/c", safe="")
    assert ask(our_address, "GET", f"/store?graph={graph}").status == 200


def test_many_clients_at_once() -> None:
    with ours(SparqlSettings(), filled(100)) as address:
        expected = ask(address, "GET", MANY).body
        found: list[bytes] = []

        def client() -> None:
            for _ in range(5):
                found.append(ask(address, "GET", MANY).body)

        threads = [threading.Thread(target=client) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 60
        assert {len(body) for body in found} == {len(expected)}
