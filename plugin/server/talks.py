"""What carries a long push: one request, whose body is read while the answer is sent; or a WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from oxiseq.server.bodies import GoneError, Receive
from oxiseq.server.connections import Connection
from oxiseq.server.conversion import headers_of
from oxiseq.server.readers import Send
from oxiseq.sparql import Problem, Response

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
