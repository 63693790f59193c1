"""The server's routes in this process, spoken to as if they were elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import httpx

from oxiseq.live.subscriptions import HELLO, PAUSE, Subscription
from oxiseq.sparql.messages import Chunks, Request

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
