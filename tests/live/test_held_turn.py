"""While the worker works at something heavy, who deletes, pauses, resumes, registers or looks is answered at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from live_events import POWER
from live_services import eventually, rest
from websockets.sync.client import connect

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, Serving, create_app
from oxiseq.sinks import Allowed
from oxiseq.sparql import SparqlEndpoint

OTHER = "http://ex/other"
FED = "http://ex/fed"
SECOND = 5.0
"""What takes a moment, on a machine that others are at work on, too: who waits for the turn waits for ever."""
STREAM = f"/streams/{quote(POWER, safe='')}"


LOOKS = (
    "/health",
    "/ready",
    "/metrics",
    "/queries",
    "/queries/warm",
    "/queries/answer",
    "/queries/warm/explanation",
    "/queries/warm/matches",
    "/queries/warm/sinks",
    "/queries/warm/sinks/file",
    "/queries/answer/changes",
    "/streams",
    STREAM,
    f"{STREAM}/events",
    f"{STREAM}/ldes",
    "/bridges",
    "/openapi.json",
)


def query(iri: str = POWER, head: str = "SELECT ?s") -> str:
    return f"{head} FROM STREAM S <{iri}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s ?p ?o }} }}"


FEEDS = query(head=f"CONSTRUCT {{ ?s ?p ?o }} INTO STREAM <{FED}>")


class Held:
    """A server whose worker can be held within a turn, with all locks that it takes there."""

    def __init__(self, service: LiveService, address: str) -> None:
        self.service, self.address = service, address
        self.client = httpx.Client(base_url=address, timeout=60)
        self._held, self._go_on = threading.Event(), threading.Event()

    def push(self, subject: str, time: int) -> None:
        response = self.client.post(
            STREAM,
            params={"time": str(time)},
            content=f"<http://ex/{subject}> <http://ex/p> 1 .",
            headers={"content-type": "text/turtle"},
        )
        assert response.status_code == 200, response.text

    @contextmanager
    def turn(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A turn does not end within."""
        push = self.service._engine.push

        def holds(*given: Any) -> Any:
            self._held.set()
            assert self._go_on.wait(60)
            return push(*given)

        self._held.clear()
        self._go_on.clear()
        with monkeypatch.context() as patched:
            patched.setattr(self.service._engine, "push", holds)
            self.push("held", 5_000_000)
            assert self._held.wait(10)
            try:
                yield
            finally:
                self._go_on.set()
        rest(self.service)

    def quick(self, method: str, path: str, **given: Any) -> httpx.Response:
        """The response, within a second."""
        begun = time.monotonic()
        response = self.client.request(method, path, **given)
        assert time.monotonic() - begun < SECOND, (method, path)
        return response

    def register(self, name: str, text: str | None = None, **given: Any) -> httpx.Response:
        return self.quick("PUT", f"/queries/{name}", json={"text": text or query(), **given})


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    (tmp_path / "out").mkdir()
    allowed = Allowed.of((), (), tmp_path / "out", None)
    store = Store()
    settings = LiveSettings(idle=None, sinks_allowed=allowed, heartbeat=0.1)
    with LiveService(store, tmp_path, settings, "normal") as service:
        eventually(lambda: service.ready)
        endpoint, http = SparqlEndpoint(store), ServerSettings(port=0, threads=8, live=8)
        routes = LiveRoutes(service, endpoint.evaluations)
        serving = Serving(create_app(endpoint, http, routes), http, service.end_subscriptions)
        thread = threading.Thread(target=serving.run)
        thread.start()
        try:
            found = Held(service, serving.address)
            found.client.put("/queries/warm", json={"text": query()})
            yield found
            found.client.close()
        finally:
            serving.stop()
            thread.join(30)


def names(held: Held) -> dict[str, str]:
    return {each["name"]: each["state"] for each in held.quick("GET", "/queries").json()["queries"]}


