"""Messages of a stream of NATS JetStream, read by a durable consumer: what is not acknowledged is delivered again.

The client library is asynchronous: its loop runs in a thread of the source, so that the server's pings are answered
while messages wait to be durable here.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from oxiseq.bridges.settings import BridgeError, BridgeSettings
from oxiseq.bridges.source import Message
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
_ACK_WAIT: Final = 300.0
"""Seconds after which the server delivers a message again: the intake may be busy for some time."""
_IDLE: Final = 5.0
"""Seconds without a message after which the consumer is looked for."""
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
T = TypeVar("T")


class NatsSource:
    """nats://HOST:PORT, or nats+tls://; `topic` is a subject, as plant.>, of which a stream of JetStream keeps the
    messages. A message's key is the stream, its number and its time there."""

    def __init__(self, settings: BridgeSettings) -> None:
        parts = urlsplit(settings.url)
        if not parts.hostname or not settings.topic:
            raise BridgeError("nats: write nats://HOST:PORT and a subject as the topic, as plant.>")
        self._where, self._settings = parts.hostname, settings
        self._url = settings.url.removeprefix("nats+") if parts.scheme == "nats+tls" else settings.url
        self._connection: Any = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="oxiseq-nats", daemon=True)
        self._thread.start()
        self._look = self._loop.time() + _IDLE
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
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.ALL if settings.start == "all" else api.DeliverPolicy.NEW,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=_ACK_WAIT,
            max_ack_pending=2 * _UNDER_WAY,
        )
        group = f"{_NO_NAME.sub('_', settings.group)}-{_digest(settings.topic)}"
        return await streams.pull_subscribe(settings.topic, durable=group, stream=stream, config=config)

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
        with suppress(errors.TimeoutError):  # nothing has come
            found: list[Any] = await self._messages.fetch(most, timeout=max(seconds, 0.01))
            return found
        if self._loop.time() > self._look:  # of a consumer that somebody has deleted nothing comes, and no error
            await self._messages.consumer_info()
            self._look = self._loop.time() + _IDLE
        return []

    def _message(self, given: Any) -> Message:
        told = given.metadata  # a stream that is deleted and added again counts from 1 again, at another time
        key = f"nats/{_digest(told.stream)}/{told.sequence.stream}/{told.timestamp.isoformat()}"
        return Message(given.data, key, given)

    def confirm(self, messages: Sequence[Message]) -> None:
        """See Source."""
        self._run(self._confirmed(messages))

    async def _confirmed(self, messages: Sequence[Message]) -> None:
        for each in messages:
            await each.position.ack()
        await self._connection.flush()

    def close(self) -> None:
        """See Source."""
        with suppress(BridgeError):
            if self._connection is not None:
                self._run(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT)
        self._loop.close()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
