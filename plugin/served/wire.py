"""Requests to a served store: sent again where that is safe, answered with a reply or with one of our errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import httpx

from oxiseq.engine.errors import OxiseqError
from oxiseq.journal import ConflictError, CursorError, DamagedBatchError, FullError, UnknownError
from oxiseq.live.errors import BoundError, BusyError

_AGAIN: Final = (429, 502, 503, 504)
"""Statuses after which the same may be tried again."""
_PAUSES: Final = (0.05, 2.0)
"""Seconds between two tries: of the first, and at most."""


class UnreachableError(OxiseqError, ConnectionError):
    """The server does not answer, or has broken off."""


class RefusedError(OxiseqError, PermissionError):
    """The server asks for a (nother) token, or does not allow this."""


class Wire:
    """One server. `patience`: seconds for which a request is tried again, if to send it twice does no harm. Safe for
    many threads."""

    def __init__(self, client: httpx.Client, patience: float) -> None:
        self._client, self._patience = client, patience

    def send(
        self, method: str, *path: str, params: Mapping[str, Any] | None = None, accept: str = "application/json",
        content: bytes | str | None = None, kind: str | None = None, json: Any = None, key: str | None = None,
        again: bool | None = None,
    ) -> httpx.Response:  # fmt: skip
        """The reply to a request for the path of these parts. `kind`: the content's media type; `key`: under which the
        server knows it again; `again`: whether it may be sent twice (default: what HTTP says of the method, and what
        has a key). Raises UnreachableError, RefusedError, UnknownError, ConflictError, CursorError, BusyError,
        FullError, OxiseqError."""
        self._check_open()
        headers = {"accept": accept}
        if kind is not None:
            headers["content-type"] = kind
        if key is not None:
            headers["idempotency-key"] = key
        if again is None:
            again = key is not None or method not in ("POST", "PATCH")
        given = {name: value for name, value in (params or {}).items() if value is not None}
        end = time.monotonic() + (self._patience if again else 0)
        pause = _PAUSES[0]
        while True:
            try:
                reply = self._client.request(
                    method, _path(path), params=given or None, headers=headers, content=content, json=json
                )
            except httpx.TransportError as error:
                if time.monotonic() + pause > end:
                    raise self._unreachable(error) from error
            else:
                if reply.status_code < 400:
                    return reply
                asked = float(reply.headers.get("retry-after", 0))
                if reply.status_code not in _AGAIN or time.monotonic() + max(pause, asked) > end:
                    raise refusal(reply)
                pause = max(pause, asked)
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])

    @contextmanager
    def listening(self, *path: str, params: Mapping[str, Any], patience: float) -> Iterator[httpx.Response]:
        """A reply of server-sent events that is under way; reading it raises httpx.ReadTimeout after `patience`
        seconds of silence. Raises as `send` does."""
        self._check_open()
        headers = {"accept": "text/event-stream"}
        timeout = httpx.Timeout(30.0, read=max(patience, 0.001))
        try:
            with self._client.stream("GET", _path(path), params=params, headers=headers, timeout=timeout) as reply:
                if reply.status_code >= 400:
                    reply.read()
                    raise refusal(reply)
                yield reply
        except httpx.ReadTimeout:
            raise
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.TransportError) -> UnreachableError:
        return UnreachableError(f"{self._client.base_url} does not answer: {error or type(error).__name__}")

    @property
    def closed(self) -> bool:
        """Whether no request can be sent any more."""
        return self._client.is_closed

    def close(self) -> None:
        """No request can be sent any more."""
        self._client.close()

    def _check_open(self) -> None:
        if self.closed:
            raise OxiseqError("the store is closed")


def _path(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def refusal(reply: httpx.Response) -> OxiseqError:
    """The error that a server's problem details (RFC 9457) tell of."""
    try:
        told = reply.json()
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    status = reply.status_code
    text = str(told.get("detail") or told.get("title") or reply.text[:200] or f"status {status}")
    match status, told:
        case 410, {"asked": int(asked), "first": int(first)}:
            return CursorError("they", asked, first)
        case 500, {"first": int(first), "next": int(following)}:
            return DamagedBatchError("a batch", first, following, text)
        case 401 | 403 | 421, _ if told.get("title") != "too many":
            return RefusedError(text)
    kinds: dict[int, type[OxiseqError]] = {403: BoundError, 404: UnknownError, 409: ConflictError, 507: FullError}
    if status in _AGAIN:
        return BusyError(text, status=status)
    return kinds.get(status, OxiseqError)(text)
