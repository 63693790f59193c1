"""Queries over the store: ten thousand of them, one of a cross product, an update of 100,000 quads, a reader that reads
nothing, two registrations of one name at once, a killed server. (So many with OXISEQ_PROFILE=nightly; some fewer else.)
"""

from __future__ import annotations

import json
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyoxigraph import RdfFormat

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, Serving, create_app
from oxiseq.sparql import SparqlEndpoint

sys.path.append(str(Path(__file__).parents[1] / "live"))

from answer_followers import Follower, asked
from live_services import eventually
from profiles import NIGHTLY
from serve_process import ServeProcess

P = "PREFIX : <http://e/> "
VALUES = P + "SELECT ?s ?o WHERE { ?s :p ?o }"
CROSS = P + "SELECT ?a WHERE { ?a :p ?b . ?c :p ?d }"
SPARQL = {"Content-Type": "application/sparql-query"}
UPDATE = {"Content-Type": "application/sparql-update"}


REGISTRATIONS, QUADS, KILLS = (10_000, 100_000, 5) if NIGHTLY else (500, 10_000, 1)
DEAF = b"GET /queries/values/changes HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"


class Here:
    """A service and its routes, without sockets."""

    def __init__(self, service: LiveService, store: Store) -> None:
        self.service, self.store = service, store
        endpoint = SparqlEndpoint(store)
        self._client = create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()

    def put(self, name: str, text: str) -> tuple[int, bytes]:
        answer = self._client.put(f"/queries/{name}", data=text.encode(), headers=SPARQL)
        return answer.status_code, answer.data

    def heard(self, name: str, follower: Follower | None = None) -> Follower:
        last = self.service.standing.answer(name).number
        return (follower or Follower()).listen(self.service, name, last)


@contextmanager
def here(folder: Path, settings: LiveSettings) -> Iterator[Here]:
    store = Store()
    with LiveService(store, folder, settings, "normal") as service:
        yield Here(service, store)


def test_ten_thousand_registrations(tmp_path: Path) -> None:
    """As many stand as may; each further one is refused, and quickly; those that stand go on."""
    with here(tmp_path, LiveSettings(idle=None, heartbeat=0.05, queries=50)) as asked_here:
        begun = time.monotonic()
        told = [asked_here.put(f"q{number}", VALUES)[0] for number in range(REGISTRATIONS)]
        assert (told.count(200), told.count(403)) == (50, REGISTRATIONS - 50)
        assert time.monotonic() - begun < 120
        asked_here.store.update(P + "INSERT DATA { :x :p 1 }")
        assert all(asked_here.heard(f"q{number}").rows.total() == 1 for number in range(50))


def test_texts_that_nobody_reads_any_more_make_room(tmp_path: Path) -> None:
    with here(tmp_path, LiveSettings(idle=None, queries=8, subscribers=4)) as asked_here:
        for number in range(100):
            asked_here.service.standing.unnamed(f"{VALUES} LIMIT {number + 1}")
        assert len(asked_here.service.queries.all()) <= 8
        assert asked_here.put("mine", VALUES)[0] == 200


def test_a_cross_product_harms_nobody(tmp_path: Path) -> None:
    with here(tmp_path, LiveSettings(idle=None, heartbeat=0.05, answer=10_000)) as asked_here:
        assert asked_here.put("cross", CROSS)[0] == 200
        assert asked_here.put("values", VALUES)[0] == 200
        reader = asked_here.heard("values")
        some = " ".join(f":s{number} :p {number} ." for number in range(1_000))
        asked_here.store.update(P + f"INSERT DATA {{ {some} }}")
        assert asked_here.heard("values", reader).rows == asked(asked_here.store, VALUES)
        deadline = time.monotonic() + 10
        while asked_here.service.queries.get("cross").record.state != "failed":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "at most 10000" in asked_here.service.queries.get("cross").error
        status, body = asked_here.put("again", CROSS)
        assert (status, b"at most 10000" in body) == (400, True)
        asked_here.store.update(P + "INSERT DATA { :x :p 1 }")
        assert asked_here.heard("values", reader).rows == asked(asked_here.store, VALUES)


