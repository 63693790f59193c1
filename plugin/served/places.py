"""Where a served store is: in a folder that this process opens, or at a server elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from oxiseq.api.store import Store
from oxiseq.engine.errors import OxiseqError
from oxiseq.kb_loader.marker import not_opened
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.subscriptions import HELLO, PAUSE, Subscription
from oxiseq.served.knowledge import ServedKnowledge
from oxiseq.served.store import ServedStore
from oxiseq.served.wire import UnreachableError, Wire, wire_to
from oxiseq.sinks import Allowed
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Chunks, Request
from oxiseq.sparql.settings import Limits

if TYPE_CHECKING:
    from oxiseq.live.api import LiveRoutes


_EVENTS: Final = "text/event-stream"


class Here(httpx.BaseTransport):
    """Requests go to `routes` on the thread that sends them. Who reads counts, matches or changes of queries sees all
    that was pushed before, as in a store in memory: that is waited for, `patience` seconds at most."""

    def __init__(self, routes: LiveRoutes, patience: float) -> None:
        self._routes, self._patience = routes, patience

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The route's response; one that is made while it is sent is made while it is read."""
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        headers = tuple((name.lower(), value) for name, value in request.headers.items())
        if request.method == "GET" and path.startswith("/queries") and _EVENTS not in request.headers.get("accept", ""):
            self._routes.service.catch_up(self._patience)
        answered = self._routes.answer(Request(request.method, path, query, headers, request.read()))
        body: httpx.ByteStream | _Live | _Pieces
        if isinstance(answered.body, bytes):
            body = httpx.ByteStream(answered.body)
        elif isinstance(answered.body, Subscription):
            body = _Live(answered.body, request.extensions.get("timeout", {}).get("read"))
        else:
            body = _Pieces(answered.body)
        return httpx.Response(answered.status, headers=list(answered.headers), stream=body)


class _Pieces(httpx.SyncByteStream):
    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks

    def close(self) -> None:
        self._chunks.close()


class _Live(httpx.SyncByteStream):
    """A subscription that is silent for no longer than the reader waits."""

    def __init__(self, subscription: Subscription, patience: float | None) -> None:
        self._subscription = subscription
        self._patience = patience

    def __iter__(self) -> Iterator[bytes]:
        yield HELLO
        while not self._subscription.ended:
            data = self._subscription.step(12.0 if self._patience is None else self._patience)
            if data:
                yield data
            elif not self._subscription.live:
                time.sleep(PAUSE)
            elif self._patience is not None and not self._subscription.ended:
                raise httpx.ReadTimeout("nothing has come")

    def close(self) -> None:
        self._subscription.close()


_ANY: Final = 1 << 31
"""Bounds that a server has for its clients."""
EVERYTHING: Final = Allowed.of(("*",), ("0.0.0.0/0", "::/0"), Path("/"), Path("/"))
"""Who opens a folder is the operator, and may reach what this process may; files have absolute paths."""


def here(folder: Path, patience: float) -> Store:
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
        return Store.over(ServedStore(str(folder), Wire(client, patience), store, opened.pop_all().close))


def elsewhere(address: str, token: str | None, patience: float) -> Store:
    """A server. Raises UnreachableError, RefusedError, OxiseqError for what is no address."""
    wire = wire_to(address, token, patience)
    try:
        told = wire.call("listStreams").json()  # whether it is there, is one of ours, and lets us in
        if not isinstance(told, dict) or "streams" not in told:
            raise UnreachableError(f"{address} answers, but not as `oxiseq serve` does")
    except OxiseqError:
        wire.close()
        raise
    return Store.over(ServedStore(address, wire, ServedKnowledge(wire), lambda: None))
