"""In front of another endpoint: requests and answers pass, failures are told, P_D is answered there."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from asking import limited
from http_client import ask
from servers import NO_OXIGRAPH, ours, oxigraph_program, real, served

from oxiseq import run
from oxiseq.engine.errors import KbError, OxiseqError
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sparql import SparqlSettings

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")
import httpx

from oxiseq.sparql.upstream import Addresses, RemoteKb, Upstream, addresses

SELECT = "/query?query=SELECT%20%3Fo%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D"
TURTLE = ("Content-Type", "text/turtle")


@pytest.fixture(params=["ours", "real"])
def behind(request: pytest.FixtureRequest) -> Iterator[str]:
    """An endpoint that one already has: our server, or the real oxigraph."""
    if request.param == "real" and oxigraph_program() is None:
        pytest.skip(NO_OXIGRAPH)
    with ours() if request.param == "ours" else real() as address:
        yield address


@contextmanager
def in_front(url: str, settings: SparqlSettings | None = None, server: ServerSettings | None = None) -> Iterator[str]:
    """A server that passes on."""
    upstream = Upstream(url, settings)
    try:
        with served(upstream, server) as address:
            yield address
    finally:
        upstream.close()


def test_requests_pass_and_answers_pass_back(behind: str) -> None:
    with in_front(behind) as address:
        graph = "/store?graph=http://e/g"
        assert ask(address, "PUT", graph, [TURTLE], b"<http://e/a> <http://e/p> 1 .").status in (201, 204)
        update = ("Content-Type", "application/x-www-form-urlencoded")
        body = b"update=INSERT%20DATA%20%7B%20%3Chttp://e/a%3E%20%3Chttp://e/p%3E%202%20%7D"
        assert ask(address, "POST", "/update", [update], body).status == 204
        answer = ask(address, "GET", SELECT, [("Accept", "text/csv")])
        assert (answer.status, answer.media_type, answer.body) == (200, "text/csv", b"o\r\n2\r\n")
        assert answer.body == ask(behind, "GET", SELECT, [("Accept", "text/csv")]).body
        assert ask(address, "GET", graph, [("Accept", "application/n-triples")]).body.count(b"\n") == 1
        assert ask(address, "GET", "/query?query=ASK%20%7B").status == 400
        assert ask(address, "DELETE", graph).status == 204
        assert ask(address, "GET", graph).status == 404
        assert ask(address, "GET", "/ready").status == 200


def test_an_answer_that_is_packed_here_has_no_longer_the_length_of_there(behind: str) -> None:
    with in_front(behind) as address:
        packed = ask(address, "GET", SELECT, [("Accept-Encoding", "gzip"), ("Accept", "text/csv")])
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == b"o\r\n"


def test_a_packed_request_is_unpacked_and_tokens_stay_with_us(behind: str) -> None:
    with in_front(behind, server=ServerSettings(port=0, tokens=Tokens("r", "w"))) as address:
        headers = [TURTLE, ("Content-Encoding", "gzip"), ("Authorization", "Bearer w")]
        body = gzip.compress(b"<http://e/a> <http://e/p> 1 .")
        assert ask(address, "PUT", "/store?default", headers, body).status == 204
        assert ask(address, "GET", SELECT).status == 401
        assert ask(address, "GET", SELECT, [("Authorization", "Bearer r")]).status == 200


def test_read_only_in_front(behind: str) -> None:
    with in_front(behind, SparqlSettings(read_only=True)) as address:
        assert ask(address, "PUT", "/store?default", [TURTLE], b"").status == 403
        assert ask(address, "GET", SELECT).status == 200


@contextmanager
def answering(reply: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server of one connection that says what a test wants."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                reply(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def test_an_endpoint_that_is_not_there_is_a_bad_gateway() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with in_front(f"http://127.0.0.1:{unused.getsockname()[1]}") as address:
            assert ask(address, "GET", SELECT).status == 502
            assert ask(address, "GET", "/ready").status == 503


def test_an_endpoint_that_is_silent_is_a_gateway_timeout() -> None:
    done = threading.Event()
    with answering(lambda connection: (done.wait(10), None)[1]) as url, in_front(url, limited(seconds=0.2)) as address:
        assert ask(address, "GET", SELECT).status == 504
        done.set()


def test_an_answer_that_breaks_off_behind_breaks_off_in_front() -> None:
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/csv\r\n\r\n5\r\no\r\n1\r\n\r\n"
    with (
        answering(lambda connection: connection.sendall(reply)) as url,
        in_front(url) as address,
        pytest.raises(http.client.IncompleteRead),
    ):
        ask(address, "GET", SELECT)


def test_headers_of_one_connection_are_dropped() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-Kept: 1\r\n"
        b"Content-Length: 2\r\n\r\nok"
    )
    with answering(lambda connection: connection.sendall(head)) as url, in_front(url) as address:
        answer = ask(address, "GET", SELECT)
        assert (answer.status, answer.body, answer.headers["x-kept"]) == (200, b"ok", "1")
        assert not {"x-hop", "keep-alive"} & set(answer.headers)


def test_a_cookie_of_the_endpoint_behind_is_for_its_client_alone() -> None:
    """All requests go there by one client, which would send it with the next one's."""
    seen: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, headers={"Set-Cookie": "session=first; Path=/"}, content=iter([b"ok"]))

    upstream = Upstream("http://behind.example", transport=httpx.MockTransport(reply))
    with served(upstream) as address:
        assert [ask(address, "GET", SELECT).headers["set-cookie"] for _ in range(2)] == 2 * ["session=first; Path=/"]
    assert ["cookie" in request.headers for request in seen] == [False, False]
    upstream.close()


