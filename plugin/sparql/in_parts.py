"""A query sent to another endpoint in parts, and the answers to them as one.

    parts' texts ─▶ sent one after the other ─▶ solutions in JSON, as they come ─▶ one answer in the client's format

No more than one part's text and a few bytes of its answer are in memory. Each part is answered as the endpoint is at
that moment. Blank nodes mean something within one answer only, so solutions that have any are not put together.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Final, TypeAlias, cast

from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, parse_query_results

from oxiseq.engine.extras import needed
from oxiseq.engine.rdf import Guarded
from oxiseq.sparql.evaluation import Sink, counter_of
from oxiseq.sparql.messages import Problem, content_type

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")

_JSON: Final = QueryResultsFormat.JSON
_ENDS: Final = {_JSON: b"]}}", QueryResultsFormat.XML: b"</results></sparql>"}
"""What pyoxigraph writes behind the last solution; the other formats have no end."""
_BETWEEN: Final = {_JSON: b","}
_BLANK: Final = re.compile(rb':\s{0,8}"bnode"')
"""A term's kind; in a text the quotes would have backslashes before them, and a variable's name no colon."""
_OVERLAP: Final = 16
"""Bytes that are searched again with those that follow: a find of `_BLANK` may be cut anywhere."""
_SHOWN: Final = 2000
"""Bytes of another endpoint's message."""
UNREACHED: Final = "the endpoint behind cannot be reached"
LATE: Final = "the endpoint behind takes too long"

Ask: TypeAlias = "Callable[[str], httpx.Response]"
"""Sends a query's text, for JSON; the answer is not read yet. Raises Problem."""


def answer_in_parts(texts: Iterable[str], ask: Ask, format_: QueryResultsFormat, sink: Sink) -> None:
    """The solutions of SELECT queries of the same columns; of ASK queries whether any is true. Raises Problem, and what
    the sink raises."""
    merged = _Merged(format_, sink)
    for text in texts:
        sink.check()
        response = ask(text)
        try:
            if not merged.add(response):
                break
        finally:
            response.close()
    merged.end()


class _Merged:
    """Answers written as one."""

    def __init__(self, format_: QueryResultsFormat, sink: Sink) -> None:
        self._format, self._sink = format_, sink
        self._columns: list[str] | None = None
        self._head = b""
        """The text before the first solution."""
        self._end = _ENDS.get(format_, b"")
        self._truth = False
        self.any = False
        """Whether there is a solution already."""

    def add(self, response: httpx.Response) -> bool:
        """One more; whether others are wanted. Raises Problem."""
        if not response.is_success:
            raise _refused(response)
        try:
            found = parse_query_results(
                cast("IO[bytes]", Guarded(cast("IO[bytes]", _Body(response, self._sink.check)), None)), _JSON
            )
            if isinstance(found, QueryBoolean):
                self._truth = bool(found)
                return not self._truth
            self._begin([variable.value for variable in found.variables])
            part = _Part(self, len(self._head), len(self._end))
            found.serialize(cast("IO[bytes]", part), format=self._format)
        except (SyntaxError, ValueError) as error:
            raise Problem(502, "the endpoint behind gives no SPARQL results", str(error)) from None
        return True

    def _begin(self, columns: list[str]) -> None:
        if self._columns is None:
            self._columns, whole = columns, _written(_solutions(columns), self._format)
            self._head = whole.removesuffix(self._end)
            self._sink.begin(content_type(self._format), counter_of(self._format))
            self._sink.write(self._head)
        elif columns != self._columns:
            raise Problem(
                502,
                "the endpoint behind gives other columns in another part",
                f"{', '.join(columns)} instead of {', '.join(self._columns)}",
            )

    def write(self, data: bytes, *, first: bool) -> None:
        """Solutions of a part, `first`: its first."""
        if first and self.any:
            self._sink.write(_BETWEEN.get(self._format, b""))
        self.any = True
        self._sink.write(data)

    def end(self) -> None:
        """All parts are there."""
        if self._columns is None:
            self._sink.begin(content_type(self._format))
            truth = parse_query_results(json.dumps({"head": {}, "boolean": self._truth}), _JSON)
            self._sink.write(_written(truth, self._format))
        else:
            self._sink.write(self._end)


class _Part:
    """A part's answer in the client's format, as pyoxigraph writes it: without its head and its end."""

    def __init__(self, merged: _Merged, head: int, end: int) -> None:
        self._merged, self._head, self._end = merged, head, end
        self._held = b""
        self._first = True

    def write(self, data: bytes) -> int:
        """Raises what the sink raises."""
        size = len(data)
        skipped = min(self._head, size)
        self._head -= skipped
        self._held += data[skipped:]
        ready = len(self._held) - self._end
        if ready > 0:
            self._merged.write(self._held[:ready], first=self._first)
            self._held, self._first = self._held[ready:], False
        return size

    def flush(self) -> None:
        """Files have it."""


class _Body:
    """A response's body as a file. Raises Problem where it breaks off or has blank nodes."""

    def __init__(self, response: httpx.Response, check: Callable[[], None]) -> None:
        self._chunks, self._check = response.iter_bytes(), check
        self._left = memoryview(b"")
        self._seen = b""

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        if not self._left:
            self._left = memoryview(self._next())
        given = bytes(self._left if size < 0 else self._left[:size])
        self._left = self._left[len(given) :]
        return given

    def _next(self) -> bytes:
        self._check()
        try:
            chunk = next(self._chunks, b"")
        except httpx.TimeoutException as error:
            raise Problem(504, LATE, str(error)) from None
        except httpx.HTTPError as error:
            raise Problem(502, "the endpoint behind broke off", str(error)) from None
        self._seen = self._seen[-_OVERLAP:] + chunk
        if _BLANK.search(self._seen):
            raise Problem(
                501,
                "blank nodes in an answer of several parts",
                "whether two blank nodes are the same is unknown "
                "between answers: filter in the SERVICE block, so that one request is enough, or ask for "
                "IRIs and literals",
            )
        return chunk


def _refused(response: httpx.Response) -> Problem:
    """What the endpoint says instead of an answer."""
    try:
        said = response.read()[:_SHOWN].decode(errors="replace").strip()
    except httpx.HTTPError as error:
        said = str(error)
    status = response.status_code if 400 <= response.status_code < 500 else 502
    return Problem(status, f"the endpoint behind refuses a part of the query ({response.status_code})", said)


def _solutions(columns: Sequence[str]) -> QuerySolutions:
    """None."""
    none = {"head": {"vars": list(columns)}, "results": {"bindings": []}}
    return cast("QuerySolutions", parse_query_results(json.dumps(none), _JSON))


def _written(found: QuerySolutions | QueryBoolean, format_: QueryResultsFormat) -> bytes:
    out = io.BytesIO()
    found.serialize(out, format=format_)
    return out.getvalue()
