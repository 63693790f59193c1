"""A server that is somewhere else: requests, what it refuses, and events as they come.

    oxiseq queries, push, watch ─▶ **Server** ─▶ HTTP ─▶ oxiseq serve
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import click

from oxiseq.engine.extras import needed
from oxiseq.grammar.errors import OxiseqError

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")

_CONNECT: Final = 10.0
_ANSWER: Final = 300.0
"""Seconds that an answer may take; a push waits for the disk and for slow queries."""
_SILENCE: Final = 60.0
"""Seconds without a word after which a live reader takes the connection for dead: the server sends comments."""
_PATIENCE: Final = 60.0
"""Seconds for which a request that may be repeated is tried."""
_PAUSES: Final = (0.5, 1, 2, 4, 8, 15)
_BUSY: Final = (429, 503)

F = TypeVar("F", bound=Callable[..., Any])


class RefusedError(OxiseqError):
    """The server says no: `status`, and in `str()` its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class UnreachableError(OxiseqError):
    """There is no answer."""


@dataclass(frozen=True, slots=True)
class Told:
    """A server-sent event; `id` None: it has none."""

    kind: str
    data: str
    id: str | None


class Server:
    """`url`: where it listens. Requests raise UnreachableError, and RefusedError for a status of 400 or more."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"user-agent": "oxiseq"} | ({} if token is None else {"authorization": f"Bearer {token}"})
        self._token = token
        self._client = httpx.Client(headers=headers, timeout=httpx.Timeout(_ANSWER, connect=_CONNECT))

    def ask(self, method: str, *path: str, **sent: Any) -> Any:
        """One request, its JSON answer (None: it has none). `path`: segments, as they are."""
        try:
            answer = self._client.request(method, self._address(path), **sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error
        self._check(answer)
        return answer.json() if answer.content else None

    def insist(self, method: str, *path: str, tell: Callable[[str], object], **sent: Any) -> Any:
        """A request that may be made twice: again while there is no answer, or the server has too much to do."""
        end = time.monotonic() + _PATIENCE
        for pause in _pauses():
            try:
                return self.ask(method, *path, **sent)
            except UnreachableError as error:
                problem: OxiseqError = error
            except RefusedError as error:
                if error.status not in _BUSY:
                    raise
                problem = error
            if time.monotonic() + pause > end:
                raise problem
            tell(f"{problem}; again in {pause:g} s")
            time.sleep(pause)
        raise AssertionError("pauses do not end")

    def listen(self, *path: str, since: str | None) -> Iterator[Told]:
        """Server-sent events behind the id `since`; ends when the connection does. Raises as `ask`."""
        headers = {"accept": "text/event-stream"} | ({} if since is None else {"last-event-id": since})
        limits = httpx.Timeout(_SILENCE, connect=_CONNECT)
        try:
            with self._client.stream("GET", self._address(path), headers=headers, timeout=limits) as answer:
                if answer.status_code >= 400:
                    answer.read()
                self._check(answer)
                yield from _events(answer.iter_lines())
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        """Let its connections go."""
        self._client.close()

    def _address(self, path: tuple[str, ...]) -> str:
        return "/".join([self.url, *(quote(part, safe="") for part in path)])

    def _unreachable(self, error: Exception) -> UnreachableError:
        if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
            return UnreachableError(f"{self.url!r} is no address of a server: write http://HOST:PORT")
        reason = str(error) or type(error).__name__
        return UnreachableError(f"no answer from {self.url} ({reason}): is `oxiseq serve` at work there?")

    def _check(self, answer: httpx.Response) -> None:
        if answer.status_code < 400:
            return
        if answer.status_code == 401:
            said = "refuses this token" if self._token else "asks for a token"
            raise RefusedError(401, f"{self.url} {said}: give it as OXISEQ_TOKEN, or by --token")
        raise RefusedError(answer.status_code, f"{self.url} answers {answer.status_code}: {_reason(answer)}")


def _reason(answer: httpx.Response) -> str:
    """What problem details say, else the body's beginning."""
    try:
        told = answer.json()
        parts = [str(told[name]) for name in ("title", "detail") if told.get(name)]
        place = f"line {told['line']}, column {told['column']}" if {"line", "column"} <= set(told) else ""
        reasons = [str(each.get("reason", "")) for each in told.get("reasons", ())]
        return ": ".join([*parts, *filter(None, [place]), *reasons]) or answer.reason_phrase
    except (ValueError, AttributeError, TypeError):  # no JSON, or another object than problem details are
        return answer.text[:200].strip() or answer.reason_phrase


def _events(lines: Iterator[str]) -> Iterator[Told]:
    """By the standard's rules: an event ends with an empty line, a line that begins with a colon is a comment."""
    kind, data, at = "message", list[str](), None
    for line in lines:
        if not line:
            if data:
                yield Told(kind, "\n".join(data), at)
            kind, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            at = value


def _pauses() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]


def pause(turn: int) -> float:
    """Seconds to wait before trying for the n-th time, from 0 on."""
    return _PAUSES[min(turn, len(_PAUSES) - 1)]


def at_server(command: F) -> F:
    """The options `--url` and `--token`: the command is called with an open `server`."""

    @click.option("--url", metavar="URL", envvar="OXISEQ_URL", default="http://127.0.0.1:7878", show_default=True,
                  show_envvar=True, help="Where the server is.")
    @click.option("--token", metavar="TOKEN", envvar="OXISEQ_TOKEN", show_envvar=True,
                  help="What it asks for; better not on the command line.")
    @wraps(command)
    def opened(*given: Any, url: str, token: str | None, **more: Any) -> Any:
        server = Server(url, token)
        try:
            return command(*given, server=server, **more)
        finally:
            server.close()

    return opened  # type: ignore[return-value]  # with two parameters instead of one
