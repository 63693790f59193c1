"""`extend` at a server elsewhere: over a WebSocket with sessions where one is to be had, else in batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

import httpx
import pytest
from opened_stores import opened, serving
from werkzeug.serving import make_server

import oxiseq
from oxiseq.api.store import Store
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import ConflictError, UnknownError
from oxiseq.live import LiveService
from oxiseq.live.api import LiveRoutes
from oxiseq.rights import Token, digest_of, grant_of, line_of
from oxiseq.served import RefusedError, ServedStream
from oxiseq.served.long_push import LongPush
from oxiseq.served.wire import Wire
from oxiseq.server import ServerSettings, Tokens, create_app
from oxiseq.sparql import SparqlEndpoint

E = "http://e/"
S = E + "S"
MANY = 9000
"""Events of several messages and of several batches that are read at a time."""


def events(count: int, first: int = 1) -> Iterator[tuple[int, str]]:
    return ((n, f'<{E}x> <{E}p> "{n}" .') for n in range(first, first + count))


def stored(store: Any, count: int) -> list[int]:
    """The numbers in the stream's events, in their order."""
    found: list[int] = []
    while len(found) < count:
        params = {"offset": len(found), "limit": 10_000}
        text = store._backend.wire.send("GET", "streams", S, "events", params=params, accept="application/n-quads").text
        more = [int(line.split('"')[1].split("-")[0]) for line in text.splitlines() if f"<{E}p>" in line]
        assert more
        found += more
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with serving(tmp_path / "j") as address, oxiseq.open(address, patience="5s") as opened:
        yield opened


def test_events_of_many_messages_are_stored_in_their_order(store: Any) -> None:
    stream = store.stream(S)
    assert stream.extend(events(MANY)) == MANY == stream.events
    assert stored(store, MANY) == list(range(1, MANY + 1))
    assert asyncio.run(stream.extend_async(events(10, MANY))) == 10
    assert stream.extend(iter(())) == 0
    assert stream.events == MANY + 10


def test_a_session_goes_on_behind_what_is_stored(store: Any) -> None:
    stream = store.stream(S)
    assert stream.extend(events(5000), session="back fill") == 5000
    assert stream.extend(events(MANY), session="back fill") == MANY == stream.events
    assert stream.extend(events(MANY), session="back fill") == MANY
    assert stream.extend(events(3), session="back fill") == 3
    assert stored(store, MANY) == list(range(1, MANY + 1))
    for wrong in ("", "a\n", "ä", "a" * 201):
        with pytest.raises(oxiseq.OxiseqError, match="session="):
            stream.extend(events(1), session=wrong)


@pytest.mark.parametrize("length", [300_000, 600_000, 1_300_000])
def test_events_that_fit_no_message_are_pushed_between_the_others(store: Any, length: int) -> None:
    def mixed() -> Iterator[tuple[int, str]]:
        for n, graph in events(9):
            yield n, graph.replace('"', '"' + f"{n}-" + "x" * length, 1).replace(f"x{n}", "x") if n % 3 == 0 else graph

    for _ in range(2):
        assert store.stream(S).extend(mixed(), session="large") == 9
    assert stored(store, 9) == list(range(1, 10))


def test_what_was_read_before_an_error_is_stored(store: Any) -> None:
    def broken() -> Iterator[Any]:
        yield from events(MANY)
        yield "no event"

    with pytest.raises(oxiseq.OxiseqError):
        store.stream(S).extend(broken())
    assert store.stream(S).events == 2 * 4096
    assert stored(store, 8192) == list(range(1, 8193))


def test_a_stream_that_is_deleted_while_the_connection_is_broken_is_told(store: Any) -> None:
    store.stream(S)
    push = LongPush(store._backend.wire, S, "s")

    def texts() -> Iterator[str]:
        terms = TermDictionary()
        yield from quads_text([encode_events(events(5000), terms)], terms)
        assert push._connection is not None
        push._connection.socket.shutdown(SHUT_RDWR)
        store._backend.wire.send("DELETE", "streams", S)
        yield from quads_text([encode_events(events(5000, 5001), terms)], terms)

    with pytest.raises(UnknownError, match="no stream"):
        push.send(texts())


