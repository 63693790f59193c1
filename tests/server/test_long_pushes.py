"""Events over one long request: acknowledged while they come, gone on with after a break, bounded whatever comes."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")

from test_edge import EACH, EX, PATH, STREAM, Client, eventually, live

from oxiseq.journal import Appending
from oxiseq.live import LiveService
from oxiseq.live.portions import LineEvents
from oxiseq.server import ServerSettings, readers

LINES = "Content-Type: application/x-ndjson"
QUADS = "Content-Type: application/n-quads"


PATIENCE = 60.0
"""Seconds that the rest of an answer may take."""


class Long:
    """A long request: pieces go out, lines come back."""

    def __init__(self, place: tuple[str, int], query: str = "", *headers: str, path: str = PATH) -> None:
        self.client = Client(place)
        kind = [] if any(each.startswith("Content-Type") for each in headers) else [LINES]
        head = [f"POST {path}/events{query} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", *kind, *headers]
        self.client.socket.sendall("\r\n".join([*head, "", ""]).encode())

    def begin(self) -> dict[str, Any]:
        """The first line, behind the head of a 200."""
        head = self.client.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head + self.client._rest
        return self.line()

    def send(self, data: bytes) -> None:
        self.client.socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def items(self, *items: dict[str, Any]) -> None:
        self.send(b"".join(json.dumps(item).encode() + b"\n" for item in items))

    def end(self) -> list[dict[str, Any]]:
        """No more is sent; the lines that still come."""
        self.client.socket.sendall(b"0\r\n\r\n")
        return self.rest()

    def line(self) -> dict[str, Any]:
        size = int(self.client.until(b"\r\n"), 16)
        assert size, "the answer has ended"
        text = self.client.until(b"\r\n")
        assert len(text) == size + 2
        found: dict[str, Any] = json.loads(text)
        return found

    def rest(self) -> list[dict[str, Any]]:
        found, deadline = [], time.monotonic() + PATIENCE
        while size := int(self.client.until(b"\r\n"), 16):
            assert time.monotonic() < deadline, f"it does not end: {found[-3:]}"  # a server says for ever that it lives
            text = self.client.until(b"\r\n")
            assert len(text) == size + 2
            found.append(json.loads(text))
        return found

    def until(self, number: int) -> dict[str, Any]:
        """Read on to the acknowledgement of an item."""
        return self.all_until(number)[-1]

    def all_until(self, number: int) -> list[dict[str, Any]]:
        """The lines up to the acknowledgement of an item."""
        found = [self.line()]
        while found[-1]["seq"] < number:
            found.append(self.line())
        return found

    def close(self) -> None:
        self.client.socket.close()


@contextmanager
def long(place: tuple[str, int], query: str = "", *headers: str) -> Iterator[Long]:
    made = Long(place, query, *headers)
    try:
        yield made
    finally:
        made.close()


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"time": 1_000_000 * number, "graph": f"<{EX}a> <{EX}n> {number} .", **more}


def quads(number: int) -> bytes:
    name = f"<{EX}e{number}>"
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    dated = f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{1_000_000 * number}"{integer} .\n'
    return f'{dated}<{EX}a> <{EX}n> "{number}"{integer} {name} .\n'.encode()


def numbers(service: LiveService) -> list[int]:
    """What stands in the stream, by its times."""
    text, _ = service.streams.text(STREAM, None, 10_000, "nquads")
    found = [line for line in text.decode().splitlines() if f"<{EX}n>" in line]
    return [int(line.split('"')[1]) for line in found]


def test_items_are_acknowledged_while_more_are_sent(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place, "?session=s") as push:
        assert push.begin() == {"session": "s", "last": 0}
        for number in range(1, 6):
            push.items(item(number))
            told = push.until(number)
            assert told["offsets"]["next"] == number
            assert numbers(service) == list(range(1, number + 1))
        assert push.end() == []


def test_many_items_of_one_piece_are_acknowledged_together(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        assert push.begin()["last"] == 0
        push.items(*map(item, range(1, 1001)))
        told = push.all_until(1000)
        assert told[0]["offsets"]["first"] == 0
        assert told[-1]["offsets"]["next"] == 1000
        assert sum(line["accepted"] for line in told) == 1000
        assert len(told) < 10
        assert numbers(service) == list(range(1, 1001))


def test_a_line_may_come_byte_by_byte(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        for byte in json.dumps(item(7)).encode() + b"\n":
            push.send(bytes([byte]))
        push.until(1)
        assert numbers(service) == [7]


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        push.send(json.dumps(item(7)).encode())
        assert [line["seq"] for line in push.end()] == [1]
        assert numbers(service) == [7]


def test_a_session_goes_on_and_stores_nothing_twice(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        with long(place, "?session=s") as push:
            push.begin()
            push.items(*(item(number, seq=number) for number in (2, 4, 6)))
            push.until(6)
        with long(place, "?session=s") as push:
            assert push.begin() == {"session": "s", "last": 6}
            push.items(*(item(number, seq=number) for number in (4, 6, 7, 7, 9)))
            told = push.until(9)
            assert (told["accepted"], told["duplicates"]) == (2, 3)
        assert numbers(service) == [2, 4, 6, 7, 9]
        with long(place, "?session=other") as push:
            assert push.begin()["last"] == 0


def test_lines_without_numbers_may_be_sent_again_from_the_beginning_or_from_any_number(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        for count, query in ((3, ""), (5, ""), (4, "&first=4")):
            with long(place, f"?session=s{query}") as push:
                push.begin()
                start = 4 if query else 1
                push.items(*map(item, range(start, start + count)))
                push.end()
        assert numbers(service) == [1, 2, 3, 4, 5, 6, 7]


def test_two_connections_with_one_session_the_later_one_goes_on(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place, "?session=s") as one:
        one.begin()
        with long(place, "?session=s") as two:  # not before: a server takes up two requests in any order
            one.items(*(item(number, seq=number) for number in range(1, 200)))
            hello = two.begin()
            told = one.rest()
            assert told[-1]["error"]["status"] == 409
            acknowledged = [line["seq"] for line in told if "seq" in line]
            assert max(acknowledged, default=0) <= hello["last"]
            two.items(*(item(number, seq=number) for number in range(1, 301)))
            two.until(300)
            assert numbers(service) == list(range(1, 301))


def test_events_as_n_quads_are_complete_when_the_next_begins(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place, "?session=q", QUADS) as push:
        push.begin()
        push.send(quads(1) + quads(2)[:50])
        push.send(quads(2)[50:] + quads(3))
        push.until(2)
        assert numbers(service) == [1, 2]
        assert [line["seq"] for line in push.end()] == [3]
        assert numbers(service) == [1, 2, 3]
        with long(place, "?session=q", QUADS) as again:
            assert again.begin()["last"] == 3
            again.send(b"".join(map(quads, range(1, 6))))
            (*_, last) = again.end()
            assert (last["seq"], last["offsets"]["next"]) == (5, 5)
        assert numbers(service) == [1, 2, 3, 4, 5]


def test_items_of_all_kinds(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        push.items(
            item(1),
            {"time": "1970-01-01T00:00:02Z", "graph": {"@id": f"{EX}a", f"{EX}n": 2}},
            {"advance": "1970-01-01T00:00:03Z"},
            item(1),
            {"time": "arrival", "graph": f"<{EX}a> <{EX}n> 3 ."},
            {"time": "arrival", "graph": f"<{EX}a> <{EX}n> 4 ."},
            item(5),
        )
        told = push.until(7)
        assert (told["accepted"], told["late"]) == (6, 2)
        assert numbers(service) == [1, 2, 1, 3, 4, 5]


def test_an_event_that_is_stamped_keeps_the_punctuation_behind_it(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        push.items({"time": "arrival", "graph": f"<{EX}a> <{EX}n> 1 ."}, {"advance": "2999-01-01T00:00:00Z"}, item(2))
        assert push.until(3)["late"] == 1
        push.items({"time": "2998-01-01T00:00:00Z", "graph": f"<{EX}a> <{EX}n> 3 ."})
        assert push.until(4)["late"] == 1
        assert numbers(service) == [1, 2, 3]


def test_a_piece_of_many_portions_is_submitted_as_the_disk_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        kind = type(service.journal.log)
        submit, way, longest = kind.submit, list[Appending](), 0

        def counted(log: Any, *given: Any) -> Appending:
            nonlocal way, longest
            way = [each for each in way if not each.done] + [submit(log, *given)]
            longest = max(longest, len(way))
            return way[-1]

        monkeypatch.setattr(kind, "submit", counted)
        push.items(*(each for time in range(250) for each in ({"advance": 10 + time}, item(0))))
        push.until(500)
        assert 0 < longest <= 9


def test_a_large_item_whose_last_byte_comes_is_decoded_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, threads = LineEvents.feed, list[str]()

    def noted(decoder: LineEvents, data: bytes) -> Any:
        if data == b"\n":
            threads.append(threading.current_thread().name)
        return feed(decoder, data)

    monkeypatch.setattr(LineEvents, "feed", noted)
    with live(tmp_path) as (place, _), long(place) as push:
        push.begin()
        text = f'<{EX}a> <{EX}n> "{"x" * 500_000}" .'
        push.send(json.dumps({"time": 1, "graph": text}).encode())
        time.sleep(0.3)
        push.send(b"\n")
        assert push.until(1)["accepted"] == 1
    assert threads
    assert all(name.startswith("oxiseq-live-requests") for name in threads)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"time": 1}, "no graph"),
        ({"graph": ""}, "no time"),
        ({}, "no time"),
        ({"time": "yesterday", "graph": ""}, "yesterday"),
        ({"time": None, "graph": ""}, "no time"),
        ({"time": 1, "graph": "<a> <b>"}, ""),
        ({"time": 1, "graph": 7}, "graph is text"),
        ({"time": 1, "graph": "", "other": 1}, "unknown members: other"),
        ({"advance": 1, "time": 2}, "an event or"),
        ({"advance": []}, "advance"),
        ({"time": 10**30, "graph": ""}, ""),
        ({"time": float("nan"), "graph": ""}, ""),
        ({"time": True, "graph": ""}, ""),
        ({"\ud800": 1}, "unknown members: \ud800"),
        ({"time": 1, "graph": "\ud800"}, ""),
        ({"time": 1, "graph": {"@context": "http://127.0.0.1:9/", "a": 1}}, ""),
        ({"time": 1, "graph": {"@context": "file:///etc/passwd"}}, ""),
    ],
)
def test_an_item_that_is_none_is_left_out_and_told(tmp_path: Path, wrong: dict[str, Any], reason: str) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        push.items(item(1), wrong, item(3))
        told = push.until(3)
        assert (told["accepted"], told["rejected"]) == (2, 1), told
        (said,) = told["reasons"]
        assert said["line"] == 2
        assert said["reason"].startswith("item 2: ")
        assert reason in said["reason"]
        assert numbers(service) == [1, 3]


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b'{"seq": 0}',
        b'{"seq": "1"}',
        b'{"seq": true}',
        b'{"seq": 1e3}',
        b"[" * 100_000,
        b'{"seq": ' + b"9" * 30 + b"}",
        b'{"seq": ' + b"9" * 5000 + b"}",
        b'{"seq": -1}',
        b"\0",
    ],
)
def test_a_line_that_is_no_item_ends_the_push_behind_what_came_before(
    tmp_path: Path, broken: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_LINGER", 0.3)  # the client never ends its body
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        push.send(json.dumps(item(1)).encode() + b"\n" + broken + b"\n" + json.dumps(item(2)).encode() + b"\n")
        (*told, last) = push.rest()
        assert [line["seq"] for line in told] == [1]
        assert last["error"]["status"] == 400
        assert "line 2" in last["error"]["detail"]
        assert push.client.closed()
        assert numbers(service) == [1]


def test_a_line_without_an_end_is_cut_at_a_megabyte(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        push.items(item(1))
        with pytest.raises(OSError):
            for _ in range(200):
                push.send(b"x" * (1 << 16))
            assert push.client.closed()
            raise OSError
        assert numbers(service) == [1]


def test_graphs_whose_times_never_come_are_cut(tmp_path: Path) -> None:
    with live(tmp_path) as (place, _), long(place, "", QUADS) as push:
        push.begin()
        push.client.socket.settimeout(30)
        text = b"".join(f"<{EX}a> <{EX}n> <{EX}b> <{EX}g%b{i}> .\n".encode() for i in range(1000))
        try:
            for number in range(400):
                push.send(text.replace(b"%b", b"%d-" % number))
        except OSError:
            return  # it has been closed
        assert push.rest()[-1]["error"]["status"] == 413


def test_half_an_item_and_then_silence_is_ended(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=2, live=8, slow=0.5)
    with live(tmp_path, settings) as (place, service), long(place) as push:
        push.begin()
        push.items(item(1))
        push.send(b'{"time"')
        (*_, last) = push.rest()
        assert last["error"]["status"] == 408
        assert numbers(service) == [1]


def test_silence_between_items_is_none_of_ours_and_heartbeats_say_that_we_are_there(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=2, live=8, slow=0.3, stall=0.3)
    with live(tmp_path, settings, heartbeat=0.2) as (place, service), long(place) as push:
        push.begin()
        push.items(item(1))
        push.until(1)
        assert [push.line() for _ in range(5)] == [{"seq": 1}] * 5
        push.items(item(2))
        push.until(2)
        assert numbers(service) == [1, 2]


def test_who_reads_nothing_until_all_is_sent_is_told_together(tmp_path: Path) -> None:
    with live(tmp_path) as (place, _), long(place) as push:
        push.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for start in range(1, 20_001, 100):
            push.items(*map(item, range(start, start + 100)))
        push.client.socket.sendall(b"0\r\n\r\n")
        push.begin()
        told = push.rest()
        assert told[-1]["seq"] == 20_000
        assert sum(line["accepted"] for line in told) == 20_000


def test_while_many_events_wait_nothing_is_read(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        before = service.worker.waiting
        with service.worker.lock:  # no turn comes
            object.__setattr__(service.settings, "waiting", 100)
            push.items(*map(item, range(1, 201)))
            push.until(200)
            eventually(lambda: service.worker.waiting >= 200)
            sent = 0
            push.client.socket.settimeout(1.0)
            text = b"".join(json.dumps(item(n)).encode() + b"\n" for n in range(1000))
            with pytest.raises(TimeoutError):
                while sent < 64 << 20:
                    push.send(text)
                    sent += len(text)
            assert len(numbers(service)) <= 5_000  # what had come before the events were counted
        assert before == 0


@pytest.mark.parametrize(
    "query",
    [
        "?session=",
        f"?session={'x' * 201}",
        "?session=%00",
        "?session=%C3%A9",
        "?first=x",
        "?first=-1",
        "?time=2024-01-01T00:00:00Z",
        "?session=a&session=b",
    ],
)
def test_what_is_asked_wrongly_is_refused(tmp_path: Path, query: str) -> None:
    with live(tmp_path) as (place, _), long(place, query) as push:
        push.client.socket.sendall(b"0\r\n\r\n")
        status, _ = push.client.answer()
        assert status == 400


def test_other_refusals(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        object.__setattr__(service.settings, "pushers", 1)
        for status, head in ((415, "Content-Type: text/turtle"), (415, "Content-Encoding: gzip")):
            with long(place, "", head) as push:
                push.client.socket.sendall(b"0\r\n\r\n")
                assert push.client.answer()[0] == status
        other = Long(place, path=f"/streams/{quote(EX + 'none', safe='')}")
        other.client.socket.sendall(b"0\r\n\r\n")
        assert other.client.answer()[0] == 404
        other.close()
        with long(place) as first, long(place) as second:
            first.begin()
            second.client.socket.sendall(b"0\r\n\r\n")
            assert second.client.answer()[0] == 503
            assert first.end() == []
        eventually(lambda: _may_push(place))


def _may_push(place: tuple[str, int]) -> bool:
    with long(place) as push:
        push.client.socket.sendall(b"0\r\n\r\n")
        return push.client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_client_that_waits_to_be_asked_is_asked(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place, "", "Expect: 100-continue") as push:
        assert push.client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        push.items(item(1))
        push.begin()
        push.until(1)
        assert numbers(service) == [1]


def test_a_stream_that_is_deleted_ends_the_push(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service), long(place) as push:
        push.begin()
        service.queries.delete("each")
        service.streams.delete(STREAM)
        push.items(item(1))
        assert push.rest()[-1]["error"]["status"] == 404


def test_matches_come_of_a_long_push(tmp_path: Path) -> None:
    assert "SELECT ?n" in EACH
    with live(tmp_path) as (place, service), long(place, "?time=arrival") as push:
        push.begin()
        push.items({"graph": f"<{EX}a> <{EX}n> 1 ."}, {"graph": f"<{EX}a> <{EX}n> 2 ."})
        push.until(2)
        eventually(lambda: service.journal.queries.get("each").next == 3)


def test_a_long_push_that_leaves_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    with live(tmp_path) as (place, service):
        for number in range(1, 50):
            with long(place, "?session=s") as push:
                push.items(*(item(i, seq=i) for i in range(1, 10 * number)))
                time.sleep(0.002 * (number % 5))
        with long(place, "?session=s") as push:
            push.begin()
            push.items(*(item(i, seq=i) for i in range(1, 601)))
            push.until(600)
        assert numbers(service) == list(range(1, 601))
