"""Live readers and WebSockets.

Live readers on the loop: each is a coroutine that waits for its topic, or for the client to take what it was sent.

What is in memory is written out by the loop, once for all readers of a topic. Mostly nothing has to be waited for: then
it is sent without waking the coroutine. Who has fallen behind gets pages of the journal from a few threads.

WebSockets: long pushes as messages (pushes.py), and live readers' events as messages.

scope ─▶ admitted, or refused as a plain HTTP answer ─▶ accepted ─▶ EventSocket: readers.py, whose pieces of
                                                                    Server-Sent Events become messages here
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from oxiseq.engine.errors import OxiseqError
from oxiseq.live.subscriptions import HEARTBEAT, HELLO, PAUSE, Subscription
from oxiseq.live.topics import Topic
from oxiseq.server.connections import Connection
from oxiseq.server.conversion import GoneError, Receive, headers_of
from oxiseq.sparql import Problem, Response

# --- readers ---------------------------------------------------------------------------------------------

Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
"""ASGI's."""
_THREADS: Final = 4
_LOOK: Final = 1.0
"""Seconds between checks of a reader's rights."""


class Bell:
    """What a coroutine waits at. For the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rung = False
        self._waiting: asyncio.Future[bool] | None = None

    def ring(self) -> None:
        """Wake who waits, or will."""
        self._rung = True
        self._wake(True)

    def clear(self) -> None:
        """What has rung before counts no longer."""
        self._rung = False

    async def wait(self, seconds: float) -> bool:
        """Whether it has rung in time."""
        if not self._rung:
            self._waiting = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._wake, False)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        return self._rung

    def _wake(self, rung: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(rung)


class FromThreads:
    """Calls of other threads, brought to the loop: many that come together wake it once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._told = False

    def call(self, function: Callable[[], None]) -> None:
        """Have the loop call it soon."""
        self._calls.append(function)
        if not self._told:
            self._told = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:  # the loop has ended, and nobody waits any more
                self._told = False

    def _run(self) -> None:
        self._told = False
        try:
            while self._calls:
                self._calls.popleft()()
        finally:
            if self._calls:  # one has failed: those behind it are other clients'
                self._told = True
                self._loop.call_soon(self._run)


class Readers:
    """All of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, from_threads: FromThreads) -> None:
        self._loop, self._from_threads = loop, from_threads
        self._open: dict[Topic, set[_Reader]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "oxiseq-readers")

    def changed(self, topic: Topic) -> None:
        """There is something new in a topic; called by any thread."""
        if topic in self._open:
            self._from_threads.call(lambda: self._ring(topic))

    async def serve(
        self,
        subscription: Subscription,
        connection: Connection,
        send: Send,
        may: Callable[[], bool],
        *,
        at_once: bool = False,
    ) -> None:
        """Send what comes for a reader, until it ends or the client leaves, or as long as it `may` be told; `at_once`:
        `send` waits for nothing but a client that does not take what is sent. Raises what `step` raises."""
        reader = _Reader(self._loop, subscription, connection, send, may, at_once)
        connection.on_gone = reader.bell.ring
        readers = self._open.setdefault(subscription.topic, set())
        readers.add(reader)
        try:
            await send(_piece(HELLO))
            await reader.serve(self._threads)
        finally:
            readers.discard(reader)
            if not readers and self._open.get(subscription.topic) is readers:
                del self._open[subscription.topic]
            subscription.close()
        await send({"type": "http.response.body", "body": b""})

    def _ring(self, topic: Topic) -> None:
        now = self._loop.time()
        for reader in self._open.get(topic, ()):
            reader.ring(now)

    def close(self) -> None:
        """No thread begins anything more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Reader:
    """One of them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        subscription: Subscription,
        connection: Connection,
        send: Send,
        may: Callable[[], bool],
        at_once: bool,
    ) -> None:
        self.bell = Bell(loop)
        self._loop, self._subscription, self._connection = loop, subscription, connection
        self._send, self._may, self._at_once = send, may, at_once
        self._waits = False
        """Whether its coroutine does, at the bell."""
        self._looked = self._told = loop.time()
        """When it was checked that it may be told; when it was told something without its coroutine."""

    async def serve(self, threads: ThreadPoolExecutor) -> None:
        """Send what comes."""
        subscription, connection = self._subscription, self._connection
        while not connection.gone:
            self.bell.clear()
            if subscription.quick:
                data = subscription.step()
            else:
                data = await self._loop.run_in_executor(threads, subscription.step)
            if self._due(self._loop.time()):
                self._looked = self._loop.time()
                if not self._may():
                    return  # it may come again, and is told then why not
            if data:
                await self._send(_piece(data))  # waits while much has not been taken
            if subscription.ended:
                return
            if data:
                continue
            if not subscription.live:
                await asyncio.sleep(PAUSE)
            elif not await self._rung():
                await self._send(_piece(HEARTBEAT))

    async def _rung(self) -> bool:
        """Whether it has to look again; False after a heartbeat's time without anything."""
        self._waits, heartbeat = self._at_once, self._subscription.heartbeat
        try:
            rung = await self.bell.wait(heartbeat)
            while not rung and (left := self._told + heartbeat - self._loop.time()) > 0:
                rung = await self.bell.wait(left)
            return rung
        finally:
            self._waits = False

    def _due(self, now: float) -> bool:
        """Whether it is time to check that it may be told."""
        return now - self._looked >= _LOOK

    def ring(self, now: float) -> None:
        """There is something new."""
        if not self._tell(now):
            self.bell.ring()

    def _tell(self, now: float) -> bool:
        """Whether it could be sent here: then its coroutine goes on waiting."""
        subscription, connection = self._subscription, self._connection
        if not self._waits or connection.full or connection.gone or self._due(now):
            return False
        try:
            if subscription.topic.closed or not subscription.quick or not (data := subscription.step()):
                return False
        except OxiseqError:
            return False  # raised again where the coroutine looks
        self._told = now
        try:
            self._send(_piece(data)).send(None)
        except StopIteration:
            return True
        raise AssertionError("it waits for a client that takes all")


