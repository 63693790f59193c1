"""Where a served store is: in a folder that this process opens, or at a server elsewhere."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx

from oxiseq.api.store import Store
from oxiseq.engine.errors import OxiseqError
from oxiseq.kb_loader.marker import not_opened
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.served.here import Here
from oxiseq.served.knowledge import ServedKnowledge
from oxiseq.served.store import ServedStore
from oxiseq.served.wire import UnreachableError, Wire, wire_to
from oxiseq.sinks import Allowed
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.settings import Limits

_ANY: Final = 1 << 31
"""Bounds that a server has for its clients."""
EVERYTHING: Final = Allowed.of(("*",), ("0.0.0.0/0", "::/0"), Path("/"), Path("/"))
"""Who opens a folder is the operator, and may reach what this process may; files have absolute paths."""


def here(folder: Path, patience: float) -> ServedStore:
    """A folder, made if there is none. Raises OxiseqError where it cannot be used."""
    with ExitStack() as opened:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            store = Store(str(folder))
        except OSError as error:
            raise not_opened(folder, error) from error
        except ValueError as error:  # no path
            raise OxiseqError(f"{str(folder)!r} is no folder: {error}") from error
        opened.callback(store.close)
        settings = LiveSettings(sinks_allowed=EVERYTHING, queries=_ANY, streams=_ANY, sinks=_ANY)
        service = opened.enter_context(LiveService(store, folder, settings))
        routes = LiveRoutes(service, Evaluations(Limits()))
        client = httpx.Client(transport=Here(routes, patience), base_url="http://localhost")
        return ServedStore(str(folder), Wire(client, patience), store, opened.pop_all().close)


def elsewhere(address: str, token: str | None, patience: float) -> ServedStore:
    """A server. Raises UnreachableError, RefusedError, OxiseqError for what is no address."""
    wire = wire_to(address, token, patience)
    try:
        told = wire.send("GET", "streams").json()  # whether it is there, is one of ours, and lets us in
        if not isinstance(told, dict) or "streams" not in told:
            raise UnreachableError(f"{address} answers, but not as `oxiseq serve` does")
    except OxiseqError:
        wire.close()
        raise
    return ServedStore(address, wire, ServedKnowledge(wire), lambda: None)
