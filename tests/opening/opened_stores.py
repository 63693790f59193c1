"""The three stores that `oxiseq.open` answers, and a server on a thread for one of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oxiseq
from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, Serving, Tokens, create_app
from oxiseq.sparql import SparqlEndpoint

KINDS = ("memory", "folder", "server")


@contextmanager
def serving(
    folder: Path, tokens: Tokens | None = None, settings: LiveSettings | None = None, port: int = 0
) -> Iterator[str]:
    """The address of a server over a store in memory, with its journal in `folder`."""
    folder.mkdir(exist_ok=True)
    with LiveService(Store(), folder, settings, "normal") as service:
        endpoint = SparqlEndpoint(service.store)
        chosen = ServerSettings(port=port, threads=8, live=8, tokens=tokens or Tokens())
        app = create_app(endpoint, chosen, LiveRoutes(service, endpoint.evaluations))
        server = Serving(app, chosen, service.end_subscriptions)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server.address
        finally:
            server.stop()
            thread.join(30)
            assert not thread.is_alive()


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Any]:
    """An open store of one of the three kinds."""
    if kind == "memory":
        with oxiseq.open() as store:
            yield store
    elif kind == "folder":
        with oxiseq.open(folder / "store") as store:
            yield store
    else:
        with serving(folder / "journal") as address, oxiseq.open(address) as store:
            yield store
