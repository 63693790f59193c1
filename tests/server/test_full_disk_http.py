"""No room for the journal while the server runs: pushes are told so, the rest goes on, nothing accepted is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from http_client import ask
from servers import served

from oxiseq.api.store import Store
from oxiseq.journal import Journal
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.sparql import SparqlEndpoint
from oxiseq.warmup.first_run import prepare

EX = "http://example.org/"
POWER = f"/streams/{quote(f'{EX}power', safe='')}"
HIGH = f"""PREFIX : <{EX}>
SELECT ?house ?watts WITHIN 1 MINUTE
FROM STREAM S <{EX}power>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :watts ?watts }} }}"""
ROOM = 1 << 20
SPASEQ, TURTLE = ("Content-Type", "application/spaseq-query"), ("Content-Type", "text/turtle")


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, LiveService]]:
    """A server whose journal may have a megabyte: SQLite says that the disk is full, as it does of a real one."""
    prepare()  # a request is not to wait for kernels that are compiled
    monkeypatch.setattr("oxiseq.live.service.Journal", partial(Journal, max_size=ROOM))
    store = Store()
    endpoint = SparqlEndpoint(store)
    with LiveService(store, tmp_path, LiveSettings(idle=None, upkeep=0.1, checkpoint=0.2), "normal") as service:
        routes = LiveRoutes(service, endpoint.evaluations)
        endpoint.offer(routes.services)
        with served(endpoint, live=routes) as address:
            yield address, service


def push(address: str, number: int) -> int:
    """An event with some text, under an id of its own."""
    text = random.Random(number).randbytes(20_000).hex()  # it cannot be compressed
    body = f'<{EX}h{number}> <{EX}watts> {number} ; <{EX}note> "{text}" .'.encode()
    headers = [TURTLE, ("Idempotency-Key", f"k{number}")]
    answer = ask(address, "POST", f"{POWER}?time={1_000_000 * (number + 1)}", headers, body)
    if answer.status != 200:
        told = json.loads(answer.body)
        assert (answer.status, told["title"]) == (507, "no room")
        assert answer.media_type == "application/problem+json"
        assert "no room left" in told["detail"]
    return answer.status


def test_a_full_disk(full: tuple[str, LiveService]) -> None:
    address, service = full
    assert ask(address, "PUT", "/queries/high", [SPASEQ], HIGH.encode()).status == 200
    accepted = 0
    while push(address, accepted) == 200:
        accepted += 1
        assert accepted < 1000
    assert accepted > 5
    for _ in range(3):
        assert push(address, accepted) == 507

    # SPARQL, updates of the knowledge base that no query asks, and all that reads go on
    assert ask(address, "PUT", "/store?default", [TURTLE], b"<http://e/a> <http://e/p> 1 .").status in (201, 204)
    assert b"true" in ask(address, "GET", "/query?query=ASK%20%7B%3Fs%20%3Fp%20%3Fo%7D").body
    counted = f"SELECT (COUNT(*) AS ?n) {{ SERVICE <{EX}power> {{ GRAPH ?e {{ ?h <{EX}watts> ?w }} }} }}"
    answer = ask(address, "GET", f"/query?query={quote(counted)}", [("Accept", "text/csv")])
    assert answer.body == f"n\r\n{accepted}\r\n".encode()
    for path in ("/streams", "/queries", "/queries/high", "/metrics", "/health", f"{POWER}/events?limit=1"):
        assert ask(address, "GET", path).status == 200
    assert ask(address, "GET", "/queries/high/matches?limit=1", [("Accept", "text/csv")]).status == 200

    # room is back: what is old may be deleted
    keep = json.dumps({"retention": {"count": 3}}).encode()
    assert ask(address, "PATCH", POWER, [("Content-Type", "application/json")], keep).status == 200
    for number in range(accepted, accepted + 20):
        while push(address, number) != 200:
            pass
    assert ask(address, "POST", f"{POWER}?watermark={10**15}").status == 200
    while json.loads(ask(address, "GET", "/queries/high").body)["matches"]["next"] <= accepted + 20:
        assert service.worker.error is None
    answer = ask(address, "GET", "/queries/high/matches?limit=1000", [("Accept", "text/csv")])
    houses = [line.split(b",")[0] for line in answer.body.splitlines()[1:]]
    assert houses == [f"{EX}h{number}".encode() for number in range(accepted + 20)]
