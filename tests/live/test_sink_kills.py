"""The server is killed at random moments while its sinks deliver to receivers that sometimes refuse: no match is
missing, and a webhook gets only that one again whose confirmation was not noted; files have each match once.

OXISEQ_KILLS says how often (default: 2; 30 with OXISEQ_PROFILE=nightly), OXISEQ_KILL_SECONDS for how long at most
(default: without end).
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from answer_followers import Follower
from hot_service import HOT, STREAM
from live_services import eventually
from profiles import NIGHTLY
from serve_process import ServeProcess, stream_path
from sink_receivers import Webhooks, webhooks
from test_bridges import S as BROUGHT
from test_bridges import event

from oxiseq.live.verifying import verify
from oxiseq.rights import Grant, Token, digest_of, line_of

KILLS = int(os.environ.get("OXISEQ_KILLS", 30 if NIGHTLY else 2))
SECONDS = float(os.environ.get("OXISEQ_KILL_SECONDS", "inf"))
PER_KILL = 60
"""Matches."""
K = "http://example.org/known/"
VALUES = f"SELECT ?n {{ <{K}> <{K}n> ?n }}"
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


def killed_while_pushing(server: ServeProcess) -> int:
    """How many were pushed."""
    pushed: list[int] = []
    most = [PER_KILL * (KILLS + 1)]

    def push_all() -> None:
        while len(pushed) < most[0]:
            push(server, len(pushed) + 1)
            pushed.append(len(pushed) + 1)

    pusher = threading.Thread(target=push_all, daemon=True)
    pusher.start()
    drawn, end = random.Random(KILLS), time.monotonic() + SECONDS
    for kill in range(KILLS):
        if time.monotonic() >= end:
            print(f"{kill} of {KILLS} kills in {SECONDS} s")
            most[0] = PER_KILL * (kill + 1)
            break
        eventually(lambda kill=kill: len(pushed) >= kill * PER_KILL + drawn.randint(0, PER_KILL // 2), 120)
        time.sleep(drawn.random() * 0.1)
        server.kill()
        server.start()
    pusher.join(120)
    assert not pusher.is_alive()
    return len(pushed)


@pytest.mark.full
@pytest.mark.slow
def test_no_match_is_missing_and_only_what_was_not_confirmed_comes_again(tmp_path: Path) -> None:
    drawn = random.Random(1)

    def answer(headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str]]:
        return (503, {}) if drawn.random() < 0.01 else (200, {})

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
            count = killed_while_pushing(server)
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


def write_log(server: ServeProcess, log: Path, ended: threading.Event, written: list[int]) -> None:
    """A file that a bridge follows, which is moved away, as logrotate does, whenever the bridge has read it."""
    count, turn = 0, 0
    while not ended.is_set():
        for _ in range(20):
            with log.open("ab") as file:
                file.write(event(count := count + 1) + b"\n")
            time.sleep(0.02)
        turn += 1
        if turn % 3 == 0:
            eventually(lambda: brought(server) >= count, 120)
            log.rename(log.with_name(f"heat.{turn}"))
            log.touch()
    written.append(count)


def brought(server: ServeProcess) -> int:
    """Events that the bridge has brought."""
    status, told = server.ask("GET", stream_path(BROUGHT))
    assert status == 200, told
    following: int = json.loads(told)["next"]
    return following


def change_kb(server: ServeProcess, ended: threading.Event, made: list[int]) -> None:
    """One triple whose value counts; what is tried again does the same again."""
    while not ended.is_set():
        number = len(made)
        text = f"DELETE WHERE {{ <{K}> <{K}n> ?n }} ; INSERT DATA {{ <{K}> <{K}n> {number} }}"
        status, told = server.ask("POST", "/update", text.encode(), {"Content-Type": "application/sparql-update"})
        assert status == 204, told
        made.append(number)


def follow_values(server: ServeProcess, follower: Follower, ended: threading.Event) -> None:
    """A reader of the standing query, who resumes where the connection was lost."""
    while not ended.is_set():
        with suppress(OSError, HTTPException):
            follower.read(server.connect(), "/queries/values/changes", server.headers, 0)
        time.sleep(0.05)


@pytest.mark.slow
def test_with_everything_at_work_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Sinks, a standing query and its reader, changes of the knowledge base, tokens, a followed file that rotates."""
    tokens, log, config = tmp_path / "tokens", tmp_path / "heat.nq", tmp_path / "settings.toml"
    tokens.write_text(
        line_of(Token("all", digest_of("sesame"), tuple(map(Grant, ("read", "push", "register", "update"))))) + "\n"
    )
    log.touch()
    config.write_text(
        f"""[serve]
stream_idle = "10ms"
tokens = "{tokens}"
sink_host = ["localhost"]
sink_network = ["127.0.0.0/8", "::1/128"]
sink_folder = "{tmp_path / "out"}"
[serve.bridges.heat]
url = "{log}"
into = "{BROUGHT}"
start = "all"
"""
    )
    server, ended = ServeProcess(tmp_path / "store", "--config", str(config)), threading.Event()
    server.headers["Authorization"] = "Bearer sesame"
    written: list[int] = []
    changed: list[int] = []
    follower = Follower()
    with webhooks() as receiver:
        try:
            server.start()
            set_up(server, receiver)
            status, told = server.ask(
                "PUT", "/queries/values", VALUES.encode(), {"Content-Type": "application/sparql-query"}
            )
            assert status == 200, told
            threads = [
                threading.Thread(target=target, args=(server, *given), daemon=True)
                for target, given in (
                    (write_log, (log, ended, written)),
                    (change_kb, (ended, changed)),
                    (follow_values, (follower, ended)),
                )
            ]
            for thread in threads:
                thread.start()
            count = killed_while_pushing(server)
            ended.set()
            for thread in threads:
                thread.join(120)
                assert not thread.is_alive()
            for name in ("chat", "batch", "lines", "parts"):
                eventually(lambda name=name: sink(server, name)["position"] == count, 120)
                assert sink(server, name)["lost"] == 0
            eventually(lambda: brought(server) >= written[0], 120)
            time.sleep(1)  # nothing comes twice
            assert brought(server) == written[0]
            check_values(server, follower, changed)
            server.headers.clear()
            assert server.ask("GET", "/queries")[0] == 401
            assert server.stop() == 0
        finally:
            ended.set()
            server.close()
        bodies = [json.loads(body) for _, body in receiver.seen]
    check_posts([body for body in bodies if isinstance(body, int)], count)
    check_posts([heat for body in bodies if isinstance(body, list) for (heat,) in body], count, batch=7)
    assert [json.loads(line) for line in (tmp_path / "out/a.jsonl").read_text().splitlines()] == [*range(1, count + 1)]
    assert pq.read_table(tmp_path / "out/parts")["heat"].to_pylist() == [str(i) for i in range(1, count + 1)]
    verified = verify(tmp_path / "store")
    assert verified.faults == ()


def check_values(server: ServeProcess, follower: Follower, changed: list[int]) -> None:
    """The store has the last change, and the reader of the standing query has been told so, with nothing between."""
    last = json.loads(server.ask("GET", "/queries/values")[1])["matches"]["next"] - 1
    follower.read(server.connect(), "/queries/values/changes", server.headers, last)
    (row,) = json.loads(server.ask("GET", "/queries/values/answer")[1])["results"]["bindings"]
    assert int(row["n"]["value"]) == changed[-1] == len(changed) - 1
    assert follower.rows.total() == 1 and f'"{changed[-1]}"' in next(iter(follower.rows))
    assert follower.told.count("snapshot") == 1 and follower.whole


def check_posts(heats: list[int], count: int, batch: int = 1) -> None:
    """In order, but for what comes again; of that there is no more than was under way."""
    assert list(dict.fromkeys(heats)) == list(range(1, count + 1))
    assert sum(Counter(heats).values()) - count <= KILLS * batch