def test_every_route_that_looks_or_deletes_answers(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gone", "rests", "rested", "replaced"):
        held.register(name)
    held.client.put("/queries/feeds", json={"text": FEEDS})
    held.client.put("/queries/answer", json={"text": "SELECT ?s { ?s ?p ?o }", "language": "sparql"})
    held.quick("PATCH", "/queries/rested", json={"state": "paused"})
    held.quick("PUT", "/queries/warm/sinks/file", json={"kind": "file", "path": "m.ndjson"})
    held.quick("PUT", f"/streams/{quote(OTHER, safe='')}")
    held.push("before", 1_000_000)
    rest(held.service)
    for path in LOOKS:  # what is imported for the first answer is
        held.client.get(path)
    with held.turn(monkeypatch):
        for path in LOOKS:
            assert held.quick("GET", path).status_code in (200, 503), path
        for path in ("/queries/warm/matches", "/queries/answer/changes"):
            begun = time.monotonic()
            with held.client.stream("GET", path, headers={"accept": "text/event-stream"}) as response:
                assert response.status_code == 200
                assert next(response.iter_bytes())
            assert time.monotonic() - begun < SECOND, path
        begun = time.monotonic()
        with connect(held.address.replace("http", "ws") + f"{STREAM}/events?format=ndjson") as socket:
            assert b"last" in _bytes(socket.recv(timeout=SECOND))
        assert time.monotonic() - begun < 2 * SECOND
        assert held.quick("DELETE", "/queries/gone").status_code == 204
        assert held.quick("DELETE", "/queries/gone").status_code == 404
        assert held.quick("DELETE", "/queries/answer").status_code == 204
        assert held.quick("DELETE", "/queries/warm/sinks/file").status_code == 204
        assert held.quick("DELETE", f"/streams/{quote(OTHER, safe='')}").status_code == 204
        assert held.quick("DELETE", STREAM).status_code == 409
        assert held.quick("PATCH", "/queries/rests", json={"state": "paused"}).json()["state"] == "paused"
        assert held.quick("PATCH", "/queries/rested", json={"state": "running"}).json()["state"] == "running"
        assert held.register("new").status_code == 200
        assert held.register("replaced", query(OTHER)).json()["reads"] == [OTHER]
        assert held.quick("GET", "/queries/gone").status_code == 404
        held.push("after", 6_000_000)  # the new one sees it
        assert held.register("gone").status_code == 200  # another one under an earlier name
    held.client.post(STREAM, params={"watermark": "1970-01-01T00:00:10Z"})
    rest(held.service)
    assert names(held)["rests"] == "paused" and names(held)["rested"] == "running"
    assert _found(held, "rested") == ["before", "held", "after"]
    assert _found(held, "new") == ["after"] and _found(held, "gone") == [] and _found(held, "replaced") == []
    assert held.service.worker.stops == 0 and held.quick("GET", "/ready").status_code == 200


def test_what_a_deleted_query_finds_is_nobodys(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    held.register("q")
    held.register("feeds", FEEDS)
    held.push("a", 1_000_000)
    rest(held.service)
    with held.turn(monkeypatch):  # completes the instant of `a`, which is a match of both
        assert held.quick("DELETE", "/queries/q").status_code == 204
        assert held.quick("DELETE", "/queries/feeds").status_code == 204
        assert held.quick("DELETE", f"/streams/{quote(FED, safe='')}").status_code == 204
        held.register("q")
    assert held.service.worker.stops == 0 and held.service.worker.whole
    assert _found(held, "q") == [] and _found(held, "warm") == ["a"]
    held.push("b", 7_000_000)
    held.client.post(STREAM, params={"watermark": "1970-01-01T00:00:10Z"})
    rest(held.service)
    assert _found(held, "q") == ["b"]


def test_changes_that_wait_survive_a_restart(tmp_path: Path) -> None:
    """What is durable of them is done at once; the worker, which makes the rest, may never come to it."""
    settings = LiveSettings(idle=None)
    with LiveService(Store(), tmp_path, settings, "normal") as service:
        eventually(lambda: service.ready)
        for name in ("gone", "rests"):
            service.queries.register(name, query())
        held = threading.Thread(target=_hold, args=(service, lambda: _change(service)))
        held.start()
        held.join(30)
    with LiveService(Store(), tmp_path, settings, "normal") as service:
        eventually(lambda: service.ready)
        assert {each.record.name: each.doing for each in service.queries.all()} == {"rests": "paused", "new": "running"}


def _hold(service: LiveService, work: Callable[[], None]) -> None:
    with service.worker.lock:
        other = threading.Thread(target=work)
        other.start()
        other.join(20)


def _change(service: LiveService) -> None:
    service.queries.delete("gone")
    service.queries.pause("rests")
    service.queries.register("new", query())


def _found(held: Held, name: str) -> list[str]:
    response = held.client.get(f"/queries/{name}/matches", headers={"accept": "application/sparql-results+json"})
    return [row["s"]["value"].rpartition("/")[2] for row in response.json()["results"]["bindings"]]


def _bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


def test_the_lock_is_let_go_between_entries(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it gets it after some hundredths of a second of work, not behind all that is in the log."""
    worker, push, entries = held.service.worker, held.service._engine.push, [0]

    def slow(*given: Any) -> Any:
        entries[0] += 1
        busy = time.thread_time() + 0.01
        while time.thread_time() < busy:
            pass
        return push(*given)

    monkeypatch.setattr("oxiseq.live.worker.GROUP", 1)
    monkeypatch.setattr(held.service._engine, "push", slow)
    with worker.lock:
        for number in range(40):
            held.push(f"s{number}", number)
    before = stretches(held)
    rest(held.service)
    assert entries[0] == 40
    assert stretches(held) - before >= 10  # all in one turn, if nobody looked at the time


def stretches(held: Held) -> float:
    """How often the worker's lock has been let go."""
    lines = held.service.metrics.text().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("oxiseq_worker_lock_seconds_count"))
