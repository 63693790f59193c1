"""Requests to a served store: sent again where that is safe, answered with a reply or with one of our errors."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypedDict
from urllib.parse import quote, urlencode

import httpx

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.extras import installed
from oxiseq.journal import ConflictError, CursorError, DamagedBatchError, FullError, UnknownError
from oxiseq.live.api.operations import NAMED
from oxiseq.live.settings import BoundError, BusyError
from oxiseq.options.addresses import seconds_of
from oxiseq.options.kinds import in_header

_CONNECTING, _ANSWERING = 10.0, 330.0
"""Seconds that a server may take; to answer, a little more than its own time limit."""
_AGAIN: Final = (429, 502, 503, 504)
"""Statuses after which the same may be tried again."""
PAUSES: Final = (0.05, 2.0)
"""Seconds between two tries: of the first, and at most."""
_LONGEST: Final = 8000
"""Characters of a name in an address: servers take no more."""
_TELLING: Final = 0.5
"""Seconds after which a pause is reported."""
_NO_ADDRESS: Final = "is no address of a server: write http://HOST:PORT"
_JSON: Final = "application/json"


class UnreachableError(OxiseqError, ConnectionError):
    """The server does not answer, or has broken off."""


class AnswerError(OxiseqError):
    """The server answers with another refusal; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RefusedError(OxiseqError, PermissionError):
    """The server needs a (different) token, or does not allow this."""


class How(TypedDict, total=False):
    """How a request is sent, see `Wire.send`."""

    accept: str
    content: bytes | str | None
    kind: str | None
    json: Any
    key: str | None
    headers: Mapping[str, str] | None
    again: bool | None
    within: float


NOTHING: Final[How] = {}
ONCE: Final[How] = {"again": False}
"""Whoever asks hears of a failure at once."""


class Wire:
    """One server. `patience`: seconds for which a request is tried again, if sending it twice does no harm; `tell` is
    called then; `sockets`: whether it may take WebSockets. Safe for many threads."""

    def __init__(
        self,
        client: httpx.Client,
        patience: float,
        tell: Callable[[str], object] = lambda _: None,
        *,
        sockets: bool = False,
    ) -> None:
        self._client, self.patience, self.tell, self.sockets = client, patience, tell, sockets
        self._told = ""
        """The last problem that was told, once for all attempts."""

    @property
    def address(self) -> str:
        """Where it is."""
        return str(self._client.base_url).rstrip("/")

    def send(
        self,
        method: str,
        *path: str,
        params: Mapping[str, Any] | None = None,
        accept: str = _JSON,
        content: bytes | str | None = None,
        kind: str | None = None,
        json: Any = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool | None = None,
        within: float = _ANSWERING,
    ) -> httpx.Response:
        """The reply to a request for the path of these parts. `kind`: the content's media type; `key`: under which the
        server knows it again; `headers`: more of them; `again`: whether it may be sent twice (default: what HTTP says
        of the method, and what has a key); `within`: seconds for an answer. Raises UnreachableError, RefusedError,
        UnknownError, ConflictError, CursorError, BusyError, FullError, OxiseqError."""
        self.check_open()
        headers = {"accept": accept, **(headers or {})}
        if kind is not None:
            headers["content-type"] = kind
        if key is not None:
            headers["idempotency-key"] = key
        if again is None:
            again = key is not None or method not in ("POST", "PATCH")
        timeout = httpx.Timeout(_CONNECTING, read=within)
        end = time.monotonic() + (self.patience if again else 0)
        pause = PAUSES[0]
        while True:
            try:
                reply = self._client.request(
                    method,
                    _path(path),
                    params=params or None,
                    headers=headers,
                    content=content,
                    json=json,
                    timeout=timeout,
                )
            except UnicodeEncodeError as error:
                raise OxiseqError("half a character (a lone surrogate) cannot be sent") from error
            except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
                raise UnreachableError(f"{self.address!r} {_NO_ADDRESS}") from error
            except httpx.TransportError as error:
                problem: OxiseqError = self.unreachable(error)
                if time.monotonic() + pause > end:
                    raise problem from error
            else:
                if reply.is_success:
                    self._told = ""
                    if accept == _JSON:
                        self._check_ours(reply)
                    return reply
                problem = self._refusal(reply)
                asked = seconds_of(reply.headers.get("retry-after")) or 0.0
                if reply.status_code not in _AGAIN or time.monotonic() + max(pause, asked) > end:
                    raise problem
                pause = max(pause, asked)
            self.pause(problem, pause)
            pause = min(2 * pause, PAUSES[1])

    def call(self, name: str, how: How = NOTHING, /, **given: Any) -> httpx.Response:
        """The reply to an operation of the table, with its parameters; `how` it is sent, as `send` says, which raises
        as this does."""
        method, path, params = _request(name, given)
        return self.send(method, *path, params=params, **how)

    @contextmanager
    def listening(self, name: str, patience: float, /, **given: Any) -> Iterator[httpx.Response]:
        """A reply of server-sent events that is running; reading it raises httpx.ReadTimeout after `patience`
        seconds of silence. Raises as `send` does."""
        self.check_open()
        headers = {"accept": "text/event-stream"}
        timeout = httpx.Timeout(30.0, read=max(patience, 0.001))
        try:
            method, path, params = _request(name, given)
            with self._client.stream(method, _path(path), params=params, headers=headers, timeout=timeout) as reply:
                if not reply.is_success:
                    reply.read()
                    raise self._refusal(reply)
                yield reply
        except httpx.ReadTimeout:
            raise
        except httpx.TransportError as error:
            raise self.unreachable(error) from error

    def socket(self, name: str, /, **given: str) -> tuple[str, dict[str, Any]]:
        """The address of a WebSocket, and how `websockets.connect` is to open it: as this wire's requests are sent."""
        self.check_open()
        url = self._client.base_url
        place = f"{'wss' if url.scheme == 'https' else 'ws'}://{url.netloc.decode()}{url.path.rstrip('/')}"
        options: dict[str, Any] = {"open_timeout": _CONNECTING}
        if url.scheme == "https":
            options["ssl"] = httpx.create_ssl_context()
        if url.userinfo:  # httpx sends this, too, and before a token
            known = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
            options["additional_headers"] = {"authorization": f"Basic {known}"}
        elif "authorization" in self._client.headers:
            options["additional_headers"] = {"authorization": self._client.headers["authorization"]}
        _, path, params = _request(name, given)
        return f"{place}{_path(path)}?{urlencode(params)}", options

    def pause(self, problem: OxiseqError, seconds: float) -> None:
        """Wait before something is tried again."""
        if seconds >= _TELLING and str(problem) != self._told:
            self._told = str(problem)
            self.tell(f"{problem}; trying again for {self.patience:g} s")
        time.sleep(seconds)

    def refused(self, status: int, body: bytes) -> OxiseqError:
        """The error of a refusal that came over a WebSocket."""
        return self._refusal(httpx.Response(status, content=body))

    def unreachable(self, error: BaseException) -> UnreachableError:
        """The error of a connection that is not to be had, or has broken."""
        reason = str(error) or type(error).__name__
        return UnreachableError(f"no answer from {self.address} ({reason}): is `oxiseq serve` at work there?")

    def _refusal(self, reply: httpx.Response) -> OxiseqError:
        if reply.status_code == 401:
            said = "refuses this token" if "authorization" in self._client.headers else "asks for a token"
            return RefusedError(f"{self.address} {said}: give it as OXISEQ_TOKEN, or as token")
        return refusal(reply, self.address)

    def _check_ours(self, reply: httpx.Response) -> None:
        """Raise UnreachableError where something else answers, a proxy's page for instance: nothing has been done."""
        if reply.content and "json" not in reply.headers.get("content-type", ""):
            raise UnreachableError(f"{self.address} answers, but not as `oxiseq serve` does")

    @property
    def closed(self) -> bool:
        """Whether no request can be sent any more."""
        return self._client.is_closed

    def close(self) -> None:
        """No request can be sent any more."""
        self._client.close()

    def check_open(self) -> None:
        """Raise OxiseqError where it is closed."""
        if self.closed:
            raise OxiseqError("the store is closed")


