"""Small pushes, answered between the socket and the HTTP server.

    socket ─▶ Connection ─┬▶ SmallPushes: one plain request: read, put on the journal's list, answered when stored
                          └▶ uvicorn (HTTP) ─▶ Edge: all else, and all that follows it on that connection

An HTTP server makes a task, a dictionary and an object per header of each request, which costs more than all that is
done with one event. A client sends the same head again and again, so here a head is read once. What is read here is
plain: HTTP/1.1, a POST to a stream with a Content-Length, no header that asks for anything of the connection. The
least doubt leaves the bytes to the HTTP server.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from werkzeug.sansio.utils import get_host

from oxiseq.grammar.records import dataclass
from oxiseq.live.api.routes import is_push
from oxiseq.live.small import LARGEST
from oxiseq.mappings.rows import ROWS
from oxiseq.server.app import Doors
from oxiseq.server.connections import LEAVE, Connection
from oxiseq.server.conversion import CONTENT_LENGTH, headers_of
from oxiseq.server.live import LiveApplication
from oxiseq.server.readers import FromThreads
from oxiseq.server.scopes import joined, sent_headers
from oxiseq.sparql import Problem, Request, Response
from oxiseq.sparql.endpoint import problem_response
from oxiseq.sparql.messages import Headers

_BEGIN: Final = b"POST /streams/"
_END: Final = b"\r\n\r\n"
_LONGEST: Final = 4096
"""Bytes of a head beyond which it is left to the HTTP server."""
_ASKED: Final = re.compile(rb"POST (/streams/[!$-;=@-Z_a-z~]+)(?:\?([!$-;=@-Z_a-z~?]*))? HTTP/1\.1")
_FIELD: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t -~\x80-\xff]*)")
_OF_CONNECTION: Final = frozenset(
    ("connection", "content-encoding", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
"""Headers that ask for more than a push."""
_UNENDED: Final = re.compile(rb"[\t -~\x80-\xff]*\r?")
"""A line whose end has not come."""


@dataclass(frozen=True, slots=True)
class Head:
    """A request but for its body, of `length` bytes. `decoded`: the path, decoded; `named`: the headers by their
    names in lower case, several of one name with commas."""

    path: str
    decoded: str
    query: str
    headers: Headers
    named: Mapping[str, str]
    length: int


@lru_cache(256)
def read_head(head: bytes) -> Head | None:
    """The head of a plain small push, without the empty line at its end; None for any other."""
    first, *lines = head.split(b"\r\n")
    asked, fields = _ASKED.fullmatch(first), [_FIELD.fullmatch(line) for line in lines]
    if asked is None or not is_push("POST", path := asked[1].decode()):
        return None
    headers = tuple([(each[1].decode().lower(), each[2].strip().decode("latin-1")) for each in fields if each])
    named = joined(headers)
    if len(headers) < len(fields) or "host" not in named or not _OF_CONNECTION.isdisjoint(named):
        return None
    length = named.get("content-length", "")
    if not (length.isascii() and length.isdecimal() and len(length) <= len(str(LARGEST)) and int(length) <= LARGEST):
        return None
    if named.get("content-type", "").partition(";")[0].strip().lower() in ROWS:
        return None  # a mapping may take longer
    return Head(path, unquote(path), (asked[2] or b"").decode(), headers, named, int(length))


def may_begin(data: bytes) -> bool:
    """Whether a plain head may begin so: the client of any other may wait for its answer already."""
    *lines, last = data.split(b"\r\n")
    if not _UNENDED.fullmatch(last):
        return False
    if not lines:
        return data.startswith(_BEGIN) or _BEGIN.startswith(data)
    return _ASKED.fullmatch(lines[0]) is not None and all(_FIELD.fullmatch(each) for each in lines[1:])


class SmallPushes:
    """Takes them from connections; for the loop's thread."""

    def __init__(self, doors: Doors, live: LiveApplication, from_threads: FromThreads) -> None:
        self._hosts, self._settings, self._live = doors.hosts, doors.settings, live
        self._from_threads = from_threads
        self._scheme = "http" if doors.settings.tls is None else "https"

    def take(self, connection: Connection, data: bytes) -> int:
        """How many bytes of `data` are a small push, which is under way then and ends with `connection.answer`; 0 while
        that is not known; LEAVE: it is something else."""
        end = data.find(_END, 0, _LONGEST)
        if end < 0:
            return 0 if len(data) < _LONGEST and may_begin(data) else LEAVE
        head = read_head(data[:end])
        if head is None or head.length > self._settings.body:
            return LEAVE
        size = end + len(_END) + head.length
        if len(data) < size:
            return 0
        connection.begin()
        connection.work()
        self._begin(connection, head, data[size - head.length : size])
        return size

    def _begin(self, connection: Connection, head: Head, body: bytes) -> None:
        routes = self._live.routes
        try:
            self._hosts.check(head.named["host"])
            rights = self._live.admit("POST", head.decoded, head.named, connection.address)
        except Problem as problem:
            asked = Request("POST", head.path, head.query, head.headers)
            self._answer(connection, head, problem_response(problem, asked))
            return
        asked = Request(
            "POST",
            head.path,
            head.query,
            head.headers,
            body,
            _origin(self._scheme, head.named["host"]),
            lambda: connection.gone,
            rights,
        )
        pushing = routes.begin_push(asked)
        if isinstance(pushing, Response):
            self._answer(connection, head, pushing)
            return

        def end() -> None:
            self._answer(connection, head, routes.end_push(asked, pushing, under_way.result))

        under_way = routes.service.journal.log.submit(pushing.append, partial(self._from_threads.call, end))

    def _answer(self, connection: Connection, head: Head, response: Response) -> None:
        body = response.content()
        fields = _fields(response.status, response.headers, head.named.get("origin"), self._settings.cors)
        date = _date(int(time.time()))
        connection.answer(b"%bdate: %b\r\ncontent-length: %d\r\n\r\n%b" % (fields, date, len(body), body))


@lru_cache(256)
def _fields(status: int, headers: Headers, origin: str | None, cors: tuple[str, ...]) -> bytes:
    """The first line of an answer, and its headers but for those that each answer has of its own."""
    made = [each for each in headers_of(Response(status, headers)) if each[0] != CONTENT_LENGTH]
    sent = sent_headers(made, {} if origin is None else {"origin": origin}, cors)
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return first + b"".join([b"%b: %b\r\n" % (name.lower(), value) for name, value in sent])


@lru_cache(1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


@lru_cache(256)
def _origin(scheme: str, host: str) -> str:
    return f"{scheme}://{get_host(scheme, host)}"