def _piece(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}


# --- talks -----------------------------------------------------------------------------------------------

NORMAL: Final = 1000
"""The code of a WebSocket's end without a problem."""
_PRIVATE: Final = 4000
"""Codes of our own: this, and the HTTP status."""
_LONGEST_REASON: Final = 100
"""Characters of the reason that fit beside a code."""
_LINGER: Final = 2.0
"""Seconds for which a body that is not taken is still read, so that its client comes to read why."""


class RequestTalk:
    """As pushers.Talk: bytes as they come, lines as pieces of the answer."""

    messages = False

    def __init__(self, connection: Connection, receive: Receive, send: Send) -> None:
        self._connection, self._receive, self._send = connection, receive, send
        self._first: dict[str, Any] | None = None
        self._ended = False

    @property
    def pending(self) -> int:
        """As Talk."""
        return self._connection.pending

    async def expect(self) -> None:
        """Let a client send that waits until it may. Raises GoneError."""
        self._first = await self._receive()

    async def receive(self) -> bytes | None:
        """As Talk."""
        if self._ended:
            return None
        message, self._first = self._first if self._first is not None else await self._receive(), None
        if message["type"] != "http.request":
            raise GoneError
        self._ended = not message.get("more_body", False)
        return bytes(message.get("body", b""))

    async def send(self, line: bytes) -> None:
        """As Talk."""
        await self._send({"type": "http.response.body", "body": line, "more_body": True})

    async def linger(self) -> None:
        """Read what still comes, for a moment, and release it."""
        try:
            async with asyncio.timeout(_LINGER):
                while await self.receive() is not None:
                    pass
        except (TimeoutError, GoneError):
            return


class SocketTalk:
    """A long push over a WebSocket: a message of whole items each, a message a line back."""

    messages = True

    def __init__(self, connection: Connection, receive: Receive, send: Send) -> None:
        self._connection, self._receive, self._send = connection, receive, send

    @property
    def pending(self) -> int:
        """As Talk."""
        return self._connection.pending

    async def receive(self) -> bytes | None:
        """As Talk."""
        data = content_of(await self._receive())
        self._connection.hear()
        return data

    async def send(self, line: bytes) -> None:
        """As Talk."""
        await self._send({"type": "websocket.send", "text": line.decode().rstrip("\n")})


async def refuse(response: Response, send: Send) -> None:
    """Answer with a response instead of a WebSocket."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers_of(response)]
    headers = [each for each in headers if each[0] != b"content-length"]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.content()})


async def accept(receive: Receive, send: Send) -> None:
    """Begin. Raises GoneError."""
    if (await receive())["type"] != "websocket.connect":
        raise GoneError
    await send({"type": "websocket.accept"})


async def close(problem: Problem | None, send: Send) -> None:
    """End: with 4000 and a status where there is a problem."""
    code = NORMAL if problem is None else _PRIVATE + problem.status
    reason = "" if problem is None else problem.title[:_LONGEST_REASON]
    await send({"type": "websocket.close", "code": code, "reason": reason})


def content_of(message: dict[str, Any]) -> bytes:
    """What a message of the client holds. Raises GoneError."""
    if message["type"] != "websocket.receive":
        raise GoneError
    text = message.get("text")
    return text.encode() if text is not None else bytes(message["bytes"])