def _request(name: str, given: dict[str, Any]) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Method and parts of the path of an operation, and the parameters that are none of its path."""
    operation = NAMED[name]
    parts = operation.path[1:].split("/")
    path = tuple(given.pop(part[1:-1]) if part.startswith("{") else part for part in parts)
    return operation.method, path, {each: value for each, value in given.items() if value is not None}


def _path(parts: tuple[str, ...]) -> str:
    for part in parts:
        if part in ("", ".", "..") or len(part) > _LONGEST:  # it would lead elsewhere
            raise UnknownError(f"{part[:60]!r} is no name")
    try:
        return "/" + "/".join(quote(part, safe="") for part in parts)
    except UnicodeEncodeError as error:  # half a character
        raise UnknownError(f"{str(error.object)[:60]!r} is no name") from error


def wire_to(address: str, token: str | None, patience: float, tell: Callable[[str], object] = lambda _: None) -> Wire:
    """A wire to a server elsewhere; nothing is sent yet. Raises UnreachableError for what is no address, RefusedError
    for what is no token."""
    if token is not None and not in_header(token):
        raise RefusedError("the token cannot be sent: it has a space or a line's end around it, or no ASCII inside")
    headers = {"user-agent": "oxiseq"} | ({} if token is None else {"authorization": f"Bearer {token}"})
    try:
        return Wire(httpx.Client(base_url=address, headers=headers), patience, tell, sockets=installed("websockets"))
    except (httpx.InvalidURL, ValueError) as error:
        raise UnreachableError(f"{address!r} {_NO_ADDRESS}") from error


def refusal(reply: httpx.Response, address: str) -> OxiseqError:
    """The error for a server's problem details (RFC 9457)."""
    try:
        told = reply.json()
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    status = reply.status_code
    text = f"{address} answers {status}: {_reason(told) or reply.text[:200].strip() or reply.reason_phrase}"
    if reply.has_redirect_location:
        return UnreachableError(f"{text}: it sends to {reply.headers['location']}; nothing has been done")
    match status, told:
        case 410, {"asked": int(asked), "first": int(first)}:
            return CursorError("they", asked, first)
        case 500, {"first": int(first), "next": int(following)}:
            return DamagedBatchError("a batch", first, following, text)
        case 403 | 421, _ if told.get("title") != "too many":
            return RefusedError(text)
    kinds: dict[int, type[OxiseqError]] = {403: BoundError, 404: UnknownError, 409: ConflictError, 507: FullError}
    if status in _AGAIN:
        return BusyError(text, status=status)
    return kinds[status](text) if status in kinds else AnswerError(text, status)


def _reason(told: Mapping[str, Any]) -> str:
    """Title, detail, place and the first reasons."""
    place = f"line {told['line']}, column {told['column']}" if {"line", "column"} <= set(told) else None
    reasons = told.get("reasons")
    listed = reasons if isinstance(reasons, list) else []
    said = [str(each.get("reason")) for each in listed if isinstance(each, dict)]
    return ": ".join(str(part) for part in (told.get("title"), told.get("detail"), place, *said) if part)
