"""Long pushes, from a client's request to its end: over the request itself, or over a WebSocket.

scope ─▶ admitted, a place taken ─▶ Opening ─▶ Talk (talks.py) ─▶ pushers.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from oxiseq.live.api.push_events import LINES, Opening
from oxiseq.rights import Rights
from oxiseq.server.app import Doors
from oxiseq.server.bodies import Receive, refused
from oxiseq.server.connections import Connection
from oxiseq.server.conversion import headers_of
from oxiseq.server.live import LiveApplication, same_rights
from oxiseq.server.pushers import Pushers, last_line
from oxiseq.server.readers import Send
from oxiseq.server.scopes import Scope, client_in, headers_in, request_in, sent_headers
from oxiseq.server.talks import RequestTalk, SocketTalk, accept, close, refuse
from oxiseq.sparql import Problem, Request, Response
from oxiseq.sparql.endpoint import problem_response

_ANSWER: Final = [("Content-Type", LINES), ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")]
"""Headers of an answer; nginx sends it on line by line."""


class LongPushes:
    """All of them. For the loop's thread."""

    def __init__(self, doors: Doors, live: LiveApplication, pushers: Pushers) -> None:
        self._doors, self._live, self._pushers = doors, live, pushers

    def end(self) -> None:
        """They come to their ends, for the server does."""
        self._pushers.end()

    async def over_request(self, scope: Scope, receive: Receive, send: Send, connection: Connection) -> None:
        """A request that is answered while it is read."""
        asked, headers, settings = request_in(scope), headers_in(scope), self._doors.settings
        admitted = partial(self._live.admit, "POST", scope["path"], headers, client_in(scope))
        try:
            with self._pushers.place():
                opened, rights = await self._opened(asked, headers, admitted, socket=False)
                talk = RequestTalk(connection, receive, send)
                if "expect" in headers:
                    await talk.expect()  # before the answer begins: who has got one sends no body
                connection.converse(socket=False)
                told = sent_headers(_ANSWER, headers, settings.cors)
                await send({"type": "http.response.start", "status": 200, "headers": told})
                problem = await self._pushers.serve(opened, talk, lambda: same_rights(admitted, rights))
        except _RefusedError as error:
            response = error.response
        except Problem as error:
            response = problem_response(error, asked())
        else:
            if problem is not None:
                await talk.send(last_line(problem))
                await talk.linger()
            await send({"type": "http.response.body", "body": b""})
            if problem is not None:
                connection.close()
            return
        response = await refused(response, headers, receive, settings.body)
        body = response.content()
        told = sent_headers([*headers_of(response), ("Content-Length", str(len(body)))], headers, settings.cors)
        await send({"type": "http.response.start", "status": response.status, "headers": told})
        await send({"type": "http.response.body", "body": body})

    async def over_socket(self, scope: Scope, receive: Receive, send: Send, connection: Connection) -> None:
        """A WebSocket, messages of which hold items."""
        asked, headers = request_in(scope | {"method": "GET"}), headers_in(scope)
        admitted = partial(self._live.admit, "POST", scope["path"], headers, client_in(scope))
        try:
            with self._pushers.place():
                opened, rights = await self._opened(asked, headers, admitted, socket=True)
                await accept(receive, send)
                connection.converse(socket=True)
                talk = SocketTalk(connection, receive, send)
                problem = await self._pushers.serve(opened, talk, lambda: same_rights(admitted, rights))
                if problem is not None:
                    await talk.send(last_line(problem))
                await close(problem, send)
        except _RefusedError as error:
            await refuse(error.response, send)
        except Problem as error:
            await refuse(problem_response(error, asked()), send)

    async def _opened(
        self,
        asked: Callable[..., Request],
        headers: Mapping[str, str],
        admitted: Callable[[], Rights],
        *,
        socket: bool,
    ) -> tuple[Opening, Rights]:
        """What a client may begin. Raises Problem, _RefusedError."""
        self._doors.hosts.check(headers.get("host"))
        rights = admitted()
        if headers.get("content-encoding", "identity") != "identity":
            raise Problem(415, "unknown Content-Encoding", "a long push cannot be compressed")
        request = asked(rights=rights)
        opened = await self._pushers.run(False, lambda: self._live.routes.begin_long_push(request, socket=socket))
        if isinstance(opened, Response):
            raise _RefusedError(opened)
        return opened, rights


class _RefusedError(Exception):
    """Refused with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response
