"""The server is killed at random moments while clients push and read, and change the KB that some queries ask: no match
is missing, none comes twice, and none is of another KB than that of its time.

OXISEQ_KILLS says how often (default: 2; 50 with OXISEQ_PROFILE=nightly).
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pytest
from live_events import (
    AFTER_ALL,
    ALARM,
    ALARMED_TWICE,
    ALARMS,
    BUSY,
    DOORS,
    FELL,
    HIGH,
    HIGHEST,
    LEFT,
    LIMITED,
    MUTED,
    OPENED,
    POWER,
    RISES,
    UNANSWERED,
    Batch,
    batches,
    limits_update,
)
from live_services import live
from profiles import NIGHTLY
from serve_process import LiveReader, ServeProcess, stream_path

import oxiseq
from oxiseq.journal import FILE_NAME, Journal
from oxiseq.live import LiveService
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint

KILLS = int(os.environ.get("OXISEQ_KILLS", 50 if NIGHTLY else 2))
QUERIES = {
    "rises": RISES,
    "opened": OPENED,
    "alarm": ALARM,
    "twice": ALARMED_TWICE,
    "limited": LIMITED,
    "muted": MUTED,
    "unanswered": UNANSWERED,
    "highest": HIGHEST,
    "high": HIGH,
    "busy": BUSY,
    "left": LEFT,
    "fell": FELL.replace("?after < ?before", "?after < ?before && ?before > 0"),
    "fell_far": FELL.replace("?after < ?before", "?after < ?before && ?before > 600"),
}
"""`limited` and `muted` ask the KB, which changes after every third batch of POWER. `fell` and `fell_far` share one."""
LANGUAGES = {"high": "spectra", "busy": "rspql", "left": "rsepql", "fell": "epsparql", "fell_far": "epsparql"}
"""The others are of SPAseq."""
NQUADS = {"Content-Type": "application/n-quads"}
BATCHES_PER_KILL = 25


class Asked(Protocol):
    """What answers requests."""

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, bytes]: ...


def register(server: Asked) -> None:
    for name, text in QUERIES.items():
        headers = {"Content-Type": f"application/{LANGUAGES.get(name, 'spaseq')}-query"}
        status, body = server.ask("PUT", f"/queries/{name}", text.encode(), headers)
        assert status == 200, body


class Pusher(threading.Thread):
    """Sends a stream's batches, each until it is acknowledged; some twice on purpose. Between those of POWER the KB
    changes, each time until that is acknowledged."""

    def __init__(self, server: Asked, sent: list[Batch], acknowledged: list[str]) -> None:
        super().__init__(daemon=True)
        self.faults: list[str] = []
        self._server, self._sent, self._acknowledged = server, sent, acknowledged
        self._drawn = random.Random(len(sent))

    def run(self) -> None:
        for number, batch in enumerate(self._sent):
            if batch.stream == POWER and number % 3 == 0:
                self._change(number)
            self._push(batch)
            if self._drawn.random() < 0.1:
                self._push(batch)
            self._acknowledged.append(batch.id)
            time.sleep(self._drawn.random() * 0.02)

    def _change(self, number: int) -> None:
        headers = {"Content-Type": "application/sparql-update"}
        status, body = self._server.ask("POST", "/update", limits_update(number).encode(), headers)
        if status != 204:
            self.faults.append(f"update {number}: {status} {body!r}")

    def _push(self, batch: Batch) -> None:
        headers = {**NQUADS, "Idempotency-Key": batch.id}
        status, body = self._server.ask("POST", stream_path(batch.stream), batch.body, headers)
        if status != 200:
            self.faults.append(f"{batch.id}: {status} {body!r}")


def all_matches(server: Asked, query: str) -> dict[int, dict[str, Any]]:
    """Id → bindings, by pages."""
    found: dict[int, dict[str, Any]] = {}
    while True:
        status, body = server.ask("GET", f"/queries/{query}/matches?after={len(found)}&limit=500")
        assert status == 200, body
        rows = json.loads(body)["results"]["bindings"]
        if not rows:
            return found
        found |= {len(found) + 1 + i: row for i, row in enumerate(rows)}


def run_all(server: ServeProcess, sent: list[Batch], kills: int) -> dict[str, list[LiveReader]]:
    """Push everything while the server is killed; the readers, once they have seen everything."""
    done = threading.Event()
    readers = {name: [LiveReader(server, name, done.is_set) for _ in range(2)] for name in QUERIES}
    for reader in chain(*readers.values()):
        reader.start()
    acknowledged: list[str] = []
    pushers = [Pusher(server, [b for b in sent if b.stream == iri], acknowledged) for iri in (POWER, DOORS)]
    for pusher in pushers:
        pusher.start()
    drawn = random.Random(kills)
    for kill in range(kills):
        threshold = len(sent) * kill // (kills + 1) + drawn.randint(0, 15)
        while len(acknowledged) < threshold and any(p.is_alive() for p in pushers):
            time.sleep(0.002)
        time.sleep(drawn.random() * 0.15)
        server.kill()
        server.start()
    for pusher in pushers:
        pusher.join(600)
        assert not pusher.is_alive()
        assert not pusher.faults
    finish(server)
    wait_for_readers(server, readers)
    done.set()
    for reader in chain(*readers.values()):
        reader.join(30)
        assert not reader.is_alive()
    return readers


def finish(server: Asked) -> None:
    """No event will come any more."""
    for iri in (POWER, DOORS, ALARMS):
        settle(server)
        status, body = server.ask("POST", f"{stream_path(iri)}?watermark={quote(AFTER_ALL)}")
        assert status == 200, body
    settle(server)


def settle(server: Asked) -> None:
    """Wait until nothing waits to be worked through."""
    deadline, before = time.monotonic() + 60, ""
    while time.monotonic() < deadline:
        now = "".join(
            line
            for line in server.ask("GET", "/metrics")[1].decode().splitlines()
            if line.startswith(("oxiseq_log_position", "oxiseq_lag_events", "oxiseq_matches_total"))
        )
        if now == before and server.ask("GET", "/ready")[0] == 200:
            return
        before = now
        time.sleep(0.5)
    raise AssertionError("the server does not come to rest")


def wait_for_readers(server: ServeProcess, readers: dict[str, list[LiveReader]]) -> None:
    """Until all have read what is stored."""
    deadline = time.monotonic() + 60
    for name, each in readers.items():
        last = json.loads(server.ask("GET", f"/queries/{name}")[1])["matches"]["next"] - 1
        while any(len(reader.seen) < last for reader in each):
            assert time.monotonic() < deadline, (name, last, [len(reader.seen) for reader in each])
            time.sleep(0.02)


@pytest.fixture(scope="module")
def sent() -> list[Batch]:
    return batches((KILLS + 1) * BATCHES_PER_KILL, seed=7)


class Here:
    """The same answers without a process and its HTTP."""

    def __init__(self, service: LiveService) -> None:
        endpoint = SparqlEndpoint(service.store)
        self._client = create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, bytes]:
        answer = self._client.open(target, method=method, data=body, headers=dict(headers))
        return answer.status_code, answer.data


def undisturbed(folder: Path, sent: list[Batch]) -> dict[str, dict[int, dict[str, Any]]]:
    """What the matches are where nobody is killed."""
    with live(folder) as service:
        here = Here(service)
        register(here)
        for iri in (POWER, DOORS):
            pusher = Pusher(here, [b for b in sent if b.stream == iri], [])
            pusher.run()
            assert not pusher.faults
        finish(here)
        return {name: all_matches(here, name) for name in QUERIES}


def outcome(folder: Path, sent: list[Batch]) -> dict[str, dict[int, dict[str, Any]]]:
    """What the matches are in the end; checks what the readers have seen against them."""
    location = folder / "data"
    location.mkdir()
    server = ServeProcess(location, "--stream-idle", "0s", "--durability", "normal")
    try:
        server.start()
        register(server)
        readers = run_all(server, sent, KILLS)
        found = {name: all_matches(server, name) for name in QUERIES}
        assert server.stop() == 0
    finally:
        server.close()
    for name, each in readers.items():
        for reader in each:
            assert not reader.faults
            assert {number: match["bindings"] for number, match in reader.seen.items()} == found[name]
            assert reader.connections
    with Journal(location / FILE_NAME, read_only=True) as journal:
        assert journal.verify() == []
    return found


@pytest.mark.slow
def test_kills_change_nothing(tmp_path: Path, sent: list[Batch]) -> None:
    expected = undisturbed(tmp_path, sent)
    killed = outcome(tmp_path, sent)
    for name in QUERIES:
        assert len(expected[name]) > 10
        assert killed[name] == expected[name]
    check_against_a_plain_run(tmp_path, sent, killed)


def check_against_a_plain_run(folder: Path, sent: list[Batch], found: dict[str, dict[int, dict[str, Any]]]) -> None:
    """The same matches as those of the same events from files."""
    files = {}
    for iri in (POWER, DOORS):
        files[iri] = folder / f"{len(files)}.nq"
        files[iri].write_bytes(b"".join(batch.body for batch in sent if batch.stream == iri))
    both = (POWER, DOORS)
    reading = {"rises": (POWER,), "high": (POWER,)}
    for name in ("rises", "opened", "high", "busy", "left", "fell", "fell_far"):
        reads = reading.get(name, both)
        language = LANGUAGES.get(name, "spaseq")
        matches: Any = oxiseq.run(QUERIES[name], streams={iri: files[iri] for iri in reads}, language=language)
        rows = json.loads(matches.write(format="json"))["results"]["bindings"]
        assert counted(rows) == counted(list(found[name].values()))


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
