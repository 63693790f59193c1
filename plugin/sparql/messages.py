"""Requests and responses as values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Final, Protocol, TypeAlias
from urllib.parse import parse_qsl

from werkzeug.http import parse_options_header

from oxiseq.grammar.byte_order import MARK, unmarked
from oxiseq.grammar.records import dataclass
from oxiseq.rights import EVERYTHING, Rights
from oxiseq.sparql.problems import Problem

Headers: TypeAlias = tuple[tuple[str, str], ...]
Parameters: TypeAlias = tuple[tuple[str, str], ...]

MOST_PARAMETERS = 10_000
_BINARY: Final = re.compile("jelly|arrow|parquet|octet-stream", re.IGNORECASE)
"""Media types of bodies that are no texts."""
_SHORT: Final = 256
"""Characters of texts that are remembered when they have been read: a client sends the same again and again."""


class Chunks(Protocol):
    """A body that is made while it is sent: iterate it once, and close it in any case.

    Iterating raises Interrupted when it cannot be completed: the receiver must see that it is broken off.
    """

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request: `path` and `query_string` as they were sent (percent-encoded), `origin` as `http://host`."""

    method: str
    path: str
    query_string: str = ""
    headers: Headers = ()
    body: bytes = b""
    origin: str = "http://localhost"
    gone: Callable[[], bool] = field(default=lambda: False, compare=False, repr=False)
    """Whether the client has left, as far as the server knows."""
    rights: Rights = EVERYTHING
    """The client's rights; a server with tokens sets them."""

    def __post_init__(self) -> None:
        if self.body.startswith(MARK) and not _BINARY.search(self.header("content-type") or ""):
            object.__setattr__(self, "body", unmarked(self.body))

    @property
    def url(self) -> str:
        """The address without the query string: the base of relative IRIs."""
        return self.origin + self.path

    def header(self, name: str) -> str | None:
        """A header's value, several joined by commas; None when it is missing."""
        found = [value for key, value in self.headers if key.lower() == name]
        return ", ".join(found) if found else None

    @property
    def media_type(self) -> str | None:
        """The Content-Type without parameters, in lower case."""
        return self._content_type[0].lower() if self.header("content-type") else None

    @property
    def _content_type(self) -> tuple[str, Mapping[str, str]]:
        given = self.header("content-type") or ""
        return _options(given) if len(given) <= _SHORT else parse_options_header(given)

    @property
    def version(self) -> str:
        """The version of RDF in the Content-Type; empty where it states none."""
        return self._content_type[1].get("version", "")

    def parameters(self) -> Parameters:
        """The query string's names and values in order, repeats too. Raises Problem 400."""
        return form(self.query_string)

    def text(self) -> str:
        """The body as UTF-8 text. Raises Problem 400 (not UTF-8) or 415 (another charset)."""
        charset = self._content_type[1].get("charset", "utf-8")
        if charset.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise Problem(415, "SPARQL is sent as UTF-8", f"charset {charset} is not supported")
        return utf8(self.body)


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response; `body` is complete (bytes) or made while it is sent (Chunks)."""

    status: int
    headers: Headers = ()
    body: bytes | Chunks = b""

    def header(self, name: str) -> str | None:
        """The first header of this name."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    def content(self) -> bytes:
        """The whole body, read to its end. Raises Interrupted."""
        if isinstance(self.body, bytes):
            return self.body
        try:
            return b"".join(self.body)
        finally:
            self.body.close()

    def without_body(self) -> Response:
        """The answer to HEAD."""
        if not isinstance(self.body, bytes):
            self.body.close()
        return Response(self.status, self.headers)


def form(encoded: str | bytes) -> Parameters:
    """Names and values of `application/x-www-form-urlencoded`. Raises Problem 400."""
    text = utf8(encoded) if isinstance(encoded, bytes) else encoded
    try:
        return _parameters(text) if len(text) <= _SHORT else _parameters.__wrapped__(text)
    except ValueError as error:
        raise Problem(400, "malformed parameters", str(error)) from None


@lru_cache(256)
def _parameters(text: str) -> Parameters:
    return tuple(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS))


@lru_cache(256)
def _options(text: str) -> tuple[str, Mapping[str, str]]:
    return parse_options_header(text)


def values(parameters: Iterable[tuple[str, str]], name: str) -> list[str]:
    """All values of one parameter, in order."""
    return [value for key, value in parameters if key == name]


def utf8(raw: bytes) -> str:
    """Raises Problem 400."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "the body is not UTF-8", str(error)) from None
