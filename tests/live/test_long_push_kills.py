"""A client that numbers what it pushes, and a server that is killed in the middle of it: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("websockets", reason="websockets is not installed: pip install 'oxiseq[server]'")

from serve_process import ServeProcess, stream_path
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

import oxiseq

EX = "http://example.org/"
STREAM = f"{EX}s"
KILLS = int(os.environ.get("OXISEQ_KILLS", "4"))
ITEMS = 1500 * (KILLS + 1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def item(number: int) -> str:
    return json.dumps({"seq": number, "time": number, "graph": f"<{EX}a> <{EX}n> {number} ."})


class Pusher(threading.Thread):
    """Sends all items, from the one behind the last that is stored, until the last one is acknowledged."""

    def __init__(self, server: ServeProcess) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.acknowledged = 0
        self.faults: list[str] = []
        self.hellos: list[int] = []

    def run(self) -> None:
        while self.acknowledged < ITEMS and not self.faults:
            try:
                self._push()
            except (OSError, WebSocketException):
                time.sleep(0.05)

    def _push(self) -> None:
        parts = urlsplit(self.server.address)
        with connect(
            f"ws://{parts.netloc}{stream_path(STREAM)}/events?session=s", compression=None, open_timeout=20
        ) as made:
            last = json.loads(made.recv(20))["last"]
            self.hellos.append(last)
            if last < self.acknowledged:
                self.faults.append(f"{self.acknowledged} was acknowledged, but only {last} is stored")
            number = max(1, last - 20)  # some of them again
            while self.acknowledged < ITEMS:
                if number <= ITEMS:
                    upto = min(ITEMS + 1, number + random.randint(1, 60))
                    made.send("\n".join(map(item, range(number, upto))))
                    number = upto
                try:
                    told = json.loads(made.recv(0 if number <= ITEMS else 20))
                except TimeoutError:
                    continue
                if "seq" in told:
                    self.acknowledged = told["seq"]


@pytest.mark.full
@pytest.mark.slow
def test_kills_in_the_middle_of_a_long_push_lose_and_double_nothing(tmp_path: Path) -> None:
    server = ServeProcess(tmp_path / "data")
    server.start()
    try:
        assert server.ask("PUT", stream_path(STREAM))[0] == 200
        pusher = Pusher(server)
        pusher.start()
        for kill in range(KILLS):
            deadline = time.monotonic() + 60
            goal = (kill + 1) * ITEMS // (KILLS + 1)
            while pusher.acknowledged < goal and time.monotonic() < deadline:
                time.sleep(0.001)
            server.kill()
            server.start()
        pusher.join(120)
        assert not pusher.is_alive()
        assert not pusher.faults
        assert len(pusher.hellos) > KILLS
        found: list[int] = []
        while len(found) < ITEMS:
            status, body = server.ask(
                "GET",
                f"{stream_path(STREAM)}/events?offset={len(found)}&limit=10000",
                headers={"Accept": "application/n-quads"},
            )
            assert status == 200
            more = [int(line.split('"')[1]) for line in body.decode().splitlines() if f"<{EX}n>" in line]
            assert more
            found += more
        assert found == list(range(1, ITEMS + 1))
        status, body = server.ask("GET", stream_path(STREAM))
        assert json.loads(body)["next"] == ITEMS
    finally:
        server.close()


def test_a_program_that_extends_goes_on_over_kills_of_the_server(tmp_path: Path) -> None:
    server, port = ServeProcess(tmp_path / "data"), free_port()
    server._command += ["--bind", f"127.0.0.1:{port}"]
    server.start()
    count, read = 12_000, 0

    def events() -> Iterator[tuple[int, str]]:
        nonlocal read
        for read in range(1, count + 1):
            yield read, f'<{EX}a> <{EX}n> "{read}" .'

    try:
        with oxiseq.open(server.address, patience="120s") as store:
            stream = store.stream(STREAM)
            found: list[int] = []
            thread = threading.Thread(target=lambda: found.append(stream.extend(events(), session="plant1")))
            thread.start()
            for kill in range(min(KILLS, 10)):
                deadline = time.monotonic() + 60
                while thread.is_alive() and read < kill * count // KILLS and time.monotonic() < deadline:
                    time.sleep(0.001)
                server.kill()
                server.start()
            thread.join(240)
            assert found == [count]
            assert stream.extend(events(), session="plant1") == count == stream.events
    finally:
        server.close()
