"""Connections of WebSockets that go where they are told: a redirect, which may lead to any host, is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    from websockets import exceptions
    from websockets.sync import client
else:
    client = needed("websockets.sync.client")
    exceptions = needed("websockets.exceptions")


@cache
def unredirected() -> type[client.ClientConnection]:
    """For `create_connection=`; it raises InvalidHandshake for a redirect. Needs websockets when it is called."""

    class Unredirected(client.ClientConnection):
        def handshake(self, *args: Any, **named: Any) -> None:
            try:
                super().handshake(*args, **named)
            except exceptions.InvalidStatus as error:
                if error.response.status_code not in range(300, 400):
                    raise
                told = f"{error}: redirects are not followed, give the address that it leads to"
                raise exceptions.InvalidHandshake(told) from None

    return Unredirected
