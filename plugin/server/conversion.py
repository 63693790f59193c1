"""WSGI requests to ours, and our responses back; gzip both ways."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from gzip import BadGzipFile
from io import BytesIO
from typing import Final
from urllib.parse import quote, urlsplit

import flask
import werkzeug

from oxiseq.engine.events.gzip_members import inflated
from oxiseq.rights import EVERYTHING, Rights
from oxiseq.sparql import Interrupted, Problem, Request, Response

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
