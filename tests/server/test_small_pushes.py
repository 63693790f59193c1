"""Small pushes that no HTTP server sees: read as it reads them, and as many, in their order, whatever the pieces."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httptools
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_edge import PATH, STREAM, Client, event, live, request

from oxiseq.live.intake import LARGEST
from oxiseq.server import ServerSettings, Tokens
from oxiseq.server.connections import LEAVE, Connection, Connections
from oxiseq.server.pushes import may_begin, read_head
from oxiseq.server.readers import FromThreads

HEAD = b"POST /streams/http%3A%2F%2Fe.org%2Fs?time=arrival HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5"
PARTS = (
    *(b"\r\n", b"\r", b"\n", b" ", b"\t", b":", b"\0", b"\x80", b"?", b"#", b"/", b"%2F", b"=", b",", b"1", b""),
    *(b"POST ", b"GET ", b"/streams/", b" HTTP/1.1", b" HTTP/1.0", b"Host: other", b"Content-Length: 5", b"_"),
    *(b"Content-Length: +5", b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"Connection: close"),
    *(b"Content-Type: text/turtle", b"Content-Type: application/json", b"Idempotency-Key:", b"Content-Encoding: gzip"),
)


class Parsed:
    """What the HTTP server's parser reads."""

    def __init__(self, head: bytes) -> None:
        self.url, self.headers, self.whole, self.body = b"", list[tuple[str, str]](), False, b""
        parser = httptools.HttpRequestParser(self)
        parser.feed_data(head + b"\r\n\r\n12345")
        self.method, self.version = parser.get_method(), parser.get_http_version()
        self.stays = parser.should_keep_alive() and not parser.should_upgrade()

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower().decode(), value.decode("latin-1").strip(" \t")))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.whole = True


@settings(deadline=None)
@example(HEAD, [])
@example(HEAD + b"\r\nHost: b\r\nX-Y:\t a  b \t", [])
@given(
    st.lists(st.sampled_from(PARTS), max_size=4).map(lambda lines: b"\r\n".join((HEAD, *lines))),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), st.sampled_from(PARTS)), max_size=3),
)
def test_a_head_is_read_as_the_http_server_reads_it_or_left_to_it(head: bytes, edits: list[Any]) -> None:
    for at, gone, part in edits:
        head = head[:at] + part + head[at + gone :]
    found = None if b"\r\n\r\n" in head else read_head(head)
    if found is None:
        assert edits or head != HEAD
        return
    parsed = Parsed(head)
    target = found.path + (f"?{found.query}" if b"?" in parsed.url else "")
    assert (parsed.method, parsed.version, parsed.url) == (b"POST", "1.1", target.encode())
    assert found.headers == tuple(parsed.headers) and parsed.stays
    assert parsed.body == b"12345"[: found.length] and (parsed.whole or found.length > 5)


@pytest.mark.parametrize(
    "more",
    [
        *(b"Transfer-Encoding: chunked", b"Content-Length: 5", b"Connection: close", b"Upgrade: h2c", b"A : b"),
        *(b" folded", b"Expect: 100-continue", b"Content-Encoding: gzip", b"Content-Type: text/csv", b"A\x00: b"),
    ],
)
def test_what_asks_for_more_is_left_to_the_http_server(more: bytes) -> None:
    assert read_head(HEAD) is not None and read_head(HEAD + b"\r\n" + more) is None
    for wrong in (b"-1", b"+5", b"5_0", b"\xb2", str(LARGEST + 1).encode(), b"9" * 99, b""):
        assert read_head(HEAD[:-1] + wrong) is None


@pytest.mark.parametrize(
    "begun",
    [
        *(HEAD.replace(b"\r\n", b"\n"), HEAD + b"\n\n", HEAD + b"\r\n\n", HEAD.replace(b"\r\n", b"\r"), b"POST /x"),
        *(b"POST /streams/a b HTTP/1.1\r\n", HEAD.replace(b"1.1", b"9.9"), HEAD + b"\r\nno field\r\n", HEAD + b"\0"),
    ],
)
def test_a_malformed_head_is_left_to_the_http_server_before_its_end(begun: bytes) -> None:
    assert all(may_begin(HEAD[:length]) for length in range(1, len(HEAD)))
    assert may_begin(HEAD + b"\r") and may_begin(HEAD + b"\r\n") and may_begin(HEAD + b"\r\n\r")
    assert not may_begin(begun)


class Wire:
    """A transport, and the HTTP server behind it: what each of them got."""

    def __init__(self) -> None:
        self.sent, self.passed, self.reads, self.closed = b"", b"", True, False

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.passed += data

    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class Threes:
    """Takes three bytes at a time while they begin with `a`; some are answered at once, the others later."""

    def __init__(self) -> None:
        self.taken, self.under_way = list[bytes](), list[Connection]()

    def take(self, connection: Connection, data: bytes) -> int:
        assert not self.under_way
        if not data.startswith(b"a"):
            return LEAVE
        if len(data) < 3:
            return 0
        connection.begin()
        connection.work()
        self.taken.append(data[:3])
        self.under_way.append(connection)
        if data[1:2] == b"n":
            self.answer()
        return 3

    def answer(self) -> None:
        self.under_way.pop().answer(self.taken[-1].upper())


