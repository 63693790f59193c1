"""Pushes that a server with a loop of its own answers without WSGI.

Small pushes, answered between the socket and the HTTP server.

    socket ─▶ Connection ─┬▶ SmallPushes: one plain request: read, put on the journal's list, answered when stored
                          └▶ uvicorn (HTTP) ─▶ Edge: all else, and all that follows it on that connection

An HTTP server makes a task, a dictionary and an object per header of each request, which costs more than all that is
done with one event. A client sends the same head again and again, so here a head is read once. What is read here is
plain: HTTP/1.1, a POST to a stream with a Content-Length, no header that asks for anything of the connection. The
least doubt leaves the bytes to the HTTP server.

Long pushes, from a client's request to its end: over the request itself, or over a WebSocket.

scope ─▶ admitted, a place taken ─▶ Opening ─▶ Talk (readers.py) ─▶ Pushers

Long pushes on the loop: items are read, stored and acknowledged at the same time.

    Talk (one request, or a WebSocket) ─▶ _read ─▶ LongPush ─▶ the journal's list
           ◀─ acknowledgements ─ _acknowledge ◀─ as they become durable ┘

Nothing is read while _AHEAD pushes are on their way to the disk, or while as many events wait for queries as may: the
client feels that as a full socket. Acknowledgements that a client does not read are sent together later.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import unquote

from werkzeug.sansio.utils import get_host

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Appending
from oxiseq.live.api.long_push import LINES, LongPush, Opening, failure, last_of
from oxiseq.live.api.routes import is_push
from oxiseq.live.api.table import as_problem
from oxiseq.live.intake import LARGEST, is_small
from oxiseq.live.service import LiveService
from oxiseq.live.streams import Push
from oxiseq.mappings.rows import ROWS
from oxiseq.rights import Rights
from oxiseq.server.app import Doors, LiveApplication, same_rights
from oxiseq.server.connections import LEAVE, Connection
from oxiseq.server.conversion import (
    CONTENT_LENGTH,
    GoneError,
    Receive,
    Scope,
    client_in,
    headers_in,
    headers_of,
    joined,
    refused,
    request_in,
    sent_headers,
)
from oxiseq.server.readers import Bell, FromThreads, RequestTalk, Send, SocketTalk, accept, close, refuse
from oxiseq.sparql import Problem, Request, Response
from oxiseq.sparql.endpoint import problem_response
from oxiseq.sparql.messages import Headers

# --- one event -------------------------------------------------------------------------------------------

_BEGIN: Final = b"POST /streams/"
_END: Final = b"\r\n\r\n"
_LONGEST: Final = 4096
"""Bytes of a head beyond which it is left to the HTTP server."""
_ASKED: Final = re.compile(rb"POST (/streams/[!$-;=@-Z_a-z~]+)(?:\?([!$-;=@-Z_a-z~?]*))? HTTP/1\.1")
_FIELD: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t -~\x80-\xff]*)")
_OF_CONNECTION: Final = frozenset(
    ("connection", "content-encoding", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
"""Headers that ask for more than a push."""
_UNENDED: Final = re.compile(rb"[\t -~\x80-\xff]*\r?")
"""A line whose end has not come."""


@dataclass(frozen=True, slots=True)
class Head:
    """A request but for its body, of `length` bytes. `decoded`: the path, decoded; `named`: the headers by their
    names in lower case, several of one name with commas."""

    path: str
    decoded: str
    query: str
    headers: Headers
    named: Mapping[str, str]
    length: int


@lru_cache(256)
def read_head(head: bytes) -> Head | None:
    """The head of a plain small push, without the empty line at its end; None for any other."""
    first, *lines = head.split(b"\r\n")
    asked, fields = _ASKED.fullmatch(first), [_FIELD.fullmatch(line) for line in lines]
    if asked is None or not is_push("POST", path := asked[1].decode()):
        return None
    headers = tuple([(each[1].decode().lower(), each[2].strip().decode("latin-1")) for each in fields if each])
    named = joined(headers)
    if len(headers) < len(fields) or "host" not in named or not _OF_CONNECTION.isdisjoint(named):
        return None
    length = named.get("content-length", "")
    if not (length.isascii() and length.isdecimal() and len(length) <= len(str(LARGEST)) and int(length) <= LARGEST):
        return None
    if named.get("content-type", "").partition(";")[0].strip().lower() in ROWS:
        return None  # a mapping may take longer
    return Head(path, unquote(path), (asked[2] or b"").decode(), headers, named, int(length))


def may_begin(data: bytes) -> bool:
    """Whether a plain head may begin so: the client of any other may wait for its answer already."""
    *lines, last = data.split(b"\r\n")
    if not _UNENDED.fullmatch(last):
        return False
    if not lines:
        return data.startswith(_BEGIN) or _BEGIN.startswith(data)
    return _ASKED.fullmatch(lines[0]) is not None and all(_FIELD.fullmatch(each) for each in lines[1:])


class SmallPushes:
    """Takes them from connections; for the loop's thread."""

    def __init__(self, doors: Doors, live: LiveApplication, from_threads: FromThreads) -> None:
        self._hosts, self._settings, self._live = doors.hosts, doors.settings, live
        self._from_threads = from_threads
        self._scheme = "http" if doors.settings.tls is None else "https"

    def take(self, connection: Connection, data: bytes) -> int:
        """How many bytes of `data` are a small push, which is under way then and ends with `connection.answer`; 0 while
        that is not known; LEAVE: it is something else."""
        end = data.find(_END, 0, _LONGEST)
        if end < 0:
            return 0 if len(data) < _LONGEST and may_begin(data) else LEAVE
        head = read_head(data[:end])
        if head is None or head.length > self._settings.body:
            return LEAVE
        size = end + len(_END) + head.length
        if len(data) < size:
            return 0
        connection.begin()
        connection.work()
        self._begin(connection, head, data[size - head.length : size])
        return size

    def _begin(self, connection: Connection, head: Head, body: bytes) -> None:
        routes = self._live.routes
        try:
            self._hosts.check(head.named["host"])
            rights = self._live.admit("POST", head.decoded, head.named, connection.address)
        except Problem as problem:
            asked = Request("POST", head.path, head.query, head.headers)
            self._answer(connection, head, problem_response(problem, asked))
            return
        asked = Request(
            "POST",
            head.path,
            head.query,
            head.headers,
            body,
            _origin(self._scheme, head.named["host"]),
            lambda: connection.gone,
            rights,
        )
        pushing = routes.begin_push(asked)
        if isinstance(pushing, Response):
            self._answer(connection, head, pushing)
            return

        def end() -> None:
            self._answer(connection, head, routes.end_push(asked, pushing, under_way.result))

        under_way = routes.service.journal.log.submit(pushing.append, partial(self._from_threads.call, end))

    def _answer(self, connection: Connection, head: Head, response: Response) -> None:
        body = response.content()
        fields = _fields(response.status, response.headers, head.named.get("origin"), self._settings.cors)
        date = _date(int(time.time()))
        connection.answer(b"%bdate: %b\r\ncontent-length: %d\r\n\r\n%b" % (fields, date, len(body), body))


