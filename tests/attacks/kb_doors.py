"""A server with streams, and HTTP to it: what the tests of bodies share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "server"))
from http_client import Answer, ask
from servers import served

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings
from oxiseq.sparql import SparqlEndpoint

__all__ = ["STREAM", "Answer", "ask", "server"]
STREAM = "/streams/http%3A%2F%2Fe%2Fs"


@contextmanager
def server(folder: Path, store: Store | None = None) -> Iterator[str]:
    """Its address."""
    known = Store() if store is None else store
    endpoint = SparqlEndpoint(known)
    with LiveService(known, folder, LiveSettings(idle=0.05, heartbeat=0.2), "normal") as service:
        routes = LiveRoutes(service, endpoint.evaluations)
        with served(endpoint, replace(ServerSettings(port=0, threads=6), live=4), routes) as address:
            assert ask(address, "PUT", STREAM, [("Content-Type", "application/json")], b"{}").status in (200, 201)
            yield address
