"""`oxiseq serve` as a process that may be attacked: bounded in memory, at a free port, killed at the end."""

from __future__ import annotations

import http.client
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

MAIN = "from oxiseq.cli import main; main(prog_name='oxiseq')"
MEMORY = 16 << 30
"""Bytes of address space: threads have large stacks, which are no memory."""


@dataclass(frozen=True, slots=True)
class Attacked:
    """A running server."""

    address: str
    process: subprocess.Popen[str]

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.address)
        return parts.hostname or "", parts.port or 0

    def ask(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = 10,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case and body, on a connection of its own."""
        connection = http.client.HTTPConnection(*self.place, timeout=seconds)
        try:
            connection.request(method, target, body, headers or {})
            response = connection.getresponse()
            return response.status, {n.lower(): v for n, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def query(self, text: str, seconds: float = 10) -> tuple[int, bytes]:
        """Status and body."""
        status, _, body = self.ask("GET", "/query?query=" + quote(text), {"Accept": "text/csv"}, seconds=seconds)
        return status, body

    def update(self, text: str, headers: dict[str, str] | None = None) -> int:
        """Status."""
        sent = {"Content-Type": "application/sparql-update", **(headers or {})}
        return self.ask("POST", "/update", sent, text.encode(), seconds=60)[0]


@contextmanager
def attacked(*arguments: str, files: int | None = None, **environment: str) -> Iterator[Attacked]:
    """The server; `files`: descriptors that it may have."""

    def bounds() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = [sys.executable, "-c", MAIN, "serve", "--bind", "127.0.0.1:0", *arguments]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=bounds, env={**os.environ, **environment}
    ) as process:
        try:
            assert process.stderr is not None
            found = next((m for line in process.stderr if (m := re.search(r"listening at (\S+)", line))), None)
            assert found is not None, "it has ended"
            yield Attacked(found[1], process)
        finally:
            process.kill()