def test_the_addresses_of_an_endpoint() -> None:
    root = Addresses("http://h:1/query", "http://h:1/update", "http://h:1/store")
    assert addresses("http://h:1") == addresses("http://h:1/") == addresses("http://h:1/query") == root
    assert addresses("https://h/a/sparql") == Addresses("https://h/a/sparql", None, None)
    assert addresses("https://h/a/query").update == "https://h/a/update"
    for wrong in ("h:1", "ftp://h", "http://"):
        with pytest.raises(OxiseqError):
            addresses(wrong)


def test_a_kb_behind_an_endpoint_answers_selects(behind: str) -> None:
    ask(behind, "PUT", "/store?default", [TURTLE], b"<http://e/a> <http://e/p> 1, 'x'@en .")
    upstream = Upstream(behind)
    kb = RemoteKb(upstream)
    try:
        found = {str(row["o"]) for row in kb.solutions("SELECT ?o { ?s ?p ?o }")}
        assert found == {'"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"x"@en'}
        before = kb.version
        kb.touch()
        assert kb.version != before
        for wrong in ("SELECT", "ASK {}"):
            with pytest.raises(KbError):
                kb.solutions(wrong)
    finally:
        upstream.close()


NAMED = """
PREFIX : <http://e/>
SELECT ?who ?name ?second
FROM STREAM S <http://e/payments>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S { ?who :paid ?first GRAPH <http://e/people> { ?who :name ?name } }
  DEFINE GPM B ON S { ?who :paid ?second FILTER(?second >= 10 * ?first) }
}"""


def test_the_engine_asks_its_static_patterns_of_the_endpoint(behind: str) -> None:
    people = b"<http://e/ann> <http://e/name> 'Ann'@en . <http://e/bob> <http://e/name> 'Bob'@en ."
    assert ask(behind, "PUT", "/store?graph=http://e/people", [TURTLE], people).status in (201, 204)
    upstream = Upstream(behind)
    kb = RemoteKb(upstream)
    paid = "<http://e/{}> <http://e/paid> {} ."
    payments = [("ann", 1), ("bob", 2), ("eve", 1), ("ann", 20), ("bob", 3), ("eve", 90)]
    events = [(1_000_000 * (i + 1), paid.format(*payment)) for i, payment in enumerate(payments)]
    try:
        matches = list(run(NAMED, streams={"http://e/payments": events}, kb=kb))
    finally:
        upstream.close()
    assert [(str(match["who"]), str(match["name"])) for match in matches] == [("<http://e/ann>", '"Ann"@en')]
