"""Times far ahead of the clock: of events and punctuations from the network, and of the clock itself."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from live_events import POWER
from live_services import live, rest, rows

import oxiseq
from oxiseq.bridges import BridgeSettings, Message
from oxiseq.engine.events.time import to_text
from oxiseq.journal import Appends, Journal, Retention
from oxiseq.journal.steady import PATIENCE, SteadyClock
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.bridges import Door, Inside
from oxiseq.live.intake import read_batch
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request
from oxiseq.sparql.settings import Limits

SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR
PATH: Final = f"/streams/{quote(POWER, safe='')}"
QUERY: Final = f"SELECT ?s FROM STREAM S <{POWER}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s ?p ?o }} }}"
GRAPH: Final = "<http://ex/{}> <http://ex/p> 1 ."
FAR: Final = "2206-01-01T00:00:00Z"


class Client:
    """Requests to the routes of a service."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        self.routes = LiveRoutes(service, Evaluations(Limits()))

    def send(self, method: str, path: str, body: str = "", kind: str = "", **query: str) -> tuple[int, dict[str, Any]]:
        headers = (("content-type", kind),) if kind else ()
        answered = self.routes.answer(Request(method, path, urlencode(query), headers, body.encode()))
        assert isinstance(answered.body, bytes)
        text = answered.body.decode()
        return answered.status, json.loads(text.splitlines()[-1]) if text.startswith("{") else {}

    def push(self, subject: str, at: int | str) -> tuple[int, dict[str, Any]]:
        return self.send(
            "POST", PATH, GRAPH.format(subject), "text/turtle", time=at if isinstance(at, str) else to_text(at)
        )


def now() -> int:
    return time.time_ns() // 1000


def quads(*events: tuple[str, str]) -> str:
    return "".join(
        f"<http://ex/{name}> <http://ex/p> <http://ex/o> <urn:{name}> .\n<urn:{name}>"
        f' <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        for name, at in events
    )


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with live(tmp_path, LiveSettings(idle=None, ahead=DAY)) as service:
        service.queries.register("q", QUERY)
        yield Client(service)


def found(service: LiveService, name: str = "q") -> list[str]:
    rest(service)
    return [str(row[0]).rpartition("/")[2].rstrip(">") for _, row in rows(service, name)]


def test_no_door_of_the_network_takes_a_time_far_ahead(client: Client) -> None:
    near, soon = to_text(now()), to_text(now() + HOUR)
    status, told = client.push("far", FAR)
    assert status == 400 and "--max-ahead" in told["detail"] and "2206" in told["detail"]
    status, told = client.send("POST", PATH, watermark="9999-01-01T00:00:00Z")
    assert status == 400 and "--max-ahead" in told["detail"]
    status, told = client.send("POST", PATH, quads(("near", near), ("far", FAR), ("soon", soon)), "application/n-quads")
    assert status == 200 and (told["accepted"], told["rejected"]) == (2, 1)
    assert "--max-ahead" in told["reasons"][0]["reason"]
    status, told = client.send("POST", PATH, GRAPH.format("x"), "text/turtle", time=near, watermark=FAR)
    assert status == 400 and "watermark" in told["detail"]
    log = 'VERSION "1.2-messages"\n' + GRAPH.format("far")
    assert client.send("POST", PATH, log, "text/turtle", time=FAR)[0] == 400
    mapping = '{"mapping": {"subject": "http://ex/{id}", "predicates": {"http://ex/v": "v"}, "time": "t"}}'
    assert client.send("PATCH", PATH, mapping, "application/json")[0] == 200
    status, told = client.send("POST", PATH, f'[{{"id": 1, "v": 1, "t": "{FAR}"}}]', "application/json")
    assert status == 400 and "--max-ahead" in str(told)
    # a long push, in one request or over a WebSocket: the same decoder
    lines = f'{{"seq": 1, "advance": "{FAR}"}}\n{{"seq": 2, "time": "{FAR}", "graph": "<urn:a> <urn:b> <urn:c> ."}}\n'
    lines += f'{{"seq": 3, "time": "{soon}", "graph": "<http://ex/long> <urn:b> <urn:c> ."}}\n'
    status, told = client.send("POST", PATH + "/events", lines, "application/x-ndjson")
    assert status == 200 and told["seq"] == 3 and (told["accepted"], told["rejected"]) == (1, 2), told
    assert client.send("POST", PATH, watermark=to_text(now() + 2 * HOUR))[0] == 200
    assert sorted(found(client.service)) == ["long", "near", "soon"]


