"""WebSockets: long pushes and live readers; and clients that send half of a frame, or too much of one."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")
pytest.importorskip("websockets", reason="websockets is not installed: pip install 'oxiseq[server]'")

from test_edge import PATH, STREAM, Client, event, eventually, live
from test_edge import request as http
from test_long_pushes import item, numbers, quads
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from oxiseq.rights import Grant, Token, digest_of, line_of
from oxiseq.server import ServerSettings, Tokens

MATCHES = "/queries/each/matches"
Place = tuple[str, int]
CLOSED = "the server has closed it"


@contextmanager
def opened(place: Place, path: str, **headers: str) -> Iterator[ClientConnection]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with connect(f"ws://{place[0]}:{place[1]}{path}", additional_headers=sent, compression=None) as made:
        yield made


def told(made: ClientConnection, timeout: float = 20.0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.recv(timeout))
    return found


def lines(*items: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, items))


def until(made: ClientConnection, number: int) -> list[dict[str, Any]]:
    found = [told(made)]
    while found[-1]["seq"] < number:
        found.append(told(made))
    return found


def raw(place: Place, path: str) -> Client:
    """A WebSocket whose frames the test writes itself."""
    client = Client(place)
    head = [
        f"GET {path} HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]
    client.socket.sendall("\r\n".join([*head, "", ""]).encode())
    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    return client


def frame(data: bytes, opcode: int = 1, *, last: bool = True) -> bytes:
    """Of a client: masked, with zeroes."""
    size = len(data)
    length = (
        bytes([0x80 | size])
        if size < 126
        else b"\xfe" + struct.pack(">H", size)
        if size < 1 << 16
        else (b"\xff" + struct.pack(">Q", size))
    )
    return bytes([0x80 * last | opcode]) + length + bytes(4) + data


def closed(client: Client, within: float = 10.0) -> bool:
    """Whether the server ends the connection in time."""
    client.socket.settimeout(within)
    try:
        while client.socket.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def test_items_in_messages_are_acknowledged(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), opened(place, f"{PATH}/events?session=s") as made:
        assert told(made) == {"session": "s", "last": 0}
        made.send(lines(item(1), item(2)))
        assert until(made, 2)[-1]["offsets"]["next"] == 2
        made.send(lines(item(3)).encode())
        until(made, 3)
        assert numbers(service) == [1, 2, 3]


def test_messages_of_n_quads_hold_whole_events(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), opened(place, f"{PATH}/events?session=s&format=nquads") as made:
        assert told(made)["last"] == 0
        made.send(quads(1))
        until(made, 1)
        made.send((quads(2) + quads(3)).decode())
        until(made, 3)
        made.send(b"nonsense\n")
        assert told(made)["rejected"] == 1
        assert numbers(service) == [1, 2, 3]
        with opened(place, f"{PATH}/events?session=s&format=nquads&first=2") as again:
            assert told(again)["last"] == 3
            again.send(quads(2) + quads(3) + quads(4))
            assert [(line["accepted"], line["duplicates"]) for line in until(again, 4)] == [(1, 2)]


def test_a_session_goes_on_from_a_request_to_a_socket_and_ends_the_one_before(tmp_path: Path) -> None:
    path = f"{PATH}/events?session=s"
    with live(tmp_path) as (place, service), opened(place, path) as one:
        one.send(lines(item(1, seq=1), item(2, seq=2)))
        told(one)
        until(one, 2)
        with opened(place, path) as two:
            assert told(two)["last"] == 2
            with pytest.raises(ConnectionClosedError) as ended:
                while True:
                    one.recv(10)
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 4409
            two.send(lines(item(2, seq=2), item(3, seq=3)))
            until(two, 3)
        assert numbers(service) == [1, 2, 3]


def test_matches_come_with_their_ids_and_go_on_after_one(tmp_path: Path) -> None:
    with live(tmp_path) as (place, _), opened(place, MATCHES) as made, Client(place) as pusher:
        assert told(made) == {"event": "listening"}
        for number in range(5):
            assert pusher.ask(http(event(number)))[0] == 200
        found = [told(made) for _ in range(5)]
        assert [each["id"] for each in found] == [1, 2, 3, 4, 5]
        assert {each["event"] for each in found} == {"match"}
        assert [each["data"]["bindings"]["n"]["value"] for each in found] == ["0", "1", "2", "3", "4"]
        assert [each["data"]["id"] for each in found] == [1, 2, 3, 4, 5]
        for again, header in ((f"{MATCHES}?after=3", {}), (MATCHES, {"Last_Event_ID": "3"})):
            with opened(place, again, **header) as later:
                assert [told(later).get("id") for _ in range(3)] == [None, 4, 5]


def test_a_reader_is_told_when_the_query_is_gone(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), opened(place, MATCHES) as made:
        told(made)
        service.queries.delete("each")
        assert told(made) == {"event": "end", "data": {"reason": "deleted"}}
        with pytest.raises(ConnectionClosed) as ended:
            made.recv(10)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1000


def test_readers_that_come_and_go_are_counted(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        for _ in range(3):
            with opened(place, MATCHES) as made:
                told(made)
                assert service.subscriptions.count == 1
            eventually(lambda: service.subscriptions.count == 0)
        broken = raw(place, MATCHES)
        eventually(lambda: service.subscriptions.count == 1)
        broken.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        broken.socket.close()
        eventually(lambda: service.subscriptions.count == 0)


def test_a_reader_that_says_anything_is_shown_out(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), opened(place, MATCHES) as made:
        told(made)
        made.send("hello")
        with pytest.raises(ConnectionClosed) as ended:
            made.recv(10)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 4400
        eventually(lambda: service.subscriptions.count == 0)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/streams", 400),
        (PATH, 400),
        ("/health", 404),
        ("/", 404),
        ("/queries/none/matches", 404),
        ("/metrics", 400),
        ("/streams/http%3A%2F%2Fnone%2F/events", 404),
        (f"{PATH}/events?format=turtle", 400),
        (f"{PATH}/events?first=x", 400),
        (f"{MATCHES}?after=x", 400),
        ("/queries/each/other", 404),
    ],
)
def test_where_nothing_live_is_a_socket_is_refused(tmp_path: Path, path: str, status: int) -> None:
    with live(tmp_path) as (place, _), pytest.raises(InvalidStatus) as refused, opened(place, path):
        pass
    assert refused.value.response.status_code == status


def test_rights_hold_for_sockets(tmp_path: Path) -> None:
    named = [
        Token("in", digest_of("in"), (Grant("push", "stream", STREAM),)),
        Token("out", digest_of("out"), (Grant("read", "query", "each"),)),
    ]
    file = tmp_path / "tokens"
    file.write_text("".join(f"{line_of(each)}\n" for each in named))
    settings = ServerSettings(port=0, threads=2, live=8, tokens=Tokens(file=file))
    with live(tmp_path, settings) as (place, service):
        for path, wrong, right in ((f"{PATH}/events", "out", "in"), (MATCHES, "in", "out")):
            for token, status in ((None, 401), ("nonsense", 401), (wrong, 403)):
                given = {} if token is None else {"Authorization": f"Bearer {token}"}
                with pytest.raises(InvalidStatus) as refused, opened(place, path, **given):
                    pass
                assert refused.value.response.status_code == status
            with opened(place, path, Authorization=f"Bearer {right}") as made:
                told(made)
        with opened(place, f"{PATH}/events", Authorization="Bearer in") as made:
            told(made)
            time.sleep(1.1)  # the file is looked at once a second
            file.write_text(f"{line_of(named[1])}\n")
            made.send(lines(item(1)))
            with pytest.raises(ConnectionClosedError) as ended:
                while True:
                    made.recv(10)
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 4403
        assert numbers(service) == [1]


@pytest.mark.parametrize("path", [f"{PATH}/events", MATCHES])
def test_pages_from_elsewhere_may_not_open_one(tmp_path: Path, path: str) -> None:
    with live(tmp_path) as (place, _):
        for origin in ("http://evil.example", "null", "http://["):
            with pytest.raises(InvalidStatus) as refused, opened(place, path, Origin=origin):
                pass
            assert refused.value.response.status_code == 403
        with opened(place, path, Origin=f"http://{place[0]}:{place[1]}") as made:
            told(made)
        with pytest.raises(InvalidStatus) as refused, opened(place, path, Host="evil.example"):
            pass  # beside the one that the library sends
        assert refused.value.response.status_code == 421


def test_a_page_that_may_ask_may_open_one(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=2, live=8, cors=("http://good.example",))
    with live(tmp_path, settings) as (place, _), opened(place, MATCHES, Origin="http://good.example") as made:
        told(made)


def test_half_a_frame_and_then_silence_stops_nobody(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), Client(place) as other:
        halves = [raw(place, f"{PATH}/events") for _ in range(20)]
        for i, half in enumerate(halves):
            half.socket.sendall(frame(json.dumps(item(1)).encode())[: 1 + 3 * i])
        assert other.ask(http(event(1)))[0] == 200
        for half in halves:
            half.socket.close()
        eventually(lambda: _pushers(place))
        assert service.journal.streams.get(STREAM).next == 1


def _pushers(place: Place) -> bool:
    with opened(place, f"{PATH}/events") as made:
        return "last" in told(made)


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 20,  # reserved bits
        frame(b"\xff\xfe\xfd"),  # no UTF-8
        frame(b"x", 3),
        frame(b"x", 11),  # unknown opcodes
        frame(b"x", 0),  # goes on with nothing
        frame(b"x" * 126, 9),  # a ping that is too long
        frame(b"x", 9, last=False),  # half a ping
        b"\x81\x05hello",  # not masked
        b"\x81\xff" + struct.pack(">Q", 1 << 62),  # a frame without end
        b"\x81\xff" + struct.pack(">Q", 2 << 20) + bytes(4),  # more than a message may have
        frame(b"\x03", 8),
        frame(struct.pack(">H", 5), 8),
        frame(b"x" * 200, 8),  # wrong ends
        frame(b"x", 1, last=False) + frame(b"x", 1),  # a message within a message
    ],
)
def test_what_is_no_frame_ends_the_connection(tmp_path: Path, sent: bytes) -> None:
    with live(tmp_path) as (place, service):
        for path in (f"{PATH}/events", MATCHES):
            client = raw(place, path)
            client.socket.sendall(sent)
            assert closed(client), CLOSED
        eventually(lambda: service.subscriptions.count == 0)
        assert numbers(service) == []


def test_a_message_in_a_thousand_frames_with_pings_between_is_one(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        client = raw(place, f"{PATH}/events")
        text = json.dumps(item(7)).encode()
        for i in range(len(text)):
            client.socket.sendall(frame(text[i : i + 1], 1 if i == 0 else 0, last=False) + frame(b"p", 9))
        client.socket.sendall(frame(b"", 0))
        client.until(b'"accepted": 1')
        assert numbers(service) == [7]


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(frame(b"", 0, last=False), marks=pytest.mark.full),
        frame(b"x" * 100, 9),
        pytest.param(frame(b"", 10), marks=pytest.mark.full),
        frame(b"x", 0, last=False),
    ],
)
def test_parts_and_pings_without_end_are_cut(tmp_path: Path, flood: bytes) -> None:
    with live(tmp_path) as (place, _), Client(place) as other:
        client = raw(place, f"{PATH}/events")
        client.socket.sendall(frame(b"{", 1, last=False))
        client.socket.settimeout(20)
        sent, many = 0, flood * 10_000
        with pytest.raises(OSError):
            while sent < 64 << 20:
                client.socket.sendall(many)
                sent += len(many)
        assert sent < 32 << 20
        assert other.ask(http(event(1)))[0] == 200


def test_a_reader_that_takes_nothing_is_cut_off_and_others_are_told(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=2, live=8, stall=1.0)
    with live(tmp_path, settings) as (place, service), opened(place, MATCHES) as other, Client(place) as pusher:
        slow = raw(place, MATCHES)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        eventually(lambda: service.subscriptions.count == 2)
        text = "x" * 2000
        body = b"".join(
            quads(n).replace(b'"%d"^^<http://www.w3.org/2001/XMLSchema#integer> <' % n, f'"{n}{text}" <'.encode())
            for n in range(4000)
        )
        assert pusher.ask(http(body, PATH, "Content-Type: application/n-quads"))[0] == 200
        told(other)
        for _ in range(3999):
            told(other, 60)
        eventually(lambda: service.subscriptions.count == 1)


def test_a_busy_server_is_left_in_order_when_it_ends(tmp_path: Path) -> None:
    with live(tmp_path) as (place, _):
        made = connect(f"ws://{place[0]}:{place[1]}{PATH}/events", compression=None)
        reader = connect(f"ws://{place[0]}:{place[1]}{MATCHES}", compression=None)
        told(made), told(reader)
        made.send(lines(item(1)))
        until(made, 1)
    for each in (made, reader):
        with pytest.raises(ConnectionClosed):
            while True:
                each.recv(10)


def test_random_bytes_never_stop_it(tmp_path: Path) -> None:
    with live(tmp_path) as (place, _), Client(place) as other:
        for size in (1, 10, 100, 1000, 10_000):
            for _ in range(10):
                client = raw(place, f"{PATH}/events")
                client.socket.sendall(os.urandom(size))
                client.socket.close()
        assert other.ask(http(event(1)))[0] == 200
