"""Messages that a WebSocket sends. It has no confirmations: what is sent while nobody listens is lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from oxiseq.bridges.settings import BridgeError, BridgeSettings
from oxiseq.bridges.source import Message
from oxiseq.engine.extras import needed
from oxiseq.options.addresses import unredirected

if TYPE_CHECKING:
    from websockets import exceptions
    from websockets.sync import client
else:
    client = needed("websockets.sync.client")
    exceptions = needed("websockets.exceptions")

_LARGEST: Final = 16 << 20


class WebSocket:
    """ws:// or wss://; `topic` is sent as the first message, where there is one: to subscribe."""

    def __init__(self, settings: BridgeSettings) -> None:
        self._run, self._count = os.urandom(8).hex(), 0
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
        found: list[Message] = []
        try:
            while len(found) < most:
                given = self._connection.recv(timeout=0 if found else seconds)
                self._count += 1
                body = given.encode() if isinstance(given, str) else given
                found.append(Message(body, f"ws/{self._run}/{self._count}"))
        except TimeoutError:
            pass
        except exceptions.ConnectionClosed as error:
            if not found:  # else next time
                raise BridgeError(f"the connection is closed: {error}") from error
        return found

    def confirm(self, messages: Sequence[Message]) -> None:
        """Nobody to acknowledge to."""

    def close(self) -> None:
        """See Source."""
        self._opened.close()
