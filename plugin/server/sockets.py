"""WebSockets: long pushes as messages (long_pushes.py), and live readers' events as messages.

scope ─▶ admitted, or refused as a plain HTTP answer ─▶ accepted ─▶ EventSocket: readers.py, whose pieces of
                                                                    Server-Sent Events become messages here
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

from oxiseq.live.api.routes import long_pushed
from oxiseq.live.subscriptions import Subscription
from oxiseq.server.access import check_reader
from oxiseq.server.app import Doors
from oxiseq.server.bodies import GoneError, Receive
from oxiseq.server.connections import Connection
from oxiseq.server.live import LiveApplication, same_rights
from oxiseq.server.long_pushes import LongPushes
from oxiseq.server.readers import Readers, Send
from oxiseq.server.scopes import Scope, client_in, headers_in
from oxiseq.server.talks import accept, close, content_of, refuse
from oxiseq.sparql import Problem, Request, Response
from oxiseq.sparql.endpoint import problem_response

_EVENTS: Final = ("accept", "text/event-stream")


class Sockets:
    """All of them. `ask` has a request answered by the routes of live readers."""

    def __init__(
        self,
        doors: Doors,
        pushes: LongPushes | None,
        readers: Readers,
        ask: Callable[[LiveApplication, Request], Awaitable[Response]],
    ) -> None:
        self._doors, self._pushes, self._readers, self._ask = doors, pushes, readers, ask

    async def serve(self, scope: Scope, receive: Receive, send: Send, connection: Connection) -> None:
        """From its request to its end."""
        connection.work()
        live, path = self._doors.live, scope["raw_path"].decode("latin-1")
        if live is None or self._pushes is None:
            missing = Problem(404, "no such resource", path)
            await refuse(problem_response(missing, Request("GET", path)), send)
        elif long_pushed(path):
            await self._pushes.over_socket(scope, receive, send, connection)
        else:
            await self._read(live, scope, receive, send, connection)

    async def _read(
        self, live: LiveApplication, scope: Scope, receive: Receive, send: Send, connection: Connection
    ) -> None:
        """A live reader."""
        headers = headers_in(scope)
        admitted = partial(live.admit, "GET", scope["path"], headers, client_in(scope))
        asked = _asked(scope)
        try:
            self._doors.hosts.check(headers.get("host"))
            check_reader(headers, self._doors.settings.cors)
            rights = admitted()
            if not live.routes.takes(asked()):
                raise Problem(404, "no such resource", scope["path"])
        except Problem as problem:
            await refuse(problem_response(problem, asked()), send)
            return
        response = await self._ask(live, asked(rights=rights))
        if not isinstance(response.body, Subscription):
            nothing_live = Problem(400, "nothing is sent here", "a WebSocket is for matches, changes and long pushes")
            await refuse(problem_response(nothing_live, asked()) if response.status < 400 else response, send)
            return
        try:
            await accept(receive, send)
            connection.converse(socket=True)
            socket = EventSocket(receive, send)
            await self._tell(response.body, socket, connection, lambda: same_rights(admitted, rights))
        finally:
            response.body.close()

    async def _tell(
        self, subscription: Subscription, socket: EventSocket, connection: Connection, may: Callable[[], bool]
    ) -> None:
        """Until the subscription ends, or the client leaves or says anything. Raises what sending raises."""
        listening = asyncio.create_task(socket.listen())
        reading = asyncio.create_task(self._readers.serve(subscription, connection, socket.send, may))
        try:
            await asyncio.wait((listening, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, reading):
                task.cancel()
            said, told = await asyncio.gather(listening, reading, return_exceptions=True)
        for outcome in (said, told):
            if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError | Problem):
                raise outcome
        if not connection.gone:
            await close(said if isinstance(said, Problem) else None, socket.raw)


def _asked(scope: Scope) -> partial[Request]:
    """The request, as one that is to be answered by events."""
    sent = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"] if name != b"accept"]
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return partial(Request, "GET", path, query, (*sent, _EVENTS))


class EventSocket:
    """Takes what readers.py sends of a response, and sends it as messages; a client that sends any itself is shown
    out."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self.raw = receive, send

    async def send(self, message: dict[str, Any]) -> None:
        """ASGI's, of an HTTP response's body."""
        for text in _messages(message["body"]):
            await self.raw({"type": "websocket.send", "text": text})

    async def listen(self) -> Problem | None:
        """Wait for the client to leave; a message of its own is one too many."""
        try:
            content_of(await self._receive())
        except GoneError:
            return None
        return Problem(400, "this address takes no messages")


def _messages(events: bytes) -> Iterator[str]:
    """Server-Sent Events as JSON objects: `event`, `id` where there is one, `data`. Comments are skipped."""
    for event in events.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.split("\n") if line and not line.startswith((":", "retry")))
        if "event" in fields:
            number = f'"id": {fields["id"]}, ' if "id" in fields else ""
            yield f'{{"event": "{fields["event"]}", {number}"data": {fields["data"]}}}'
        elif ": listening" in event:
            yield '{"event": "listening"}'
