"""Live readers on the loop: each is a coroutine that waits for its topic, or for the client to take what it was sent.

What is in memory is written out by the loop, once for all readers of a topic. Who has fallen behind gets pages of the
journal from a few threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from oxiseq.live.subscriptions import HEARTBEAT, HELLO, PAUSE, Subscription
from oxiseq.live.topics import Topic
from oxiseq.server.connections import Connection

Send = Callable[[dict[str, Any]], Awaitable[None]]
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
        while self._calls:
            self._calls.popleft()()


class Readers:
    """All of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, from_threads: FromThreads) -> None:
        self._loop, self._from_threads = loop, from_threads
        self._bells: dict[Topic, set[Bell]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "oxiseq-readers")

    def changed(self, topic: Topic) -> None:
        """There is something new in a topic; called by any thread."""
        if topic in self._bells:
            self._from_threads.call(lambda: self._ring(topic))

    async def serve(
        self, subscription: Subscription, connection: Connection, send: Send, may: Callable[[], bool]
    ) -> None:
        """Sends what comes for a reader, until it ends or the client leaves, or as long as it `may` read. Raises what
        `step` raises."""
        bell = Bell(self._loop)
        connection.on_gone = bell.ring
        bells = self._bells.setdefault(subscription.topic, set())
        bells.add(bell)
        try:
            await send(_piece(HELLO))
            await self._tell(subscription, connection, bell, send, may)
        finally:
            bells.discard(bell)
            if not bells and self._bells.get(subscription.topic) is bells:
                del self._bells[subscription.topic]
            subscription.close()
        await send({"type": "http.response.body", "body": b""})

    async def _tell(
        self, subscription: Subscription, connection: Connection, bell: Bell, send: Send, may: Callable[[], bool]
    ) -> None:
        looked = self._loop.time()
        while not connection.gone:
            bell.clear()
            if subscription.quick:
                data = subscription.step()
            else:
                data = await self._loop.run_in_executor(self._threads, subscription.step)
            if self._loop.time() - looked >= _LOOK:
                looked = self._loop.time()
                if not may():
                    return  # it may come again, and learns the reason then
            if data:
                await send(_piece(data))  # waits while much has not been taken
            if subscription.ended:
                return
            if data:
                continue
            if not subscription.live:
                await asyncio.sleep(PAUSE)
            elif not await bell.wait(subscription.heartbeat):
                await send(_piece(HEARTBEAT))

    def _ring(self, topic: Topic) -> None:
        for bell in self._bells.get(topic, ()):
            bell.ring()

    def close(self) -> None:
        """No thread begins anything more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _piece(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}
