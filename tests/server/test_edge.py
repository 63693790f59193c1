"""The loop that owns the socket: pushes, live readers, and clients that send half of something or too much of it."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")

from servers import served

from benchmarks.serving.crowd import Crowd
from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.rights import Grant, Token, digest_of, line_of
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sparql import SparqlEndpoint

EX = "http://example.org/"
STREAM = f"{EX}s"
PATH = f"/streams/{quote(STREAM, safe='')}"
EACH = f"""PREFIX : <{EX}>
SELECT ?n FROM STREAM S <{STREAM}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s :n ?n }} }}"""


@contextmanager
def live(
    folder: Path, settings: ServerSettings | None = None, heartbeat: float = 12.0, subscribers: int = 64
) -> Iterator[tuple[tuple[str, int], LiveService]]:
    """Where a server with one stream and one query over it listens."""
    endpoint = SparqlEndpoint(Store())
    chosen = settings if settings is not None else ServerSettings(port=0, threads=2, live=8)
    with LiveService(Store(), folder, LiveSettings(subscribers=subscribers, heartbeat=heartbeat), "normal") as service:
        service.streams.create(STREAM)
        service.queries.register("each", EACH)
        with served(endpoint, chosen, LiveRoutes(service, endpoint.evaluations)) as address:
            parts = urlsplit(address)
            yield (parts.hostname or "", parts.port or 0), service


def event(number: int) -> bytes:
    return f"<{EX}a> <{EX}n> {number} .".encode()


def request(
    body: bytes, target: str = f"{PATH}?time=arrival", *headers: str, method: str = "POST", host: str = "localhost"
) -> bytes:
    head = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
    if body and not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        head.append(f"Content-Length: {len(body)}")
    if method == "POST" and not any(line.lower().startswith("content-type") for line in headers):
        head.append("Content-Type: text/turtle")
    return "\r\n".join([*head, "", ""]).encode() + body


class Client:
    """A socket, and what has come from it."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.socket = socket.create_connection(place, timeout=60)
        self._rest = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def until(self, mark: bytes) -> bytes:
        """What comes up to a mark, and the mark."""
        while mark not in self._rest:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError(self._rest)
            self._rest += data
        found, _, self._rest = self._rest.partition(mark)
        return found + mark

    def answer(self) -> tuple[int, bytes]:
        """Status and body."""
        head = self.until(b"\r\n\r\n").lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(self._rest) < size:
            self._rest += self.socket.recv(1 << 16)
        body, self._rest = self._rest[:size], self._rest[size:]
        return int(head.split()[1]), body

    def ask(self, sent: bytes) -> tuple[int, bytes]:
        self.socket.sendall(sent)
        return self.answer()

    def closed(self) -> bool:
        """Whether the server closes it, in twenty seconds."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        return True


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_pushes_in_one_packet_are_answered_in_their_order(tmp_path: Path) -> None:
    with live(tmp_path) as (place, _), Client(place) as client:
        client.socket.sendall(b"".join(request(event(number)) for number in range(20)))
        answers = [client.answer() for _ in range(20)]
        assert {status for status, _ in answers} == {200}
        assert [json.loads(body)["offsets"]["first"] for _, body in answers] == list(range(20))


def test_pushes_of_many_connections_share_transactions(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        clients = [Client(place) for _ in range(60)]
        before = service.journal.commits
        for _ in range(5):
            for number, client in enumerate(clients):
                client.socket.sendall(request(event(number), f"{PATH}?time=arrival", f"Idempotency-Key: {number}"))
            found = [client.answer() for client in clients]
            assert {status for status, _ in found} == {200}
            assert sorted(json.loads(body)["offsets"]["first"] for _, body in found) == list(range(60))
        assert service.streams.get(STREAM).next == 60
        assert service.journal.commits - before < 250
        for client in clients:
            client.socket.close()


@pytest.mark.parametrize("pushed", [1, 3000])
def test_a_push_may_be_packed_or_in_chunks(tmp_path: Path, pushed: int) -> None:
    body = b"".join(event(number) + b"\n" for number in range(pushed))
    packed = gzip.compress(body)
    with live(tmp_path) as (place, service), Client(place) as client:
        assert client.ask(request(packed, f"{PATH}?time=arrival", "Content-Encoding: gzip"))[0] == 200
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
        assert client.ask(request(chunks, f"{PATH}?time=arrival", "Transfer-Encoding: chunked"))[0] == 200
        assert client.ask(request(packed[:-9], f"{PATH}?time=arrival", "Content-Encoding: gzip"))[0] == 400
        assert client.ask(request(packed, f"{PATH}?time=arrival", "Content-Encoding: br"))[0] == 415
        assert service.streams.get(STREAM).next == 2


def test_a_push_is_refused_as_any_other_request(tmp_path: Path) -> None:
    tokens = Tokens("read", "write")
    settings = ServerSettings(port=0, threads=2, live=2, tokens=tokens, cors=("https://app.example",), body=1000)
    written = "Authorization: Bearer write"
    with live(tmp_path, settings) as (place, service), Client(place) as client:
        for status, sent in [
            (401, request(event(1))),
            (403, request(event(1), PATH, "Authorization: Bearer read")),
            (403, request(event(1), PATH, written, "Origin: https://else.example")),
            (421, request(event(1), PATH, written, host="else.example")),
            (404, request(event(1), f"/streams/{quote(EX, safe='')}?time=arrival", written)),
            (400, request(event(1), "/streams/none?time=arrival", written)),
            (400, request(event(1), PATH, written)),
            (415, request(event(1), PATH, written, "Content-Type: text/plain")),
            (413, request(b" " * 1001, f"{PATH}?time=arrival", written)),
            (200, request(event(1), f"{PATH}?time=arrival", written)),
        ]:
            assert client.ask(sent)[0] == status
        client.socket.sendall(request(event(2), f"{PATH}?time=arrival", written, "Origin: https://app.example"))
        assert b"access-control-allow-origin: https://app.example" in client.until(b"\r\n\r\n")
        assert service.streams.get(STREAM).next == 2


@pytest.mark.parametrize("expecting", [False, True])
def test_the_answer_to_a_refused_push_is_seen_however_large_it_is(tmp_path: Path, expecting: bool) -> None:
    settings = ServerSettings(port=0, threads=2, live=2, tokens=Tokens("read", "write"))
    body, wrong = b"".join(event(number) + b"\n" for number in range(200_000)), "Authorization: Bearer other"
    with live(tmp_path, settings) as (place, _), Client(place) as client:
        sent = request(body, PATH, wrong, *(["Expect: 100-continue"] if expecting else []))
        if expecting:
            assert client.ask(sent[: -len(body)])[0] == 401
            assert client.closed()
        else:
            assert client.ask(sent)[0] == 401
            assert client.ask(request(b"", "/health", method="GET"))[0] == 200


@pytest.mark.parametrize("target", [PATH, "/update"])
def test_a_client_cannot_say_what_its_proxy_says(tmp_path: Path, target: str) -> None:
    settings = ServerSettings(port=0, threads=2, live=2, tokens=Tokens("read", "write"), behind_proxy=True)
    with live(tmp_path, settings) as (place, _), Client(place) as client:
        for number in range(11):
            told = ("Authorization: Bearer other", "X-Forwarded-For: 192.0.2.1", f"X_Forwarded_For: 192.0.2.{number}")
            status, _ = client.ask(request(event(number), target, *told))
        assert status == 429


def test_a_body_in_chunks_is_taken_wherever_one_is(tmp_path: Path) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (event(1)[:9], event(1)[9:], b""))
    triples = b"SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    with live(tmp_path) as (place, _), Client(place) as client:
        sent = request(chunks, "/store?default", "Transfer-Encoding: chunked")
        client.socket.sendall(sent)
        assert b" 204 " in client.until(b"\r\n\r\n")
        asked = request(triples, "/query", "Content-Type: application/sparql-query", "Accept: text/csv")
        client.socket.sendall(asked)
        client.until(b"\r\nn\r\n")
        assert client.until(b"\r\n") == b"1\r\n"


def test_a_request_may_come_before_the_end_of_the_last_one_is_known(tmp_path: Path) -> None:
    body = b"".join(event(number) + b"\n" for number in range(20_000))
    with live(tmp_path) as (place, _), Client(place) as client:
        sent = request(body, "/store?default")
        client.socket.sendall(request(b"", "/health", method="GET") + sent[: -len(body)])
        assert client.answer()[0] == 200
        for at in range(0, len(body), 50_000):
            time.sleep(0.02)
            client.socket.sendall(body[at : at + 50_000])
        assert b" 204 " in client.until(b"\r\n\r\n")


@pytest.mark.parametrize("target", [f"{PATH}?time=arrival", "/update"])
def test_a_body_beyond_all_bounds_is_not_read_to_its_end(tmp_path: Path, target: str) -> None:
    settings = ServerSettings(port=0, threads=2, live=2, body=1000)
    with live(tmp_path, settings) as (place, _), Client(place) as client:
        client.socket.sendall(request(b"", target, "Content-Length: 1000000000"))
        with pytest.raises(OSError):
            for _ in range(10_000):
                client.socket.sendall(b" " * 100_000)


@pytest.mark.parametrize("beside", ["nothing", "a live reader"])
def test_a_head_without_end_is_cut_off(tmp_path: Path, beside: str) -> None:
    with live(tmp_path) as (place, _), Client(place) as client:
        if beside == "a live reader":
            client.socket.sendall(request(b"", "/queries/each/matches", "Accept: text/event-stream", method="GET"))
            client.until(b": listening\n\n")
        client.socket.sendall(b"GET /health HTTP/1.1\r\n")
        with pytest.raises(OSError):
            for number in range(200_000):
                client.socket.sendall(b"X-%d: %s\r\n" % (number, b"y" * 4000))


@pytest.mark.parametrize(
    "sent",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        request(event(1), PATH, "Content-Length: 7", "Transfer-Encoding: chunked"),
        request(event(1), PATH, "Content-Length: 7", "Content-Length: 9"),
        request(event(1), PATH, "Content-Length: -1"),
    ],
)
def test_what_is_no_request_is_a_400_and_the_end_of_the_connection(tmp_path: Path, sent: bytes) -> None:
    with live(tmp_path) as (place, service), Client(place) as client:
        assert client.ask(sent)[0] in (400, 404, 405)
        if b" HTTP/1.1" not in sent or b"Content-Length" in sent:
            assert client.closed()
        with Client(place) as other:
            assert other.ask(request(b"", "/health", method="GET"))[0] == 200
        assert service.streams.get(STREAM).next == 0


def test_a_live_reader_is_told_of_pushes_and_of_silence(tmp_path: Path) -> None:
    with live(tmp_path, heartbeat=0.2) as (place, _), Client(place) as reader, Client(place) as pusher:
        reader.socket.sendall(request(b"", "/queries/each/matches", "Accept: text/event-stream", method="GET"))
        head = reader.until(b"\r\n\r\n")
        assert b"200 OK" in head and b"text/event-stream" in head
        reader.until(b": still here\n\n")
        for number in range(50):
            assert pusher.ask(request(event(number)))[0] == 200
        for number in range(50):
            assert b"id: %d\n" % (number + 1) in reader.until(b"event: match\n")
        reader.until(b": still here\n\n")


def test_a_live_reader_whose_token_is_revoked_is_told_no_more(tmp_path: Path) -> None:
    def write(*names: str) -> None:
        lines = [line_of(Token(name, digest_of(name), (Grant("read"), Grant("push")))) for name in names]
        file.write_text("\n".join(lines))

    file = tmp_path / "tokens"
    write("one", "two", "pusher")
    settings = ServerSettings(port=0, threads=2, live=8, tokens=Tokens(file=file))
    target = f"{PATH}?time=arrival"
    with live(tmp_path, settings, 0.2) as (place, _), Client(place) as one, Client(place) as two, Client(place) as too:
        for name, reader in (("one", one), ("two", two)):
            headers = ("Accept: text/event-stream", f"Authorization: Bearer {name}")
            reader.socket.sendall(request(b"", "/queries/each/matches", *headers, method="GET"))
            reader.until(b": listening\n\n")
        write("two", "pusher")
        assert b"event: end" not in one.until(b"\r\n0\r\n\r\n")
        assert too.ask(request(event(7), target, "Authorization: Bearer pusher"))[0] == 200
        two.until(b"event: match\n")
        headers = ("Accept: text/event-stream", "Authorization: Bearer one")
        assert one.ask(request(b"", "/queries/each/matches", *headers, method="GET"))[0] == 401


def test_readers_that_leave_make_room_at_once(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        asked = request(b"", "/queries/each/matches", "Accept: text/event-stream", method="GET")
        readers = [Client(place) for _ in range(30)]
        for reader in readers:
            reader.socket.sendall(asked)
        for reader in readers:
            reader.until(b": listening\n\n")
        assert service.subscriptions.count == 30
        for reader in readers:
            reader.socket.close()
        eventually(lambda: service.subscriptions.count == 0)


def test_a_reader_at_its_end_is_told_and_the_connection_goes_on(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), Client(place) as reader:
        reader.socket.sendall(request(b"", "/queries/each/matches", "Accept: text/event-stream", method="GET"))
        reader.until(b": listening\n\n")
        service.queries.delete("each")
        assert b"deleted" in reader.until(b"0\r\n\r\n")
        assert reader.ask(request(b"", "/health", method="GET"))[0] == 200


def test_half_open_connections_are_let_go(tmp_path: Path) -> None:
    """The client has ended its side, before a request or in the midst of one."""
    with live(tmp_path) as (place, _):
        for sent in (b"", b"GET /hea", request(event(1), PATH, "Content-Length: 1000")):
            with Client(place) as client:
                client.socket.sendall(sent)
                client.socket.shutdown(socket.SHUT_WR)
                assert client.closed()


CHUNKS = "Transfer-Encoding: chunked"
FRAMES = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'A' * 22}==")
LONG = request(b"", f"{PATH}/events?session=s", "Content-Type: application/x-ndjson", CHUNKS)
ITEM = b'{"seq":1,"time":1,"graph":"<urn:a> <urn:b> 1 ."}\n'
CHUNK, FRAME = b"%x\r\n%b\r\n" % (len(ITEM), ITEM), bytes([0x81, 0x80 | len(ITEM), 0, 0, 0, 0]) + ITEM
DOORS = {
    "a push": (request(event(1), f"{PATH}?time=arrival", "Idempotency-Key: k"), b""),
    "a large push": (request(event(1) + b"#" * 200_000, f"{PATH}?time=arrival", "Idempotency-Key: k"), b""),
    "a long push": (LONG, CHUNK),
    "a long push that is at its end": (LONG + CHUNK + b"0\r\n\r\n", b""),
    "a WebSocket's push": (request(b"", f"{PATH}/events?session=s", *FRAMES, method="GET"), FRAME),
    "a reader": (request(b"", "/queries/each/matches", "Accept: text/event-stream", method="GET"), b""),
    "a WebSocket's reader": (request(b"", "/queries/each/matches", *FRAMES, method="GET"), b""),
    "a query": (request(b"", "/query?query=ASK%7B%7D", method="GET"), b""),
    "a registration": (
        request(EACH.encode(), "/queries/new", "Content-Type: application/spaseq-query", method="PUT"),
        b"",
    ),
}
"""A request at each of them, and what follows once the head of the answer has come."""


@pytest.mark.parametrize("door", DOORS)
def test_who_closes_for_sending_alone_leaves_nothing_behind(tmp_path: Path, door: str) -> None:
    """It is taken for gone, as one that closes all: its place is free at once, with one thread and one live reader, and
    what it has sent is not stored twice when it comes again."""

    def sent(client: Client) -> bytes:
        request, behind = DOORS[door]
        client.socket.sendall(request)
        head = client.until(b"\r\n\r\n") if behind else b""
        client.socket.sendall(behind)
        return head

    with live(tmp_path, ServerSettings(port=0, threads=1, live=1), subscribers=1) as (place, service):
        for _ in range(3):
            with Client(place) as client:
                sent(client)
                client.socket.shutdown(socket.SHUT_WR)
                client.socket.settimeout(10)
                assert client.closed()

        def let_in() -> bool:
            """Its request may begin after the connection has ended, and takes the place for a moment then."""
            with Client(place) as client:
                head = sent(client) or client.until(b"\r\n\r\n")
                assert head[9:12] in (b"200", b"101", b"503"), head
                return head[9:12] != b"503" and ("push" not in door or stored())

        def stored() -> bool:
            eventually(lambda: service.streams.get(STREAM).next == 1)
            return True

        eventually(let_in)


@pytest.mark.parametrize(
    "sent", [b"GET /hea", request(b"x", PATH, "Content-Length: 1000"), request(b"x", "/update", "Content-Length: 1000")]
)
def test_who_sends_too_slowly_holds_no_thread_and_is_cut_off(tmp_path: Path, sent: bytes) -> None:
    settings = ServerSettings(port=0, threads=1, live=1, slow=1.0)
    with live(tmp_path, settings) as (place, _):
        slow = [Client(place) for _ in range(20)]
        for client in slow:
            client.socket.sendall(sent)
        with Client(place) as other:
            assert other.ask(request(b"", "/queries", method="GET"))[0] == 200
            assert other.ask(request(event(1)))[0] == 200
        assert all(client.closed() for client in slow)


def test_beside_a_crowd_that_wants_nothing_everybody_is_answered(tmp_path: Path) -> None:
    """The same with ten thousand: python -m benchmarks.serving.crowd."""
    settings = ServerSettings(port=0, threads=2, live=90, connections=80)
    with live(tmp_path, settings, heartbeat=0.2, subscribers=90) as (place, service):
        crowd = Crowd(place, "each")
        crowd.slow(20)
        crowd.idle(30)
        crowd.readers(30)
        crowd.sockets(30)
        crowd.gone(20)
        with Client(place) as other:
            for number in range(10):
                assert other.ask(request(event(number)))[0] == 200
            assert other.ask(request(b"", "/query?query=ASK%7B%7D", method="GET"))[0] == 200
        eventually(lambda: service.subscriptions.count == 60)  # those that are gone are noticed as they are sent to
        assert crowd.left == {"idle": 30, "readers": 30, "sockets": 30}
        crowd.close()
        eventually(lambda: service.subscriptions.count == 0)


def test_connections_beyond_those_at_work_are_told_to_come_again(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=1, live=3, connections=0)
    with live(tmp_path, settings) as (place, service):
        readers = [Client(place) for _ in range(3)]
        for reader in readers:
            reader.socket.sendall(request(b"", "/queries/each/matches", "Accept: text/event-stream", method="GET"))
            reader.until(b": listening\n\n")
        with Client(place) as late:
            assert late.answer()[0] == 503
        for reader in readers:
            reader.socket.close()
        eventually(lambda: service.subscriptions.count == 0)
        with Client(place) as later:
            assert later.ask(request(b"", "/health", method="GET"))[0] == 200


def test_what_runs_when_the_server_ends_is_answered(tmp_path: Path) -> None:
    answers: list[int] = []
    with live(tmp_path) as (place, _):
        clients = [Client(place) for _ in range(20)]

        def push(client: Client) -> None:
            try:
                for number in range(100_000):
                    answers.append(client.ask(request(event(number)))[0])
            except (ConnectionError, ValueError, IndexError):
                return

        threads = [threading.Thread(target=push, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        eventually(lambda: len(answers) > 50)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert set(answers) == {200}
    with LiveService(Store(), tmp_path, LiveSettings(), "normal") as again:
        assert 0 <= again.streams.get(STREAM).next - len(answers) <= len(clients)


def test_the_server_ends_beside_a_client_that_takes_nothing(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=2, live=2, grace=1.0)
    triples = " ".join(f"<http://e/{number}> <http://e/p> {number} ." for number in range(700))
    update = ("Content-Type: application/sparql-update",)
    query = "/query?query=" + quote("SELECT * { ?s ?p ?o . ?t ?q ?r }")
    with live(tmp_path, settings) as (place, _), Client(place) as client:
        client.socket.sendall(request(f"INSERT DATA {{ {triples} }}".encode(), "/update", *update))
        assert b"204" in client.until(b"\r\n\r\n")
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.sendall(request(b"", query, method="GET"))
        assert b"200 OK" in client.until(b"\r\n\r\n")
        begun = time.monotonic()
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize("target", [PATH, "/query"])
def test_a_name_that_looks_like_the_proxys_header_is_not_believed(tmp_path: Path, target: str) -> None:
    settings = ServerSettings(port=0, threads=2, live=8, tokens=Tokens(read="r", write="w"), behind_proxy=True)
    found = []
    with live(tmp_path, settings) as ((host, port), _):
        connection = http.client.HTTPConnection(host, port, timeout=10)
        for number in range(11):
            told = {"X-Forwarded-For": "192.0.2.1", "X_Forwarded_For": f"198.51.100.{number}"}
            connection.request("POST", target, b"", {"Authorization": "Bearer wrong", **told})
            answer = connection.getresponse()
            answer.read()
            found.append(answer.status)
        connection.close()
    assert found == [401] * 10 + [429]
