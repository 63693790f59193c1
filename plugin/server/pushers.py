"""Long pushes on the loop: items are read, stored and acknowledged at the same time.

    Talk (one request, or a WebSocket) ─▶ _read ─▶ LongPush ─▶ the journal's list
           ◀─ acknowledgements ─ _acknowledge ◀─ as they become durable ┘

Nothing is read while _AHEAD pushes are on their way to the disk, or while as many events wait for queries as may: the
client feels that as a full socket. Acknowledgements that a client does not read are sent together later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, Protocol

from oxiseq.engine.errors import OxiseqError
from oxiseq.journal import Appending
from oxiseq.live.api.long_push import LongPush, failure
from oxiseq.live.api.problems import as_problem
from oxiseq.live.api.push_events import Opening, last_of
from oxiseq.live.intake import is_small
from oxiseq.live.service import LiveService
from oxiseq.live.streams import Push
from oxiseq.server.bodies import GoneError
from oxiseq.server.readers import Bell, FromThreads
from oxiseq.sparql import Problem

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