def test_an_update_of_a_hundred_thousand_quads(tmp_path: Path) -> None:
    """It arrives in parts that are whole together; a reader may go on from any of them."""
    with here(tmp_path, LiveSettings(idle=None, heartbeat=0.05)) as asked_here:
        assert asked_here.put("values", VALUES)[0] == 200
        reader = asked_here.heard("values")
        begin = reader.last or 0
        lines = "".join(f"<http://e/s{number}> <http://e/p> {number} .\n" for number in range(QUADS))
        asked_here.store.load(lines.encode(), format=RdfFormat.TURTLE)
        assert asked_here.heard("values", reader).rows.total() == QUADS
        assert reader.told.count("change") == QUADS // 1000
        late = Follower()
        late.last, late.rows = begin + QUADS - 2000, reader.rows
        parts = asked_here.service.journal.matches.read("values", late.last)
        assert [part.heading.more for part in parts] == [True, False]


def test_two_registrations_of_one_name_at_once(tmp_path: Path) -> None:
    texts = [VALUES, CROSS]
    with here(tmp_path, LiveSettings(idle=None, heartbeat=0.05)) as asked_here:
        for _ in range(5):
            gate = threading.Barrier(4)

            told: list[int] = []

            def register(number: int, gate: threading.Barrier = gate, told: list[int] = told) -> None:
                gate.wait()
                told.append(asked_here.put("one", texts[number % 2])[0])

            threads = [threading.Thread(target=register, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert told == [200] * 4
            text = asked_here.service.queries.get("one").record.text
            asked_here.store.update(P + f"INSERT DATA {{ :x :p {random.random()} }}")
            assert asked_here.heard("one").rows == asked(asked_here.store, text)
            eventually(lambda: len(asked_here.store.standing) == 1)  # those that others replaced are closed by and by


def test_a_reader_that_reads_nothing(tmp_path: Path) -> None:
    """It is cut off; others, and updates, do not wait for it."""
    store = Store()
    endpoint = SparqlEndpoint(store)
    settings = ServerSettings(port=0, threads=2, live=4, stall=0.5)
    with LiveService(store, tmp_path, LiveSettings(idle=None, heartbeat=0.05), "normal") as service:
        asked_here = Here(service, store)
        assert asked_here.put("values", VALUES)[0] == 200
        serving = Serving(
            create_app(endpoint, settings, LiveRoutes(service, endpoint.evaluations)),
            settings,
            service.end_subscriptions,
        )
        thread = threading.Thread(target=serving.run)
        thread.start()
        try:
            parts = urlsplit(serving.address)
            with socket.socket() as deaf:
                deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                deaf.connect((parts.hostname, parts.port))
                deaf.sendall(DEAF)
                follower, deadline = asked_here.heard("values"), time.monotonic() + 60
                while service.subscriptions.count or not store:
                    some = " ".join(f":s{random.random()} :p '{'x' * 200}' ." for _ in range(2_000))
                    store.update(P + f"DELETE WHERE {{ ?s :p ?o }} ; INSERT DATA {{ {some} }}".replace("0.", "r"))
                    assert asked_here.heard("values", follower).rows == asked(store, VALUES)
                    assert time.monotonic() < deadline
        finally:
            serving.stop()
            thread.join(30)


@pytest.mark.full
@pytest.mark.slow
def test_a_killed_server_tells_a_history_that_adds_up(tmp_path: Path) -> None:
    """SIGKILL between updates, before or after a change is stored and told: who resumes has the answer in the end."""
    server = ServeProcess(tmp_path / "store")
    server.start()
    try:
        status, _ = server.ask("PUT", "/queries/values", VALUES.encode(), SPARQL)
        assert status == 200
        follower, drawn = Follower(), random.Random(5)
        for kill in range(KILLS):
            for number in range(15):
                gone, new = drawn.randrange(5), drawn.randrange(5)
                text = f"DELETE WHERE {{ :s{gone} :p ?o }} ; INSERT DATA {{ :s{new} :p {number} }}"
                assert server.ask("POST", "/update", (P + text).encode(), UPDATE)[0] == 204
                if number % 5 == kill:
                    listen(server, follower, 0)
            server.kill()
            server.start()
        status, body = server.ask("GET", "/queries/values/answer")
        now = json.loads(body)["results"]["bindings"]
        last = json.loads(server.ask("GET", "/queries/values")[1])["matches"]["next"] - 1
        listen(server, follower, last)
        assert follower.rows.total() == len(now)
        assert {row.rsplit("s=")[-1] for row in follower.rows} == {f"<{row['s']['value']}>" for row in now}
        assert follower.told.count("snapshot") == 1
    finally:
        server.close()


def listen(server: ServeProcess, follower: Follower, until: int) -> None:
    """A little, at least up to an id."""
    follower.read(server.connect(), "/queries/values/changes", {}, until)
