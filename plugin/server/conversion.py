"""Requests and responses between werkzeug, ASGI and our own terms."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from gzip import BadGzipFile
from io import BytesIO
from typing import IO, Any, Final, Protocol
from urllib.parse import quote, urlsplit

import flask
import werkzeug
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException

from oxiseq.engine.events.gzip_members import inflated
from oxiseq.rights import EVERYTHING, Rights
from oxiseq.sparql import Interrupted, Problem, Request, Response
from oxiseq.sparql.endpoint import problem_response

# --- bodies ----------------------------------------------------------------------------------------------

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


# --- werkzeug's ------------------------------------------------------------------------------------------

_GZIP: Final = 16 + zlib.MAX_WBITS
_LEAST_TO_ZIP: Final = 1024
CONTENT_LENGTH: Final = "Content-Length"
GONE: Final = "oxiseq.client_gone"
"""Key in the WSGI environment of the function that says whether the client has left."""
MOST_MEMBERS: Final = 10_000
"""Of a gzip body: more than programs that pack in blocks make of the largest one."""


def _never() -> bool:
    return False


def request_of(request: werkzeug.Request, limit: int, rights: Rights = EVERYTHING) -> Request:
    """The request that Flask has at hand, its body read and unpacked. Raises Problem 413, 415 or 400."""
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    headers = tuple((name.lower(), value) for name, value in request.headers.items())
    coding = request.headers.get("Content-Encoding", "")
    return Request(
        method=request.method,
        path=_sent_path(request),
        query_string=request.environ.get("QUERY_STRING", ""),
        headers=headers,
        body=unpacked(request.stream.read(limit + 1), coding, limit),
        origin=f"{request.scheme}://{request.host}",
        gone=request.environ.get(GONE, _never),
        rights=rights,
    )


def _sent_path(request: werkzeug.Request) -> str:
    """The path as it was sent: WSGI's own is decoded, which loses %2F; servers add the original."""
    sent = request.environ.get("REQUEST_URI") or request.environ.get("RAW_URI")
    if not sent:
        return quote(request.path)
    return sent.partition("?")[0] if sent.startswith("/") else urlsplit(sent).path


def _too_large(limit: int) -> Problem:
    return Problem(413, "the body is too large", f"at most {limit} bytes are taken")


def unpacked(raw: bytes, coding: str, limit: int) -> bytes:
    """A body as it was sent, with this Content-Encoding: gzip of one member or several is hardly unpacked beyond the
    limit. Raises Problem 413, 415 or 400."""
    if len(raw) > limit:
        raise _too_large(limit)
    coding = coding.strip().lower()
    if coding in ("identity", ""):
        return raw
    if coding not in ("gzip", "x-gzip"):
        raise Problem(415, "unknown Content-Encoding", f"{coding}; known: gzip", headers=(("Accept-Encoding", "gzip"),))
    parts: list[bytes] = []
    left = limit
    try:
        for part in inflated(BytesIO(raw).read, MOST_MEMBERS):
            left -= len(part)
            if left < 0:
                raise _too_large(limit)
            parts.append(part)
    except EOFError:
        raise Problem(400, "malformed gzip", "it is cut off") from None
    except (BadGzipFile, zlib.error) as error:
        raise Problem(400, "malformed gzip", str(error)) from None
    return b"".join(parts)


def response_to(response: Response, request: werkzeug.Request) -> flask.Response:
    """A response for Flask, packed if the client takes that."""
    body: bytes | Iterator[bytes]
    if isinstance(response.body, bytes):
        body = response.body
    elif request.environ.get("SERVER_PROTOCOL") == "HTTP/1.0" and not _live(response):
        # no chunks: what is cut would look complete
        try:
            body = response.content()
        except Interrupted as error:
            return flask.Response(f"{error}\n", 503, content_type="text/plain; charset=utf-8")
    else:
        body = _Sent(response, request.environ.get(GONE, _never))
    headers = headers_of(response)
    if response.header("content-encoding") is None and not _live(response) and _worth(body, request):
        headers = [(name, value) for name, value in headers if name != CONTENT_LENGTH]  # that of an upstream's
        headers.append(("Content-Encoding", "gzip"))
        body = _packed(body) if isinstance(body, bytes) else _PackedSent(body)
    made = flask.Response(body, response.status, headers, direct_passthrough=True)
    if response.header("content-type") is None:
        del made.headers["Content-Type"]  # Flask's own guess
    return made


def headers_of(response: Response) -> list[tuple[str, str]]:
    """The headers of a response as it is sent."""
    vary = [("Vary", "Accept, Accept-Encoding")] if response.status != 204 else []
    return [(name.title(), value) for name, value in response.headers] + vary


def _live(response: Response) -> bool:
    """Whether a body has no end, and each piece of it is to be sent at once."""
    return response.header("content-type") == "text/event-stream"


