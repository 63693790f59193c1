"""Limits that name their option, and waits that end: of clients, bridges and threads."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from live_events import POWER
from live_services import live

from oxiseq.bridges.files import FollowedFile
from oxiseq.bridges.source import BridgeError, BridgeSettings, SourcePosition
from oxiseq.bridges.websocket import WebSocketSource
from oxiseq.cli import main
from oxiseq.engine.background import Background, Backgrounds
from oxiseq.live import LiveSettings
from oxiseq.live.settings import BoundError
from oxiseq.options.addresses import seconds_of
from oxiseq.served.wire import UnreachableError, Wire

QUERY = f"SELECT ?s FROM STREAM S <{POWER}%s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s ?p ?o }} }}"


def test_retry_after_is_a_number_or_a_date() -> None:
    assert seconds_of("7") == 7 and seconds_of("0") == 0
    soon = seconds_of(format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    assert soon is not None and 50 < soon <= 60
    assert seconds_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds_of("9" * 30) == seconds_of("Fri, 31 Dec 9999 23:59:59 GMT") == 86_400
    assert [seconds_of(text) for text in (None, "", "soon", "-1", "1.5", "²")] == [None] * 6


def test_a_server_that_is_away_is_told_once() -> None:
    told: list[object] = []

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    wire = Wire(httpx.Client(transport=httpx.MockTransport(away), base_url="http://localhost:1"), 3.0, told.append)
    with pytest.raises(UnreachableError):
        wire.send("GET", "streams")
    assert len(told) == 1 and str(told[0]).endswith("trying again for 3 s")


@pytest.mark.parametrize("what", ["queries", "streams"])
def test_a_limit_names_its_option(what: str, tmp_path: Path) -> None:
    settings = LiveSettings(idle=None, **{what: 1})  # type: ignore[arg-type]
    with live(tmp_path, settings) as service, pytest.raises(BoundError, match=rf"there are 1 {what}, .*--max-{what}"):
        for name in ("a", "b"):
            service.queries.register(name, QUERY % name, "spaseq", {})
    assert f"--max-{what}" in CliRunner().invoke(main, ["serve", "--help"]).output


def test_threads_that_hang_are_waited_for_together() -> None:
    threads, over = Backgrounds(), threading.Event()
    hanging = [threads.add(Background(f"t{n}", lambda: over.wait(30) and None, again=False)) for n in range(24)]
    for thread in hanging:
        thread.start()
    begun = time.monotonic()
    threads.end(hanging, 0.5)
    assert time.monotonic() - begun < 5
    over.set()


def test_a_pipe_is_no_file_to_follow(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    settings = BridgeSettings(url=str(tmp_path / "pipe"), into="urn:s")
    source = FollowedFile(settings, SourcePosition(tmp_path / "position"))
    with pytest.raises(BridgeError, match="is no plain file: give - for a pipe"):
        source.read(1, 0)


def test_a_web_socket_is_not_redirected() -> None:
    class Redirects(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("location", "ws://elsewhere.example/")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Redirects) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"ws://127.0.0.1:{server.server_port}/"
        with pytest.raises(BridgeError, match="redirects are not followed"):
            WebSocketSource(BridgeSettings(url=address, into="urn:s"))
        server.shutdown()
        thread.join()
