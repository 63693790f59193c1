"""The server's front, an ASGI application: one loop that all requests come to.

    socket ─▶ Connection ─▶ uvicorn (HTTP) ─▶ Edge ─┬▶ a push: read, put on the journal's list, answered when stored
              └▶ small pushes: pushes.py      ├▶ a live reader: readers.py
                                                    └▶ all else: Flask, on a few threads (WSGI)

Bodies are read here, before a thread is taken for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2wsgi import WSGIMiddleware
from werkzeug.sansio.utils import get_host

from oxiseq.live.api.routes import is_push, long_pushed
from oxiseq.live.intake import is_small
from oxiseq.live.subscriptions import Subscription
from oxiseq.mappings.rows import ROWS
from oxiseq.rights import NOTHING
from oxiseq.server.access import check_reader
from oxiseq.server.app import Doors, LiveApplication, same_rights
from oxiseq.server.connections import Connection, Connections
from oxiseq.server.conversion import (
    CONTENT_LENGTH,
    GONE,
    Body,
    GoneError,
    Receive,
    Scope,
    TooLargeError,
    address_in,
    client_in,
    headers_in,
    headers_of,
    refused,
    request_in,
    sent_headers,
    unpacked,
)
from oxiseq.server.pushes import LongPushes, Pushers, SmallPushes
from oxiseq.server.readers import FromThreads, Readers, Send, accept, close, content_of, refuse
from oxiseq.sparql import Problem, Request, Response
from oxiseq.sparql.endpoint import problem_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

T = TypeVar("T")
_LIVE: Final = b"text/event-stream"


class Edge:
    """Answers requests; to be made in the loop that serves them. `rest` is the WSGI application of all routes."""

    def __init__(self, rest: WSGIApplication, doors: Doors, connections: Connections) -> None:
        self._doors, self._settings, self._connections = doors, doors.settings, connections
        self._loop = asyncio.get_running_loop()
        self._from_threads = FromThreads(self._loop)
        self._readers = Readers(self._loop, self._from_threads)
        self._threads = ThreadPoolExecutor(self._settings.threads, "oxiseq-live-requests")
        self._large = asyncio.Semaphore(2 * self._settings.threads)
        self._rest = WSGIMiddleware(
            _told_of_the_edge(rest),  # type: ignore[arg-type]  # of its own types
            workers=self._settings.threads,
        )
        self._long_pushes: LongPushes | None = None
        if doors.live is not None:
            pushers = Pushers(doors.live.routes.service, self._loop, self._from_threads, self._run, self._settings.slow)
            self._long_pushes = LongPushes(doors, doors.live, pushers)
            doors.live.routes.service.topics.on_change = self._readers.changed
            connections.short = SmallPushes(doors, doors.live, self._from_threads)
        self._sockets = Sockets(doors, self._long_pushes, self._readers, self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        connection = self._connections.of(scope["client"])
        if connection is None:
            return
        number = connection.begin()
        try:
            if scope["type"] == "websocket":
                await self._sockets.serve(scope, receive, send, connection)
                return
            await self._answer(scope, receive, send, connection)
        except GoneError:
            return
        except TooLargeError:
            close = ((b"content-length", b"0"), (b"connection", b"close"))
            await send({"type": "http.response.start", "status": 413, "headers": close})
            await send({"type": "http.response.body"})
        finally:
            connection.end(number)

    def end_pushers(self) -> None:
        """Long pushes come to their ends."""
        if self._long_pushes is not None:
            self._long_pushes.end()

    def close(self) -> None:
        """No thread begins anything more."""
        self._readers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._rest.executor.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, connection: Connection) -> None:
        live = self._doors.live
        if live is not None and is_push(scope["method"], scope["raw_path"].decode("latin-1")):
            await self._native(self._push, live, scope, receive, send, connection)
        elif live is not None and scope["method"] == "POST" and long_pushed(scope["raw_path"].decode("latin-1")):
            assert self._long_pushes is not None
            await self._long_pushes.over_request(scope, receive, send, connection)
        elif live is not None and _asks_for_events(scope) and live.routes.takes(request_in(scope)()):
            await self._native(self._open, live, scope, receive, send, connection)
        else:
            body = await Body.read(receive, self._settings.body)
            connection.work()
            try:
                scope[GONE] = lambda: connection.gone
                # WSGI has one name for X_Y and X-Y: a client's own would be taken for the proxy's
                scope["headers"] = [each for each in scope["headers"] if b"_" not in each[0]]
                await self._rest(scope, body.again(), send)  # type: ignore[arg-type]  # its own types of ASGI
            finally:
                body.close()

    async def _native(
        self,
        answer: Callable[[LiveApplication, Request], Any],
        live: LiveApplication,
        scope: Scope,
        receive: Receive,
        send: Send,
        connection: Connection,
    ) -> None:
        """A request that is answered here: `answer` gets it when it may come in and its body has come."""
        asked, headers, scheme = request_in(scope), headers_in(scope), scope["scheme"]
        admitted = partial(live.admit, scope["method"], scope["path"], headers, client_in(scope))
        limit, rights = self._settings.body, NOTHING
        body: Body | None = None
        try:
            host = headers.get("host")
            self._doors.hosts.check(host)
            rights = admitted()
            body = await Body.read(receive, limit)
            connection.work()
            origin = f"{scheme}://{get_host(scheme, host, scope['server'])}"
            known = partial(asked, origin=origin, gone=lambda: connection.gone, rights=rights)
            coding = headers.get("content-encoding", "")
            if is_small(body.size) and not coding:
                response = await answer(live, known(body=unpacked(body.content(), coding, limit)))
            else:
                async with self._large:
                    content = await self._run(False, partial(_content, body, coding, limit))
                    response = await answer(live, known(body=content))
        except Problem as problem:
            response = problem_response(problem, asked())
        finally:
            if body is not None:
                body.close()
        if body is None:
            response = await refused(response, headers, receive, limit)
        await self._send(response, headers, connection, send, lambda: same_rights(admitted, rights))

    async def _push(self, live: LiveApplication, asked: Request) -> Response:
        """Stored with what else comes at the time."""
        routes = live.routes
        small = is_small(len(asked.body)) and asked.media_type not in ROWS  # a mapping may take longer
        pushing = await self._run(small, lambda: routes.begin_push(asked))
        if isinstance(pushing, Response):
            return pushing
        stored: asyncio.Future[None] = self._loop.create_future()
        under_way = routes.service.journal.log.submit(pushing.append, partial(self._from_threads.call, _end_of(stored)))
        await stored
        return await self._run(small, lambda: routes.end_push(asked, pushing, under_way.result))

    async def _open(self, live: LiveApplication, asked: Request) -> Response:
        """A live reader's subscription, or another answer."""
        return await self._run(False, lambda: live.routes.answer(asked))

    async def _run(self, small: bool, work: Callable[[], T]) -> T:
        """Here, or where it may take longer by a thread."""
        return work() if small else await self._loop.run_in_executor(self._threads, work)

    async def _send(
        self, response: Response, asked: Mapping[str, str], connection: Connection, send: Send, may: Callable[[], bool]
    ) -> None:
        headers = [each for each in headers_of(response) if each[0] != CONTENT_LENGTH]
        body = response.body if isinstance(response.body, bytes) else b""
        if body or not isinstance(response.body, Subscription):
            headers.append((CONTENT_LENGTH, str(len(body))))
        told = sent_headers(headers, asked, self._settings.cors)
        await send({"type": "http.response.start", "status": response.status, "headers": told})
        if isinstance(response.body, Subscription):
            await self._readers.serve(response.body, connection, send, may, at_once=True)
        else:
            await send({"type": "http.response.body", "body": body})


def _content(body: Body, coding: str, limit: int) -> bytes:
    return unpacked(body.content(), coding, limit)


def _told_of_the_edge(rest: WSGIApplication) -> WSGIApplication:
    """The WSGI application, with what its environment otherwise lacks."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        scope = environ["asgi.scope"]
        environ["REQUEST_URI"], environ[GONE] = address_in(scope), scope[GONE]
        environ["wsgi.input_terminated"] = True  # else a body in chunks, which states no length, is taken for none
        return rest(environ, start_response)

    return application


def _asks_for_events(scope: Scope) -> bool:
    """Whether a client accepts live events; whether it gets them its route decides."""
    return scope["method"] in ("GET", "POST") and any(
        name == b"accept" and _LIVE in value.lower() for name, value in scope["headers"]
    )


def _end_of(future: asyncio.Future[None]) -> Callable[[], None]:
    def end() -> None:
        if not future.done():
            future.set_result(None)

    return end


# --- WebSockets ------------------------------------------------------------------------------------------

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