def at_a_loop(check: Any) -> None:
    async def run() -> None:
        owner, short, wire = Connections(10, 30, 30), Threes(), Wire()
        owner.short = short
        connection = Connection(owner, wire)  # type: ignore[arg-type]  # as much of both as is used
        connection.connection_made(wire)  # type: ignore[arg-type]
        await check(connection, short, wire)

    asyncio.run(run())


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"aN1", b"an2", b"aL3"]), max_size=6).map(b"".join),
    st.sampled_from([b"", b"GET", b"GETaN1", b"a"]),
    st.lists(st.sampled_from([1, 2, 3, 7, "full", "empty"]), min_size=1),
)
def test_all_that_comes_is_taken_or_passed_on_once_and_in_order(short: bytes, rest: bytes, steps: list[Any]) -> None:
    async def check(connection: Connection, threes: Threes, wire: Wire) -> None:
        left, taken = short + rest, b""
        for step in (*steps, *([7, "empty"] * 20)):
            if step in ("full", "empty"):
                (connection.pause_writing if step == "full" else connection.resume_writing)()
            elif wire.reads:
                connection.data_received(left[:step])
                left = left[step:]
            if threes.under_way and step != 1:
                assert not wire.passed and connection.waiting is False
                threes.answer()
            await asyncio.sleep(0)
            taken = b"".join(threes.taken)
            assert (short + rest).startswith(taken + wire.passed) and taken.upper().startswith(wire.sent)
        await asyncio.sleep(0)
        assert taken == short and wire.sent == short.upper()
        assert wire.passed == (b"" if rest == b"a" else rest)

    at_a_loop(check)


def test_others_get_their_turn_between_those_that_are_answered_at_once() -> None:
    async def check(connection: Connection, threes: Threes, wire: Wire) -> None:
        connection.data_received(b"an1" * 4)
        for number in (1, 2, 3):
            assert len(threes.taken) == number and not wire.reads
            await asyncio.sleep(0)
        assert len(threes.taken) == 4 and wire.reads

    at_a_loop(check)


def test_a_call_that_fails_holds_up_none_behind_it() -> None:
    async def run() -> None:
        loop, called, failed = asyncio.get_running_loop(), list[int](), list[object]()
        loop.set_exception_handler(lambda loop, context: failed.append(context["exception"]))
        calls = FromThreads(loop)
        calls.call(lambda: {}[0])
        calls.call(lambda: called.append(1))
        for _ in range(3):
            await asyncio.sleep(0)
        assert called == [1] and len(failed) == 1

    asyncio.run(run())


def test_what_is_under_way_is_answered_before_the_server_closes_the_connection() -> None:
    async def check(connection: Connection, threes: Threes, wire: Wire) -> None:
        connection.data_received(b"aL1aL2")
        wire.transport.close()  # as the HTTP server does when it ends
        assert wire.transport.is_closing() and not wire.closed
        threes.answer()
        assert wire.closed and wire.sent == b"AL1" and threes.taken == [b"aL1"]

    at_a_loop(check)


def test_one_that_leaves_meanwhile_gets_nothing() -> None:
    async def check(connection: Connection, threes: Threes, wire: Wire) -> None:
        connection.data_received(b"aL1a")
        wire.closed = True
        connection.connection_lost = lambda exc: None  # type: ignore[method-assign]  # the HTTP server's part is not here
        threes.answer()
        await asyncio.sleep(0)
        assert wire.sent == b"" and threes.taken == [b"aL1"]

    at_a_loop(check)


def test_pushes_are_answered_as_by_the_http_server(tmp_path: Path) -> None:
    tokens = Tokens("read", "write")
    chosen = ServerSettings(port=0, threads=2, live=2, tokens=tokens, cors=("https://app.example",))
    written = "Authorization: Bearer write"
    with live(tmp_path, chosen) as (place, service):
        for sent in (
            request(event(1), f"{PATH}?time=arrival", written),
            request(event(1), f"{PATH}?time=arrival", written, "Origin: https://app.example"),
            request(event(1), f"{PATH}?time=arrival", written, "Origin: https://else.example"),
            request(event(1), f"{PATH}?time=arrival", "Accept: text/plain"),
            request(event(1), f"{PATH}?time=arrival", written, "Accept: text/plain", host="else.example"),
            request(b"nonsense", f"{PATH}?time=arrival", written),
            request(event(1), f"{PATH}?time=arrival&time=arrival", written),
            request(event(1), "/streams/none?time=arrival", written),
            request(b"", f"{PATH}?watermark=2030-01-01T00:00:00Z", written, "Content-Length: 0"),
        ):
            found = []
            for before in (b"", request(b"", "/health", method="GET")):
                with Client(place) as client:
                    if before:
                        client.ask(before)
                    client.socket.sendall(sent)
                    head = client.until(b"\r\n\r\n").lower().split(b"\r\n")
                    kept = sorted(line for line in head if not line.startswith((b"date:", b"content-length:")))
                    assert any(line.startswith(b"date:") for line in head)
                    found.append(kept)
            assert found[0] == found[1]
        assert service.streams.get(STREAM).next == 4


def test_pieces_and_other_requests_between_pushes(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), Client(place) as client, Client(place) as other:
        sent = request(event(1))
        for at in range(len(sent)):
            client.socket.sendall(sent[at : at + 1])
        assert client.answer()[0] == 200
        client.socket.sendall(sent + request(b"", "/health", method="GET") + sent + sent)
        assert [client.answer()[0] for _ in range(4)] == [200] * 4
        assert service.streams.get(STREAM).next == 4
        inside = request(sent, "/streams/none", "Content-Type: text/turtle", method="POST")
        other.socket.sendall(request(b" " * 5000 + sent, PATH, "Content-Type: text/plain")[: -len(sent)])
        other.socket.sendall(sent)  # of the body, though it looks like a push
        assert other.answer()[0] == 415
        assert other.ask(inside)[0] == 400
        assert service.streams.get(STREAM).next == 4