def test_half_a_character_is_refused(store: Any) -> None:
    half = '<http://e/x> <http://e/p> "\ud800" .'
    for refused in (
        lambda: store.stream(S).push(half, 1),
        lambda: store.stream(S).extend([(1, half)]),
        lambda: store.stream(S).push(half.replace("\ud800", ""), "\ud800"),
        lambda: store.stream("http://e/\ud800"),
        lambda: store.register(f"SELECT ?x FROM STREAM <{S}> [RANGE PT1S] WHERE {{ {half} }}", "rspql"),
        lambda: store.register(f"SELECT ?x FROM STREAM <{S}> [RANGE PT1S] WHERE {{ ?x ?p 1 }}", "rspql", name="\ud800"),
    ):
        with pytest.raises(oxiseq.OxiseqError, match=r"half a character|not a valid time|is no name"):
            refused()


def test_who_goes_on_with_a_session_ends_the_one_before(store: Any) -> None:
    stream, halfway, go_on = store.stream(S), threading.Event(), threading.Event()
    refused: list[BaseException] = []

    def slow() -> Iterator[tuple[int, str]]:
        yield from events(5000)
        halfway.set()
        assert go_on.wait(60)
        yield from events(MANY - 5000, 5001)

    def first() -> None:
        try:
            stream.extend(slow(), session="s")
        except ConflictError as error:
            refused.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert halfway.wait(60)
    assert stream.extend(events(MANY), session="s") == MANY
    go_on.set()
    thread.join(60)
    assert "another connection continues" in str(refused[0])
    assert stream.extend(events(3), session="s") == 3
    assert stored(store, MANY) == list(range(1, MANY + 1))


@pytest.mark.parametrize(
    ("address", "token"), [("http://u:p%40%C3%A9@h/x", "t"), ("http://u:@h", None), ("http://h", "t")]
)
def test_a_socket_is_opened_under_the_same_name_as_a_request(address: str, token: str | None) -> None:
    sent: list[httpx.Request] = []

    def answered(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    transport = httpx.MockTransport(answered)
    with httpx.Client(base_url=address, headers=headers, transport=transport) as client:
        wire = Wire(client, 0)
        wire.send("GET", "streams")
        _, options = wire.socket("listStreams")
    assert options["additional_headers"] == {"authorization": sent[0].headers["authorization"]}


def test_refusals(tmp_path: Path) -> None:
    reads = Token("r", digest_of("r"), (grant_of("read"),))
    (tmp_path / "tokens").write_text(line_of(reads) + "\n")
    with serving(tmp_path / "j", Tokens("looks", "writes", file=tmp_path / "tokens")) as address:
        with oxiseq.open(address, token="writes") as store:
            assert store.stream(S).extend(events(10)) == 10
            unmapped = type("Unmapped", (ServedStream,), {"mapping": None})  # else the server is asked for it
            gone = oxiseq.Stream(E + "none", unmapped(E + "none", store._backend.wire))
            with pytest.raises(UnknownError):
                gone.extend(events(10))
        with oxiseq.open(address, token="r") as store, pytest.raises(RefusedError):
            oxiseq.Stream(S, ServedStream(S, store._backend.wire)).extend(events(10))


def test_where_no_websockets_are_taken_events_are_pushed_in_batches(tmp_path: Path) -> None:
    with LiveService(Store(), tmp_path, None, "normal") as service:
        endpoint = SparqlEndpoint(service.store)
        app = create_app(endpoint, ServerSettings(port=0), LiveRoutes(service, endpoint.evaluations))
        server = make_server("127.0.0.1", 0, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with oxiseq.open(f"http://127.0.0.1:{server.server_port}") as store:
                assert store.stream(S).extend(events(MANY)) == MANY
                assert stored(store, MANY) == list(range(1, MANY + 1))
                with pytest.raises(oxiseq.OxiseqError, match="session: it needs"):
                    store.stream(S).extend(events(1), session="s")
        finally:
            server.shutdown()
            thread.join(30)
            server.server_close()


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_store_in_this_process_takes_no_session(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store, pytest.raises(oxiseq.OxiseqError, match="session: it needs"):
        store.stream(S).extend(events(1), session="s")
