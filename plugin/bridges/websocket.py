"""Messages of a WebSocket: nothing tells them apart, so what comes while nobody is connected is lost, and each message
is one of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar, Final

from oxiseq.bridges.source import BridgeError, BridgeSettings, Message, Source, SourcePosition, gather
from oxiseq.engine.extras import needed
from oxiseq.options.addresses import unredirected

if TYPE_CHECKING:
    from websockets import exceptions
    from websockets.sync import client
else:
    client = needed("websockets.sync.client")
    exceptions = needed("websockets.exceptions")

_LARGEST: Final = 16 << 20


class WebSocketSource(Source):
    """ws:// or wss://; `topic` is sent as the first message, where there is one: to subscribe."""

    needs: ClassVar[str] = "websockets"

    def __init__(self, settings: BridgeSettings, position: SourcePosition | None = None) -> None:
        super().__init__(settings, position)
        self._run, self._count = os.urandom(8).hex(), 0
        self._closed: Exception | None = None
        with ExitStack() as opened:
            try:
                connecting = client.connect(
                    settings.url,
                    open_timeout=10,
                    max_size=_LARGEST,
                    max_queue=16,
                    create_connection=unredirected(),
                )
                self._connection = opened.enter_context(connecting)
                if settings.topic:
                    self._connection.send(settings.topic)
            except exceptions.WebSocketException as error:
                told = str(error).replace(settings.url, settings.shown)  # it may have a password
                raise BridgeError(told if settings.shown in told else f"{settings.shown}: {told}") from None
            self._opened = opened.pop_all()

    def read(self, most: int, seconds: float) -> Sequence[Message]:
        """See Source."""
        found = gather(self._next, most, seconds)
        if not found and self._closed is not None:
            raise BridgeError(f"the connection is closed: {self._closed}") from self._closed
        return found

    def _next(self, seconds: float) -> Message:
        try:
            given = self._connection.recv(timeout=seconds)
        except exceptions.ConnectionClosed as error:
            self._closed = error
            raise TimeoutError from None
        self._count += 1
        return Message(given.encode() if isinstance(given, str) else given, f"ws/{self._run}/{self._count}")

    def close(self) -> None:
        """See Source."""
        self._opened.close()
