"""Bodies of requests, read by the loop before anything else is done: a slow client holds no thread."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import IO, Any, Final

from oxiseq.sparql import Response

Receive = Callable[[], Awaitable[dict[str, Any]]]
"""ASGI's."""
_IN_MEMORY: Final = 512 << 10
"""Bytes beyond which a body is in a file until a thread reads it."""
_SLACK: Final = 1 << 20
_PIECE: Final = 1 << 20


class GoneError(Exception):
    """The client has left before its request was whole."""


class TooLargeError(Exception):
    """A body is so much too large that what is left of it is not even read."""


class Body:
    """What has come of a body. One larger than `limit` is not kept, but read to its end where that is not far: beyond
    `most` bytes."""

    def __init__(self, limit: int, most: int) -> None:
        self._limit, self._most = limit, most
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None
        self.size = 0
        self._kept = 0

    @classmethod
    async def read(cls, receive: Receive, limit: int, *, keep: bool = True) -> Body:
        """All of it; without `keep` it is read only so that the client, which sends it, comes to read the answer.
        Raises GoneError, TooLargeError."""
        body, more = cls(limit if keep else 0, 2 * limit + _SLACK), True
        try:
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise GoneError
                more = bool(message.get("more_body", False))
                body._add(message.get("body", b""))
        except BaseException:
            body.close()
            raise
        return body

    def _add(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._most:
            raise TooLargeError
        if self._kept > self._limit:
            return  # that it is too large is known
        self._kept += len(data)
        if self._file is None and self._kept > _IN_MEMORY:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
            self._file.writelines(self._parts)
            self._parts = []
        if self._file is None:
            self._parts.append(data)
        else:
            self._file.write(data)

    def content(self) -> bytes:
        """All that is kept: more than `limit` bytes where it is too large."""
        if self._file is None:
            return b"".join(self._parts)
        self._file.seek(0)
        return self._file.read()

    def again(self) -> Receive:
        """ASGI's `receive` for who reads it now."""
        if self._file is not None:
            self._file.seek(0)
        left = self._kept

        async def receive() -> dict[str, Any]:
            nonlocal left
            data = b"".join(self._parts) if self._file is None else self._file.read(_PIECE)
            left -= len(data)
            return {"type": "http.request", "body": data, "more_body": bool(data) and left > 0}

        return receive

    def close(self) -> None:
        """Release it."""
        if self._file is not None:
            self._file.close()


async def refused(response: Response, headers: Mapping[str, str], receive: Receive, limit: int) -> Response:
    """The answer to a request whose body has not been read. A client that sends it without asking first would not see
    the answer if the connection were closed meanwhile. Raises GoneError, TooLargeError."""
    if "expect" in headers:  # whether it is sent nobody knows: what comes next may be of this body or not
        return replace(response, headers=(*response.headers, ("connection", "close")))
    (await Body.read(receive, limit, keep=False)).close()
    return response
