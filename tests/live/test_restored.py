"""Backups while events come; the server dies, another one goes on from a backup in another folder."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serve_process import ServeProcess, stream_path

from oxiseq.cli.backing import back_up_into, restored
from oxiseq.live.verifying import verify

E = "http://e/"
S = f"{E}s"
XSD = "http://www.w3.org/2001/XMLSchema#"
TEXT = f"""SELECT ?x ?y WITHIN 1 HOUR SLIDING FROM STREAM S <{S}>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?h <{E}v> ?x }} DEFINE GPM B ON S {{ ?h <{E}v> ?y FILTER(?y > ?x) }} }}"""
SIZE = 20
"""Events of a batch."""


def batch(number: int) -> bytes:
    """Events a second apart, each under a key of its batch."""
    lines = []
    for i in range(number * SIZE, (number + 1) * SIZE):
        at = f'"{time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(i))}Z"^^<{XSD}dateTime>'
        lines.append(f'<{E}{i % 3}> <{E}v> "{i * 7 % 11}"^^<{XSD}integer> <urn:e:{i}> .\n')
        lines.append(f"<urn:e:{i}> <http://www.w3.org/ns/prov#generatedAtTime> {at} .\n")
    return "".join(lines).encode()


def push(server: ServeProcess, number: int) -> dict[str, Any]:
    headers = {"Content-Type": "application/n-quads", "Idempotency-Key": f"b{number}"}
    status, content = server.ask("POST", stream_path(S), batch(number), headers)
    assert status == 200, content
    found: dict[str, Any] = json.loads(content)
    return found


def told(server: ServeProcess, path: str) -> Any:
    status, content = server.ask("GET", path, headers={"Accept": "application/json"})
    assert status == 200, content
    return json.loads(content)


def matches(server: ServeProcess) -> list[str]:
    """Lines of JSON, each with its id."""
    found: list[str] = []
    while True:
        status, content = server.ask(
            "GET", f"/queries/rises/matches?after={len(found)}", headers={"Accept": "application/x-ndjson"}
        )
        assert status == 200, content
        if not content:
            return found
        found += content.decode().splitlines()


def until_worked(server: ServeProcess) -> None:
    end = time.monotonic() + 120
    while (doing := told(server, "/queries/rises"))["lag"] != 0:
        assert time.monotonic() < end, doing
        time.sleep(0.02)
    time.sleep(0.3)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[ServeProcess]]:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(ServeProcess(tmp_path / name / "data", "--stream-idle", "0s"))
    yield made
    for server in made:
        server.close()


@pytest.mark.slow
def test_ids_go_on_and_what_is_missing_is_what_came_after_the_backup(
    servers: list[ServeProcess], tmp_path: Path
) -> None:
    first, second = servers
    first.start()
    status, _ = first.ask("PUT", "/queries/rises", TEXT.encode(), {"Content-Type": "application/spaseq-query"})
    assert status == 200
    stop, pushed = threading.Event(), [0]

    def keep_pushing() -> None:
        while not stop.is_set():
            push(first, pushed[0])
            pushed[0] += 1
            time.sleep(0.05)

    pusher = threading.Thread(target=keep_pushing)
    pusher.start()
    backups = tmp_path / "backups"
    try:
        while not pushed[0] and pusher.is_alive():  # on a busy machine the first push takes its time
            time.sleep(0.01)
        for _ in range(5):
            back_up_into(tmp_path / "first" / "data", backups, full=False)
            time.sleep(0.4)
        known = pushed[0]
        last, why = back_up_into(tmp_path / "first" / "data", backups, full=False)
        assert (last.name, why) == ("0001-00005.oxiseq", "")
        time.sleep(0.4)
    finally:
        stop.set()
        pusher.join()
    until_worked(first)
    before = matches(first)
    first.kill()

    files, unchecked = restored([backups], tmp_path / "second" / "data")
    assert (len(files), unchecked) == (6, [])
    assert verify(tmp_path / "second" / "data").faults == ()
    second.start()
    stream = told(second, stream_path(S))
    place = stream["next"]
    assert stream["restored"]["next"] == place
    assert stream["restored"]["last"] is not None
    assert known * SIZE <= place < pushed[0] * SIZE  # all before the backup began, not all of what came later
    assert place % SIZE == 0
    assert f"of <{S}> push again from offset {place} on" in (tmp_path / "second" / "serve.log").read_text()

    until_worked(second)
    some = matches(second)
    assert some == before[: len(some)]
    assert 0 < len(some) < len(before)
    repeated = push(second, place // SIZE - 1)  # what is in the backup is known again
    assert repeated["duplicates"]
    for number in range(place // SIZE, pushed[0]):
        assert push(second, number)["offsets"]["first"] == number * SIZE
    until_worked(second)
    assert matches(second) == before