def _worth(body: bytes | Iterator[bytes], request: werkzeug.Request) -> bool:
    if request.method == "HEAD" or "Accept-Encoding" not in request.headers:
        return False
    if request.accept_encodings.quality("gzip") <= 0:
        return False
    return not isinstance(body, bytes) or len(body) >= _LEAST_TO_ZIP


def _packed(body: bytes) -> bytes:
    packer = zlib.compressobj(6, wbits=_GZIP)
    return packer.compress(body) + packer.flush()


class _Sent:
    """The pieces of a body; the server closes it in any case (PEP 3333)."""

    def __init__(self, response: Response, gone: Callable[[], bool]) -> None:
        assert not isinstance(response.body, bytes)
        self._body, self._gone = response.body, gone
        self._pieces = iter(response.body)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._gone():
            raise StopIteration
        return next(self._pieces)

    def close(self) -> None:
        """Stops the work behind."""
        self._body.close()


class _PackedSent:
    """The same, packed; broken off, it lacks gzip's end too."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._packer = zlib.compressobj(6, wbits=_GZIP)
        self._done = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while not self._done:
            try:
                packed = self._packer.compress(next(self._pieces))
            except StopIteration:
                self._done = True
                packed = self._packer.flush()
            if packed:
                return packed
        raise StopIteration

    def close(self) -> None:
        """Stops the work behind."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()


# --- refusals --------------------------------------------------------------------------------------------


def refusal(problem: Problem, request: werkzeug.Request) -> flask.Response:
    """In the form that the client accepts."""
    accept = (("accept", request.headers.get("Accept", "")),)
    asked = Request(request.method, request.path, headers=accept)
    return response_to(problem_response(problem, asked), request)


def as_problem(error: HTTPException) -> Problem:
    """The framework's own refusals (404, 405...) and failures of ours in its form."""
    headers = tuple(
        (name, value) for name, value in error.get_headers() if name.lower() not in ("content-type", "content-length")
    )
    return Problem(error.code or 500, error.name.lower(), error.description or "", headers=headers)


ANY: Final = "*"


# --- origins ---------------------------------------------------------------------------------------------


class Named(Protocol):
    """Headers of a request: a framework's, or a dictionary with names in lower case."""

    def get(self, name: str, /) -> str | None:
        """The value of the one of this name in lower case."""


def named(origin: str, origins: tuple[str, ...]) -> bool:
    """Whether it is one of them itself."""
    return origin != ANY and origin.lower() in {each.lower().rstrip("/") for each in origins}


def preflight(request: werkzeug.Request, origins: tuple[str, ...]) -> flask.Response:
    """The answer to OPTIONS: the request is allowed to pages of allowed origins."""
    response = flask.Response(status=204)
    if not _may_ask(request.headers, origins):
        return response
    for asked, allowed in (("Method", "Methods"), ("Headers", "Headers")):
        value = request.headers.get(f"Access-Control-Request-{asked}")
        if value is not None:
            response.headers[f"Access-Control-Allow-{allowed}"] = value
    response.headers["Access-Control-Max-Age"] = "600"
    return response


def allow_origin(asked: Named, headers: Headers, origins: tuple[str, ...]) -> None:
    """The page may read the response with these headers. Tokens are sent by the page itself, never by the browser."""
    if ANY not in origins:
        headers.add("Vary", "Origin")
    origin = asked.get("origin")
    if origin is not None and _may_ask(asked, origins):
        headers["Access-Control-Allow-Origin"] = ANY if ANY in origins else origin
        headers["Access-Control-Expose-Headers"] = (
            "Link, Location, Oxiseq-Last-Id, Oxiseq-Next-Offset, Retry-After, WWW-Authenticate"
        )


def _may_ask(asked: Named, origins: tuple[str, ...]) -> bool:
    return ANY in origins or named(asked.get("origin") or "", origins)


# --- ASGI's ----------------------------------------------------------------------------------------------

Scope = dict[str, Any]
"""ASGI's."""


def address_in(scope: Scope) -> str:
    """Path and query as they were sent."""
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def request_in(scope: Scope) -> partial[Request]:
    """The request but for its body, and what is known when that has come."""
    headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return partial(Request, scope["method"], path, query, headers)


def headers_in(scope: Scope) -> dict[str, str]:
    """By their names in lower case; of several of a name all, with commas."""
    return joined([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names; of several of a name all, with commas."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def client_in(scope: Scope) -> str | None:
    """The client's address."""
    return scope["client"][0] if scope["client"] else None


def sent_headers(
    headers: list[tuple[str, str]], asked: Mapping[str, str], cors: tuple[str, ...]
) -> list[tuple[bytes, bytes]]:
    """Headers of an answer as they are sent, with those that pages from elsewhere need."""
    if cors:
        shared = Headers(headers)
        allow_origin(asked, shared, cors)
        headers = list(shared)
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
