"""The server's front, an ASGI application: one loop that all requests come to.

    socket ─▶ Connection ─▶ uvicorn (HTTP) ─▶ Edge ─┬▶ a push: read, put on the journal's list, answered when stored
              └▶ small pushes: small_pushes.py      ├▶ a live reader: readers.py
                                                    └▶ all else: Flask, on a few threads (WSGI)

Bodies are read here, before a thread is taken for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
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
from oxiseq.server.app import Doors
from oxiseq.server.bodies import Body, GoneError, Receive, TooLargeError, refused
from oxiseq.server.connections import Connection, Connections
from oxiseq.server.conversion import CONTENT_LENGTH, GONE, headers_of, unpacked
from oxiseq.server.live import LiveApplication, same_rights
from oxiseq.server.long_pushes import LongPushes
from oxiseq.server.pushers import Pushers
from oxiseq.server.readers import FromThreads, Readers, Send
from oxiseq.server.scopes import Scope, address_in, client_in, headers_in, request_in, sent_headers
from oxiseq.server.small_pushes import SmallPushes
from oxiseq.server.sockets import Sockets
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