@lru_cache(256)
def _fields(status: int, headers: Headers, origin: str | None, cors: tuple[str, ...]) -> bytes:
    """The first line of an answer, and its headers but for those that each answer has of its own."""
    made = [each for each in headers_of(Response(status, headers)) if each[0] != CONTENT_LENGTH]
    sent = sent_headers(made, {} if origin is None else {"origin": origin}, cors)
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return first + b"".join([b"%b: %b\r\n" % (name.lower(), value) for name, value in sent])


@lru_cache(1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


@lru_cache(256)
def _origin(scheme: str, host: str) -> str:
    return f"{scheme}://{get_host(scheme, host)}"


# --- one request, one WebSocket --------------------------------------------------------------------------

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


# --- while they come -------------------------------------------------------------------------------------

Run = Callable[[bool, Callable[[], Any]], Awaitable[Any]]
"""Does something small here, or anything else by a thread."""
_AHEAD: Final = 8
_CROWDED: Final = 0.01
"""Seconds between looks whether fewer events wait."""
_TICK: Final = 1.0
"""Seconds between checks of the client's rights, and of items that do not come whole."""
_PACE: Final = 0.02
"""Seconds between two acknowledgements at least."""
_LEAST_RATE: Final = 1024
"""Bytes a second of an item that has begun to come."""


class Talk(Protocol):
    """What carries a long push."""

    messages: bool
    """Whether items come in messages, whole ones in each."""

    @property
    def pending(self) -> int:
        """Bytes that the client has not taken yet."""
        ...

    async def receive(self) -> bytes | None:
        """The next bytes; None: it is the end. Raises GoneError."""
        ...

    async def send(self, line: bytes) -> None:
        """A line to the client."""
        ...


class Pushers:
    """All of them. `slow`: seconds that an item may take, beside the time for its bytes."""

    def __init__(
        self, service: LiveService, loop: asyncio.AbstractEventLoop, from_threads: FromThreads, run: Run, slow: float
    ) -> None:
        self.service, self.loop, self.from_threads, self.run, self.slow = service, loop, from_threads, run, slow
        self._open: dict[tuple[str, str], _Pusher] = {}
        self._count = 0
        self._ending: Problem | None = None

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """There is one more of them. Raises Problem 503 where there are too many."""
        most = self.service.settings.pushers
        if self._count >= most:
            raise Problem(
                503,
                "too busy",
                f"there are {most} long pushes, the limit: try again later",
                headers=(("Retry-After", "5"),),
            )
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def serve(self, opened: Opening, talk: Talk, may: Callable[[], bool]) -> Problem | None:
        """Take what a client sends, until it ends or leaves, or may no longer push; why it was ended by the server.
        Another connection that continues with the same session ends it, too."""
        key = opened.stream, opened.session
        while (before := self._open.get(key)) is not None:
            before.end(Problem(409, "continued elsewhere", "another connection continues this session"))
            await before.over.wait()
        pusher = self._open[key] = _Pusher(self, talk, may)
        try:
            if self._ending is not None:
                pusher.end(self._ending)
            return await pusher.serve(opened)
        finally:
            del self._open[key]
            pusher.over.set()

    def end(self) -> None:
        """The server ends: what has been read is stored and acknowledged, nothing more is taken."""
        self._ending = Problem(503, "the server is stopping", "continue the session when the server is back")
        for pusher in self._open.values():
            pusher.end(self._ending)


class _Pusher:
    """One of them."""

    def __init__(self, owner: Pushers, talk: Talk, may: Callable[[], bool]) -> None:
        self.over = asyncio.Event()
        self._owner, self._talk, self._may = owner, talk, may
        self._way: deque[tuple[Push, Appending]] = deque()
        """Pushes that are on their way to the disk."""
        self._bell, self._room = Bell(owner.loop), Bell(owner.loop)
        self._problem: Problem | None = None
        self._begun: float | None = None
        """When the item began that has not come whole."""

    def end(self, problem: Problem) -> None:
        """Nothing more is read."""
        if self._problem is None:
            self._problem = problem
        self._bell.ring()
        self._room.ring()

    async def serve(self, opened: Opening) -> Problem | None:
        """See Pushers.serve."""
        service = self._owner.service
        try:
            last = await self._owner.run(False, last_of(service, opened))
        except OxiseqError as error:
            return as_problem(error)
        push = opened.push(service, last, messages=self._talk.messages)
        reading = self._owner.loop.create_task(self._read(push))
        reading.add_done_callback(lambda _: self._bell.ring())
        try:
            await self._talk.send(push.hello())
            await self._acknowledge(push, reading)
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, GoneError):
                await reading
            await self._settled(push)
        return self._problem

    # --- reading ------------------------------------------------------------------------------------

    async def _read(self, push: LongPush) -> None:
        """Until the end. Raises GoneError."""
        more = True
        while more and self._problem is None:
            await self._wait_for_room()
            data = await self._talk.receive()
            more = data is not None
            work = push.finish if data is None else partial(self._decoded, push, data)
            small = data is not None and is_small(len(data) + push.decoder.held)
            pushes = await self._owner.run(small, work)
            for each in pushes:
                if len(self._way) >= _AHEAD and not await self._wait_for_room():
                    return  # a message may hold tens of thousands of them: not all are submitted at once
                self._submit(each)
            if not push.decoder.held:
                self._begun = None
            elif pushes or self._begun is None:
                self._begun = self._owner.loop.time()
            if push.decoder.fault is not None:
                self.end(push.decoder.fault)

    def _decoded(self, push: LongPush, data: bytes) -> list[Push]:
        found = push.feed(data)
        return found + push.finish() if self._talk.messages else found

    async def _wait_for_room(self) -> bool:
        """Whether there is some; else the push ends."""
        streams = self._owner.service.streams
        while self._problem is None and (len(self._way) >= _AHEAD or streams.crowded):
            self._room.clear()
            await self._room.wait(_CROWDED)
            if self._begun is not None:
                self._begun = self._owner.loop.time()  # that it does not come is our doing
        return self._problem is None

    def _submit(self, push: Push) -> None:
        log, call = self._owner.service.journal.log, self._owner.from_threads.call
        self._way.append((push, log.submit(push.append, partial(call, self._bell.ring))))

    # --- acknowledging ------------------------------------------------------------------------------

    async def _acknowledge(self, push: LongPush, reading: asyncio.Task[None]) -> None:
        """Tell what becomes durable. Raises GoneError."""
        now = self._owner.loop.time
        heartbeat, told, looked = self._owner.service.settings.heartbeat, now() - _PACE, now()
        while not (reading.done() or self._problem is not None) or self._way:
            if not await self._bell.wait(_PACE if push.unacknowledged else _TICK) and not push.unacknowledged:
                self._look(push)
            self._bell.clear()
            await self._collect(push)
            if now() - looked >= _TICK:
                looked = now()
                self._look(push)
            due = push.unacknowledged and now() - told >= _PACE
            if (due or now() - told >= heartbeat) and not self._talk.pending:
                told = now()
                await self._talk.send(push.acknowledgement())
        if push.unacknowledged:
            await self._talk.send(push.acknowledgement())
        if reading.done():
            reading.result()

    def _look(self, push: LongPush) -> None:
        held, begun = push.decoder.held, self._begun
        if not self._may():
            self.end(Problem(403, "not allowed any more", "the token is revoked, or has other rights now"))
        elif begun is not None and self._owner.loop.time() - begun > self._owner.slow + held / _LEAST_RATE:
            self.end(Problem(408, "too slow", "an item began and was not completed"))

    async def _collect(self, push: LongPush) -> None:
        """What has become durable, in its order."""
        while self._way and self._way[0][1].done:
            each, appending = self._way.popleft()
            self._room.ring()
            try:
                appended = appending.result()
                small = is_small(len(each.reading.blob))
                await self._owner.run(small, partial(push.stored, each, appended))
            except OxiseqError as error:  # what follows it is refused, too: the session has not come so far
                self.end(as_problem(error))

    async def _settled(self, push: LongPush) -> None:
        """Wait for what is on its way: who comes next must see it."""
        while self._way:
            self._bell.clear()
            await self._collect(push)
            if self._way:
                await self._bell.wait(_TICK)


def last_line(problem: Problem | None) -> bytes:
    """The last message to a client; empty where it ended the push itself."""
    return b"" if problem is None else failure(problem)
