"""What SPARQL sees of a stream is what the log holds, also when the server is killed while events come."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from live_events import BEGIN, EX, POWER, power
from pyoxigraph import RdfFormat, parse
from serve_process import ServeProcess, stream_path

QUERY = f"""SELECT ?e ?h ?w ?t {{ SERVICE <{POWER}> {{
  GRAPH ?e {{ ?h <{EX}watts> ?w }} ?e <http://www.w3.org/ns/prov#generatedAtTime> ?t }} ?h <{EX}owner> ?o }}"""
KB = "INSERT DATA { " + " . ".join(f"<{EX}h{i}> <{EX}owner> <{EX}o>" for i in range(6)) + " }"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServeProcess]:
    process = ServeProcess(tmp_path / "kb")
    process.start()
    yield process
    process.close()


def asked(server: ServeProcess) -> dict[str, tuple[str, str]]:
    """Of each event's graph the power and the time."""
    headers = {"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"}
    status, body = server.ask("POST", "/query", QUERY.encode(), headers)
    assert status == 200, body
    found = json.loads(body)["results"]["bindings"]
    events = {row["e"]["value"]: (row["w"]["value"], row["t"]["value"]) for row in found}
    assert len(events) == len(found)
    return events


def logged(server: ServeProcess) -> tuple[list[str], Counter[tuple[str, str]]]:
    """The names that the kept events have, and of all together the powers and times."""
    status, body = server.ask("GET", stream_path(POWER))
    assert status == 200
    record = json.loads(body)
    status, body = server.ask("GET", stream_path(POWER) + "/events", headers={"Accept": "application/n-quads"})
    assert status == 200
    quads = [(str(quad.graph_name), quad) for quad in parse(body, RdfFormat.N_QUADS)]
    times = {str(quad.subject): quad.object.value for _, quad in quads if quad.predicate.value.endswith("AtTime")}
    events = Counter((quad.object.value, times[g]) for g, quad in quads if quad.predicate.value == f"{EX}watts")
    names = [f"urn:oxiseq:event:{quote(POWER, safe='')}:{i}" for i in range(record["first"], record["next"])]
    return names, events


@pytest.mark.full
def test_kills_while_events_come(server: ServeProcess) -> None:
    keep = b'{"retention": {"count": 400}}'
    assert server.ask("PUT", stream_path(POWER), keep, {"Content-Type": "application/json"})[0] == 200
    assert server.ask("POST", "/update", KB.encode(), {"Content-Type": "application/sparql-update"})[0] == 204
    ended = threading.Event()
    sent: list[int] = []

    def push() -> None:
        number = 0
        while not ended.is_set():
            body = "".join(power(i, BEGIN + i * 1000, i % 6, i) for i in range(number, number + 10))
            headers = {"Content-Type": "application/n-quads", "Idempotency-Key": f"b{number}"}
            sent.append(server.ask("POST", stream_path(POWER), body.encode(), headers)[0])
            number += 10

    pusher = threading.Thread(target=push, daemon=True)
    pusher.start()
    drawn = random.Random(5)
    for _ in range(2):
        time.sleep(drawn.uniform(0.1, 0.6))
        asked(server)
        server.kill()
        server.start()
    until = time.monotonic() + 60
    while len(sent) <= 10 and time.monotonic() < until:
        time.sleep(0.05)
    ended.set()
    pusher.join(60)
    assert len(sent) > 10
    assert set(sent) == {200}
    for _ in range(3):  # retention may come between the questions
        before, seen, (names, events), after = logged(server), asked(server), logged(server), logged(server)
        if before == after:
            break
    assert sorted(seen) == sorted(names)
    assert Counter(seen.values()) == events
    watts = sorted(int(w) for w, _ in seen.values())
    assert watts == list(range(watts[0], 10 * len(sent)))
