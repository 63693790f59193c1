"""Fifty readers, one match per event: who reads is never cut off, however far behind."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import steady_readers
from asked_service import BEGIN, EX, STREAM

from oxiseq.api.store import Store
from oxiseq.engine.events.time import to_text
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.intake import read_batch
from oxiseq.server import ServerSettings, Serving, create_app
from oxiseq.sparql import SparqlEndpoint
from oxiseq.warmup.first_run import prepare

READERS, EVENTS, PUSHED = 50, 20_000, 1000
EACH = f"""PREFIX : <{EX}>
SELECT ?house ?watts WITHIN 1 MINUTE FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :watts ?watts }} }}"""


@contextmanager
def served(folder: Path, settings: LiveSettings, stall: float = 30.0) -> Iterator[tuple[str, LiveService]]:
    """The address of a server with streams."""
    prepare()
    store = Store()
    endpoint = SparqlEndpoint(store)
    chosen = ServerSettings(port=0, threads=4, live=READERS + 4, stall=stall)
    with LiveService(store, folder, settings, "normal") as service:
        serving = Serving(
            create_app(endpoint, chosen, LiveRoutes(service, endpoint.evaluations)), chosen, service.end_subscriptions
        )
        thread = threading.Thread(target=serving.run)
        thread.start()
        try:
            yield serving.address, service
        finally:
            serving.stop()
            thread.join(30)
            assert not thread.is_alive()


def body(first: int, count: int) -> bytes:
    """Events from number `first` on."""
    lines = []
    for number in range(first, first + count):
        at = to_text(BEGIN + number * 1000)
        lines.append(
            f"<{EX}e{number}> <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{at}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
            f'<{EX}h> <{EX}watts> "{number}" <{EX}e{number}> .\n'
        )
    return "".join(lines).encode()


def push_all(service: LiveService, events: int) -> None:
    for first in range(0, events, PUSHED):
        content = body(first, PUSHED)
        service.streams.push(STREAM, lambda content=content: read_batch(content, "nquads"), content)
    service.streams.advance(STREAM, BEGIN + events * 1000)


@pytest.mark.parametrize("events", [5 * PUSHED, pytest.param(EVENTS, marks=(pytest.mark.slow, pytest.mark.full))])
def test_a_reader_that_reads_is_never_cut_off(events: int, tmp_path: Path) -> None:
    settings = LiveSettings(idle=None, recent=PUSHED // 2, subscribers=READERS)  # each push fills the queue
    with served(tmp_path, settings) as (address, service):
        service.queries.register("each", EACH)
        parts = urlsplit(address)
        command = [
            sys.executable,
            steady_readers.__file__,
            str(parts.hostname),
            str(parts.port),
            "/queries/each/matches",
            str(READERS),
            str(events),
            "60",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as readers:
            assert readers.stdout is not None
            assert readers.stdout.readline() == b"listening\n"
            push_all(service, events)
            told = json.loads(readers.stdout.read())
        assert told["other"] == [[]] * READERS
        assert told["seen"] == [events] * READERS
        assert "oxiseq_slow_subscribers_disconnected_total 0.0" in service.metrics.text().decode()


def test_one_that_takes_nothing_for_long_is_cut_off_and_holds_nobody_up(tmp_path: Path) -> None:
    settings = LiveSettings(idle=None, recent=500, subscribers=READERS)
    with served(tmp_path, settings, stall=1.0) as (address, service):
        service.queries.register("each", EACH)
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port)) as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            idle.sendall(b"GET /queries/each/matches HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
            idle.recv(100)
            command = [
                sys.executable,
                steady_readers.__file__,
                str(parts.hostname),
                str(parts.port),
                "/queries/each/matches",
                "3",
                str(EVENTS),
                "60",
            ]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as readers:
                assert readers.stdout is not None
                assert readers.stdout.readline() == b"listening\n"
                push_all(service, EVENTS)
                assert json.loads(readers.stdout.read()) == {"seen": [EVENTS] * 3, "other": [[]] * 3}
            deadline = time.monotonic() + 10
            while service.subscriptions.count:
                assert time.monotonic() < deadline
                time.sleep(0.05)
