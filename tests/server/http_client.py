"""Plain HTTP: what is sent is what the test says, nothing more."""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """Without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def ask(address: str, method: str, target: str, headers: Pairs = (), body: bytes | None = None) -> Answer:
    """One request on a connection of its own. `target` is the path and query string as they are sent."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        return Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())
    finally:
        connection.close()
