"""Messages of a stream of NATS JetStream, read by a durable consumer: what is not acknowledged is delivered again.

The client library is asynchronous: its loop runs in a thread of the source, so that the server's pings are answered
while messages wait to be durable here, and it hears that they are still at work. What a killed bridge had read comes
again after 30 seconds at most; what is newer waits for it, so that the order stays.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, SourcePosition, digest
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    import nats
    from nats import errors
    from nats.js import api
    from nats.js import errors as js_errors
else:
    nats = needed("nats")
    errors = needed("nats.errors")
    api = needed("nats.js.api")
    js_errors = needed("nats.js.errors")

_TIMEOUT: Final = 10.0
_UNDER_WAY: Final = 500
_ACK_WAIT: Final = 30.0
"""Seconds without news after which the server delivers a message again."""
_PROGRESS: Final = 3
"""How often within this time it hears of each message that is at work: the intake may be busy for long."""
_IDLE: Final = 5.0
"""Seconds without a message after which the consumer is looked for."""
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
T = TypeVar("T")


class NatsSource(Source):
    """nats://HOST:PORT, or nats+tls://; `topic` is a subject, as plant.>, of which a stream of JetStream keeps the
    messages. A message's key is the stream, its number and its time there, to the microsecond: no other stream, of this
    or another server, has these. `position`: the stream, and the last number that is confirmed."""

    needs: ClassVar[str] = "nats"

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        super().__init__(settings, position)
        parts = urlsplit(settings.url)
        if not parts.hostname or not settings.topic:
            raise BridgeError("nats: write nats://HOST:PORT and a subject as the topic, as plant.>")
        self._where = parts.hostname
        self._url = settings.url.removeprefix("nats+") if parts.scheme == "nats+tls" else settings.url
        self._connection: Any = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="oxiseq-nats", daemon=True)
        self._thread.start()
        self._look = self._loop.time() + _IDLE
        self._held: dict[int, Any] = {}
        """Messages that are not confirmed, by their numbers."""
        self._early: dict[int, Any] = {}
        """Those of them that are not handed on yet: they wait for older ones, which a bridge of the group had read."""
        self._owed, self._owed_until = 0, 0.0
        """How many older ones will come again, and until when they do."""
        self._progress: asyncio.Task[None] | None = None
        try:
            self._messages: Any = self._run(self._opened())
        except BaseException:
            self.close()
            raise

    async def _opened(self) -> Any:
        """The messages of the consumer. Raises BridgeError."""
        settings = self._settings
        refusals: list[str] = []

        async def note(error: Exception) -> None:
            refusals.append(str(error))

        try:
            self._connection = await nats.connect(
                self._url, allow_reconnect=False, connect_timeout=_TIMEOUT, name="oxiseq", error_cb=note
            )
        except (errors.Error, OSError, TimeoutError) as error:
            raise BridgeError(f"{self._where}: {(refusals or [str(error)])[-1] or 'does not answer'}") from error
        streams = self._connection.jetstream()
        try:
            stream = await streams.find_stream_name_by_subject(settings.topic)
        except js_errors.NotFoundError:
            raise BridgeError(
                f"{self._where}: no stream of JetStream keeps the subject {settings.topic}: add one (nats stream add)"
            ) from None
        # a group may read several subjects: a consumer has one
        group = f"{_NO_NAME.sub('_', settings.group)}-{digest(settings.topic, size=6)}"
        await self._join(streams, stream, group)
        self._progress = asyncio.get_running_loop().create_task(self._report())
        return await streams.pull_subscribe_bind(durable=group, stream=stream)

    async def _join(self, streams: Any, stream: str, group: str) -> None:
        """The consumer begins where the position says, if it had been there before and is gone, else as `start`
        says."""
        try:
            known = await streams.consumer_info(stream, group)
        except js_errors.NotFoundError:
            await self._create(streams, stream, group)
            return
        if (known.config.ack_wait, known.config.max_ack_pending) != (_ACK_WAIT, 2 * _UNDER_WAY):  # an earlier version's
            config = known.config.evolve(ack_wait=_ACK_WAIT, max_ack_pending=2 * _UNDER_WAY)
            await streams.add_consumer(stream, config)
        self._owed = known.num_ack_pending or 0
        self._owed_until = self._loop.time() + 2 * _ACK_WAIT + 1  # one may be sent to who has gone, once
        if self._last(known.stream_name) is None:
            floor = known.ack_floor.stream_seq if known.ack_floor is not None else 0
            created = (await streams.stream_info(stream)).created.isoformat()
            self._position.save({"stream": stream, "created": created, "last": floor})

    async def _create(self, streams: Any, stream: str, group: str) -> None:
        info = await streams.stream_info(stream)
        created, last = info.created.isoformat(), self._last(stream)
        if last is None:
            last = 0 if self._settings.start == "all" else info.state.last_seq
        elif self._position.value["created"] != created:  # deleted and made again: it counts from 1
            last = 0
        config = api.ConsumerConfig(
            name=group,
            durable_name=group,
            filter_subject=self._settings.topic,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=last + 1,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=_ACK_WAIT,
            max_ack_pending=2 * _UNDER_WAY,
        )
        await streams.add_consumer(stream, config)
        self._position.save({"stream": stream, "created": created, "last": last})

    def _last(self, stream: str) -> int | None:
        value = self._position.value
        return int(value["last"]) if isinstance(value, dict) and value.get("stream") == stream else None

    async def _report(self) -> None:
        """Tell the server again and again what is still at work."""
        while True:
            await asyncio.sleep(_ACK_WAIT / _PROGRESS)
            with suppress(errors.Error, OSError):  # what reads hears of it
                for each in list(self._held.values()):
                    await each.in_progress()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the source's loop. Raises BridgeError for what the library raises."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(3 * _TIMEOUT)
        except TimeoutError:
            raise BridgeError(f"{self._where} does not answer") from None
        except (errors.Error, OSError) as error:
            raise BridgeError(f"{self._where}: {error or type(error).__name__}") from error

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        return [self._message(each) for each in self._run(self._fetched(most, seconds))]

    async def _fetched(self, most: int, seconds: float) -> list[Any]:
        if not self._connection.is_connected:
            raise BridgeError(f"{self._where}: the connection is closed")
        found: list[Any] = []
        with suppress(TimeoutError):  # nothing has come
            found = await self._messages.fetch(max(1, most - len(self._early)), timeout=max(seconds, 0.01))
        if not found and self._loop.time() > self._look:  # of a consumer that is deleted nothing comes, and no error
            await self._messages.consumer_info()
            self._look = self._loop.time() + _IDLE
        for each in found:
            number = each.metadata.sequence.stream
            self._owed -= (each.metadata.num_delivered or 1) > 1 and number not in self._held
            self._held[number] = self._early[number] = each
        if self._owed > 0 and self._loop.time() < self._owed_until:
            return []
        ready = sorted(self._early)[:most]
        return [self._early.pop(number) for number in ready]

    def _message(self, given: Any) -> Message:
        told = given.metadata  # a stream that is deleted and added again counts from 1 again, at another time
        key = f"nats/{digest(told.stream, size=6)}/{told.sequence.stream}/{told.timestamp.isoformat()}"
        return Message(given.data, key, given)

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """See Source."""
        self._run(self._acknowledged(messages))
        last = messages[-1].position.metadata.sequence.stream
        if isinstance(value := self._position.value, dict) and last > value["last"]:
            self._position.save({**value, "last": last}, at_once=False)

    async def _acknowledged(self, messages: Sequence[Message]) -> None:
        for each in messages:
            await each.position.ack()
            self._held.pop(each.position.metadata.sequence.stream, None)
        await self._connection.flush()

    def close(self) -> None:
        """See Source."""
        with suppress(BridgeError):
            if self._connection is not None:
                self._run(self._left())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT)
        self._loop.close()
        self._position.flush()

    async def _left(self) -> None:
        """What is not confirmed may come again at once, in its order."""
        if self._progress is not None:
            self._progress.cancel()
        with suppress(errors.Error, OSError):
            for _, each in sorted(self._held.items()):
                await each.nak()
            await self._connection.flush()
        await self._connection.close()
