"""The server is killed at random moments while its sinks deliver to receivers that sometimes refuse: no match is
missing, and a webhook gets only that one again whose confirmation was not noted; files have each match once.

OXISEQ_KILLS says how often (default: 2; 30 with OXISEQ_PROFILE=nightly).
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hot_service import HOT, STREAM
from live_services import eventually
from profiles import NIGHTLY
from serve_process import ServeProcess, stream_path
from sink_receivers import Webhooks, webhooks

KILLS = int(os.environ.get("OXISEQ_KILLS", 30 if NIGHTLY else 2))
PER_KILL = 60
"""Matches."""
JSON = {"Content-Type": "application/json"}


def push(server: ServeProcess, number: int) -> None:
    name = f"<http://example.org/e{number}>"
    time_, integer = "http://www.w3.org/2001/XMLSchema#dateTime", "http://www.w3.org/2001/XMLSchema#integer"
    body = (
        f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:00.{number:06d}Z"^^<{time_}> .\n'
        f'<http://example.org/m1> <http://example.org/heat> "{number}"^^<{integer}> {name} .\n'
    )
    headers = {"Content-Type": "application/n-quads", "Idempotency-Key": f"e{number}"}
    status, told = server.ask("POST", stream_path(STREAM), body.encode(), headers)
    assert status == 200, told


def sink(server: ServeProcess, name: str) -> dict[str, Any]:
    status, told = server.ask("GET", f"/queries/hot/sinks/{name}")
    assert status == 200, told
    value: dict[str, Any] = json.loads(told)
    return value


def set_up(server: ServeProcess, receiver: Webhooks) -> None:
    status, told = server.ask("PUT", "/queries/hot", HOT.encode(), {"Content-Type": "application/spaseq-query"})
    assert status == 200, told
    for name, settings in {
        "chat": {"kind": "webhook", "url": receiver.url, "template": "{?heat}"},
        "batch": {"kind": "webhook", "url": receiver.url, "template": ["{?heat}"], "batch": 7},
        "lines": {"kind": "file", "path": "a.jsonl", "template": "{?heat}"},
        "parts": {"kind": "file", "path": "parts", "format": "parquet", "batch": 25, "every": "100ms"},
    }.items():
        status, told = server.ask("PUT", f"/queries/hot/sinks/{name}", json.dumps(settings).encode(), JSON)
        assert status == 200, told


def push_all(server: ServeProcess, count: int, pushed: list[int]) -> None:
    for number in range(1, count + 1):
        push(server, number)
        pushed.append(number)


def killed_while_pushing(server: ServeProcess, count: int) -> None:
    pushed: list[int] = []
    pusher = threading.Thread(target=push_all, args=(server, count, pushed), daemon=True)
    pusher.start()
    drawn = random.Random(KILLS)
    for kill in range(KILLS):
        eventually(lambda kill=kill: len(pushed) >= kill * PER_KILL + drawn.randint(0, PER_KILL // 2), 120)
        time.sleep(drawn.random() * 0.1)
        server.kill()
        server.start()
    pusher.join(120)
    assert not pusher.is_alive()


@pytest.mark.slow
def test_no_match_is_missing_and_only_what_was_not_confirmed_comes_again(tmp_path: Path) -> None:
    drawn = random.Random(1)

    def answer(headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str]]:
        return (503, {}) if drawn.random() < 0.01 else (200, {})

    count = PER_KILL * (KILLS + 1)
    options = (
        "--sink-host",
        "localhost",
        "--sink-network",
        "127.0.0.0/8",
        "--sink-network",
        "::1/128",
        "--sink-folder",
        str(tmp_path / "out"),
    )
    server = ServeProcess(tmp_path / "store", *options)
    with webhooks() as receiver:
        receiver.answer = answer
        try:
            server.start()
            set_up(server, receiver)
            killed_while_pushing(server, count)
            for name in ("chat", "batch", "lines", "parts"):
                eventually(lambda name=name: sink(server, name)["position"] == count, 120)
                assert sink(server, name)["lost"] == 0
            assert server.stop() == 0
        finally:
            server.close()
        bodies = [json.loads(body) for _, body in receiver.seen]
    check_posts([body for body in bodies if isinstance(body, int)], count)
    check_posts([heat for body in bodies if isinstance(body, list) for (heat,) in body], count, batch=7)
    assert [json.loads(line) for line in (tmp_path / "out/a.jsonl").read_text().splitlines()] == [*range(1, count + 1)]
    assert pq.read_table(tmp_path / "out/parts")["heat"].to_pylist() == [str(i) for i in range(1, count + 1)]


def check_posts(heats: list[int], count: int, batch: int = 1) -> None:
    """In order, but for what comes again; of that there is no more than was under way."""
    assert list(dict.fromkeys(heats)) == list(range(1, count + 1))
    assert sum(Counter(heats).values()) - count <= KILLS * batch
