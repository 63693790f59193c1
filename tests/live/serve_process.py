"""`oxiseq serve` as a process that can be killed and started again, and clients that put up with that."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

PATIENCE = 120.0
"""Seconds that a start, or a request that is tried again, may take."""


class ServeProcess:
    """A server over a folder. `address` changes with each start; requests wait for one."""

    def __init__(self, location: Path, *options: str) -> None:
        self._command = [
            sys.executable,
            "-c",
            "from oxiseq.cli import main; main()",
            "serve",
            "--location",
            str(location),
            "--bind",
            "127.0.0.1:0",
            *options,
        ]
        self.headers: dict[str, str] = {}
        """Of each request."""
        self._log = location.parent / "serve.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._address: str | None = None
        self._up = threading.Condition()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self._log.open("ab") as log:
            log.write(b"--- start\n")
            log.flush()
            begin = log.tell()
            process = self._process = subprocess.Popen(self._command, stderr=log, env={**os.environ})
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = self._log.read_bytes()[begin:].decode()
            found = [line.split()[-1] for line in text.splitlines() if line.startswith("listening at ")]
            if found:
                with self._up:
                    self._address = found[0]
                    self._up.notify_all()
                return
            assert process.poll() is None, text
            time.sleep(0.02)
        raise AssertionError("the server does not start")

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        with self._up:
            self._address = None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def close(self) -> None:
        """Nothing is left running."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def address(self) -> str:
        """Waits until it listens."""
        with self._up:
            assert self._up.wait_for(lambda: self._address is not None, PATIENCE)
            assert self._address is not None
            return self._address

    def connect(self, timeout: float = 20.0) -> http.client.HTTPConnection:
        """A connection of one's own."""
        parts = urlsplit(self.address)
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, bytes]:
        """One request, tried again for as long as nobody answers it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = self.connect()
            try:
                connection.request(method, target, body, {**self.headers, **headers})
                response = connection.getresponse()
                content = response.read()
                if response.status not in (429, 503):
                    return response.status, content
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < deadline
            finally:
                connection.close()
            time.sleep(0.02)


def stream_path(iri: str) -> str:
    """The path of a stream."""
    return f"/streams/{quote(iri, safe='')}"


class LiveReader(threading.Thread):
    """Reads the matches of a query live, and comes back with the last id whenever the connection is lost.

    `seen`: id → what was told; telling an id twice differently, or in another order, is noted in `faults`.
    """

    def __init__(self, server: ServeProcess, query: str, ended: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.seen: dict[int, dict[str, Any]] = {}
        self.faults: list[str] = []
        self.connections = 0
        self._server, self._query, self._ended = server, query, ended

    def run(self) -> None:
        """Until `ended` says so."""
        while not self._ended():
            try:
                self._listen()
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.02)

    def _listen(self) -> None:
        last = max(self.seen, default=0)
        connection = self._server.connect(timeout=1.0)
        try:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
            connection.request("GET", f"/queries/{self._query}/matches", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                time.sleep(0.05)
                return
            self.connections += 1
            for kind, data in sent_events(response):
                if kind == "match":
                    self._take(data)
        finally:
            connection.close()

    def _take(self, match: dict[str, Any]) -> None:
        number = match["id"]
        if number in self.seen:
            self.faults.append(f"match {number} is told twice")
        if number != max(self.seen, default=0) + 1:
            self.faults.append(f"match {number} follows {max(self.seen, default=0)}")
        self.seen[number] = match


def sent_events(response: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, data) of server-sent events."""
    kind, data = "", ""
    while line := response.readline():
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            kind = text.removeprefix("event: ")
        elif text.startswith("data: "):
            data = text.removeprefix("data: ")
        elif not text and data:
            yield kind, json.loads(data)
            kind, data = "", ""