def test_a_bridge_sets_it_aside_as_a_dead_letter(client: Client) -> None:
    settings = BridgeSettings.of(
        {"url": "nats://localhost", "topic": "t", "into": POWER, "media_type": "application/n-quads"},
        Path("unused"),
        "b",
    )
    inside = Inside(client.service.journal, Door(client.routes.begin_push, client.routes.end_push), settings)
    near = to_text(now())
    messages = [
        Message(quads(("far", FAR)).encode(), "k1", None),
        Message(quads(("near", near)).encode(), "k2", None),
    ]
    refused, taken = inside.push(messages)
    assert "--max-ahead" in refused.refused and not taken.refused and taken.events == 1


def test_python_in_this_process_is_not_bound(tmp_path: Path) -> None:
    for store in (oxiseq.open(), oxiseq.open(tmp_path)):
        with store:
            query = store.register(QUERY)
            store.stream(POWER).push(GRAPH.format("far"), FAR)
            store.stream(POWER).advance("9999-01-01T00:00:00Z")
            assert len(query.matches()) == 1


def test_a_stream_that_is_silenced_can_be_made_to_speak_again(tmp_path: Path) -> None:
    """As docs/streaming.md says."""
    with live(tmp_path, LiveSettings(idle=None)) as service:  # as it was before there was a limit
        service.queries.register("q", QUERY)
        assert Client(service).push("far", FAR)[0] == 200
    with live(tmp_path, LiveSettings(idle=None, ahead=DAY)) as service:
        client, soon = Client(service), to_text(now() + HOUR)
        assert client.push("late", now())[1]["late"] == 1
        client.send("POST", PATH, watermark=soon)
        assert found(service) == []
        assert client.send("DELETE", PATH)[0] == 409  # while a query reads it
        assert client.send("DELETE", "/queries/q")[0] == 204 and client.send("DELETE", PATH)[0] == 204
        assert client.send("PUT", "/queries/q", QUERY, "application/spaseq-query")[0] == 200
        assert client.push("heard", now())[1]["late"] == 0
        client.send("POST", PATH, watermark=soon)
        assert found(service) == ["heard"]


class Machine:
    """A system's clock that can be set, and one that only counts."""

    def __init__(self) -> None:
        self.wall, self.count = now(), 0

    def go(self, by: int) -> None:
        self.wall, self.count = self.wall + by, self.count + by

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.count)


def test_a_clock_that_jumps_for_a_while_deletes_nothing_and_leaves_no_arrivals_ahead(tmp_path: Path) -> None:
    machine = Machine()
    body = quads(("a", "2024-01-01T00:00:00Z")).encode()
    blob = read_batch(body, "nquads").blob
    with Journal(tmp_path / "j", "normal", clock=machine.clock()) as journal:
        journal.streams.create(POWER, Retention(HOUR))
        journal.log.append(POWER, blob)
        machine.go(60 * SECOND)
        machine.wall += 10 * DAY
        for _ in range(10):
            machine.go(60 * SECOND)
            assert journal.retain() == 0
        stamped = journal.log.store(Appends.of(POWER, blob, on_arrival=True)).time
        assert stamped is not None and stamped < machine.wall - 9 * DAY
        machine.wall -= 10 * DAY
        machine.go(SECOND)
        stamped = journal.log.store(Appends.of(POWER, blob, on_arrival=True)).time
        assert stamped == machine.wall
        machine.go(HOUR + SECOND)
        assert journal.retain() > 0  # and it is deleted when its time has come


def test_a_new_time_that_stays_is_followed_and_ages_stay_what_they_are(tmp_path: Path) -> None:
    machine = Machine()
    blob = read_batch(quads(("a", "2024-01-01T00:00:00Z")).encode(), "nquads").blob
    with Journal(tmp_path / "j", "normal", clock=machine.clock()) as journal:
        journal.streams.create(POWER, Retention(HOUR))
        journal.log.append(POWER, blob)
        machine.wall += 10 * DAY
        for _ in range(2):
            journal.retain()
            machine.go(PATIENCE + SECOND)
        assert journal.now == machine.wall
        assert journal.retain() == 0 and journal.streams.get(POWER).first == 0  # half an hour old
        machine.go(HOUR // 2)
        assert journal.retain() == 1
        machine.wall -= 10 * DAY
        journal.retain()
        machine.go(PATIENCE + SECOND)
        assert journal.now == machine.wall


def test_small_corrections_are_followed_at_once() -> None:
    machine = Machine()
    clock = machine.clock()
    for by in (30 * SECOND, -20 * SECOND, 5):
        machine.wall += by
        machine.go(SECOND)
        assert clock() == machine.wall
