"""Requests and responses as values.

What goes wrong, as exceptions and as responses.

Exception
├── Problem        refused before anything was sent: a status, RFC 9457 problem details
└── Interrupted    broken off after the status was sent: the connection must be cut

Formats and which of them a client wants.

Quality values and wildcards are werkzeug's business; here are the names, all that pyoxigraph writes or reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Final, Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from pyoxigraph import NamedNode, QueryResultsFormat, RdfFormat
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import dump_options_header, parse_accept_header, parse_options_header

from oxiseq.api.store import SparqlError
from oxiseq.engine.events.messages.announced import VERSION, is_label
from oxiseq.grammar.byte_order import MARK, unmarked
from oxiseq.grammar.over_sparql import refusal
from oxiseq.grammar.records import dataclass
from oxiseq.rights import EVERYTHING, DeniedError, Rights

# --- problems --------------------------------------------------------------------------------------------

MALFORMED: Final = "malformed SPARQL"
TOKEN_NEEDED: Final = "a token is needed"


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column in the text that was sent, both counted from 1."""

    line: int
    column: int


class Problem(Exception):
    """A request that is not answered: status, short title, the store's message, its place in the text.

    `more`: further members of the problem details. `shown`: the detail for people, where there is more room.
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        place: Place | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        more: Mapping[str, object] | None = None,
        shown: str = "",
    ) -> None:
        super().__init__(status, title, detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.place = place
        self.headers = headers
        self.more = dict(more or {})
        self.shown = shown or detail

    def as_json(self) -> bytes:
        """`application/problem+json` (RFC 9457)."""
        members: dict[str, object] = {"type": "about:blank", "title": self.title, "status": self.status}
        if self.detail:
            members["detail"] = self.detail
        if self.place is not None:
            members |= {"line": self.place.line, "column": self.place.column}
        members |= self.more
        return json.dumps(members, ensure_ascii=True).encode() + b"\n"

    def as_text(self) -> bytes:
        """For people: `title: detail`."""
        text = f"{self.title}: {self.shown}\n" if self.shown else f"{self.title}\n"
        return text.encode(errors="backslashreplace")


class Interrupted(Exception):
    """An answer that cannot be completed; `str()` says why."""


def challenge(error: str = "") -> tuple[str, str]:
    """The header of a 401 or 403 (RFC 6750, 3)."""
    return "WWW-Authenticate", 'Bearer realm="oxiseq"' + (f', error="{error}"' if error else "")


def denied(error: DeniedError) -> Problem:
    """A right that is lacking: 401 to who brought no token, else 403."""
    if error.token is None:
        return Problem(401, TOKEN_NEEDED, str(error), headers=(challenge(),))
    return Problem(403, "the token lacks a right", str(error), headers=(challenge("insufficient_scope"),))


def syntax_problem(title: str, error: SyntaxError) -> Problem:
    """pyoxigraph's error of RDF."""
    place = None if error.lineno is None else Place(error.lineno, error.offset or 1)
    return Problem(400, title, str(error.msg or error), place)


def sparql_problem(text: str, error: SyntaxError, *, update: bool) -> Problem:
    """The store's refusal of a SPARQL text, in the form of our own languages' errors."""
    told = error if isinstance(error, SparqlError) else refusal(text, error, "update" if update else "query")
    detail = told.message
    for name, words in (("expected", told.expected), ("hint", told.hint)):
        detail += f"; {name}: {words}" if words else ""
    value = told.to_json()
    more = {name: value[name] for name in ("code", "message", "expected", "hint", "start", "end")}
    return Problem(400, MALFORMED, detail, Place(told.line, told.column), more=more, shown=str(told))


def store_problem(error: Exception) -> Problem:
    """A failure while the store evaluates or writes: the request's fault where Oxigraph's words say so."""
    for words, status, title, hint in _AT_FAULT:
        if (found := words.search(str(error))) is not None:
            return Problem(status, title, hint.format(*found.groups()))
    return Problem(500, "the store cannot answer", str(error))


_AT_FAULT: Final = (
    (
        re.compile("custom (?:aggregate )?function (<.*>) is not supported"),
        400,
        "unknown function",
        "there is no function {0}: those of SPARQL 1.1, casts to xsd: types and GeoSPARQL's are known",
    ),
    (
        re.compile("graph (<.*>) does not exist"),
        404,
        "no such graph",
        "there is no graph {0}: with SILENT (as in DROP SILENT GRAPH {0}) that is no error",
    ),
    (
        re.compile("graph (<.*>) already exists"),
        409,
        "the graph exists",
        "there is a graph {0}: with SILENT (CREATE SILENT GRAPH {0}) that is no error",
    ),
    (
        re.compile("JSON-LD does not support RDF 1.2"),
        406,
        "not acceptable",
        "JSON-LD cannot write triple terms: accept text/turtle, application/n-triples or another type",
    ),
)
"""What Oxigraph says of requests that cannot be answered: status, title and what to do."""


# --- messages --------------------------------------------------------------------------------------------

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


# --- media -----------------------------------------------------------------------------------------------

_Format = TypeVar("_Format")

# the first name of a format is the one to answer with; earlier formats win when the client does not care
RESULTS: Mapping[str, QueryResultsFormat] = {
    "application/sparql-results+json": QueryResultsFormat.JSON,
    "application/json": QueryResultsFormat.JSON,
    "text/json": QueryResultsFormat.JSON,
    "application/sparql-results+xml": QueryResultsFormat.XML,
    "application/xml": QueryResultsFormat.XML,
    "text/xml": QueryResultsFormat.XML,
    "text/csv": QueryResultsFormat.CSV,
    "text/tab-separated-values": QueryResultsFormat.TSV,
    "text/tsv": QueryResultsFormat.TSV,
}
_QUADS: Mapping[str, RdfFormat] = {
    "application/n-quads": RdfFormat.N_QUADS,
    "text/x-nquads": RdfFormat.N_QUADS,
    "text/nquads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
    "application/x-trig": RdfFormat.TRIG,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/json": RdfFormat.JSON_LD,
    'application/ld+json; profile="http://www.w3.org/ns/json-ld#streaming"': RdfFormat.STREAMING_JSON_LD,
}
_TRIPLES: Mapping[str, RdfFormat] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/turtle": RdfFormat.TURTLE,
    "application/x-turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "text/plain": RdfFormat.N_TRIPLES,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/xml": RdfFormat.RDF_XML,
    "text/xml": RdfFormat.RDF_XML,
    "text/n3": RdfFormat.N3,
}
GRAPHS: Mapping[str, RdfFormat] = {**_TRIPLES, **_QUADS}
DATASETS: Mapping[str, RdfFormat] = _QUADS
PROBLEMS: Mapping[str, bool] = {
    "application/problem+json": True,
    "application/json": True,
    "text/plain": False,
    "text/html": False,
}


def wanted(accept: str | None, offers: Mapping[str, _Format]) -> _Format:
    """The offer that an Accept header likes best; the first without a header. Raises Problem 406."""
    found = _best(accept, offers)
    if found is None:
        raise Problem(406, "no acceptable format", f"offered: {', '.join(offers)}")
    return found


def _best(accept: str | None, offers: Mapping[str, _Format]) -> _Format | None:
    if accept is None or not accept.strip():
        return next(iter(offers.values()))
    items = [(_plain(item, offers), quality) for item, quality in parse_accept_header(accept, MIMEAccept)]
    best = MIMEAccept(items).best_match(offers)
    return offers[best] if best is not None else None


def wants_json_problem(accept: str | None) -> bool:
    """Problem JSON unless the client prefers text."""
    found = _best(accept, PROBLEMS)
    return True if found is None else found


def _plain(item: str, offers: Container[str] = ()) -> str:
    """Without a charset, for everything is UTF-8; JSON-LD's profile is kept, and the version of RDF Messages where they
    are offered."""
    name, options = parse_options_header(item)
    if is_label(options.get("version", "")) and (messages := with_messages(name)) in offers:
        return messages
    if options.get("profile") == "http://www.w3.org/ns/json-ld#streaming":
        return dump_options_header(name, {"profile": options["profile"]})
    return name


def with_messages(media_type: str) -> str:
    """The media type of RDF Messages in a format."""
    return dump_options_header(media_type, {"version": VERSION})


def content_type(format_: QueryResultsFormat | RdfFormat) -> str:
    """The Content-Type of a format; text formats say that they are UTF-8."""
    name = format_.media_type
    return f"{name}; charset=utf-8" if name.startswith("text/") and "charset" not in name else name


def rdf_format(given: str | None) -> RdfFormat:
    """The RDF format that a Content-Type names. Raises Problem 415."""
    found = GRAPHS.get(_plain(given).lower()) if given else None
    if found is None:
        what = f"Content-Type {given}" if given else "no Content-Type"
        raise Problem(415, "not an RDF format", f"{what}; known: {', '.join(GRAPHS)}")
    return found


# --- operations ------------------------------------------------------------------------------------------

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Operation:
    """A query or an update, the graphs that the protocol names for it, and whether it reads all graphs."""

    text: str
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]
    union: bool


def query_of(request: Request) -> Operation:
    """The query of a GET or POST request. Raises Problem."""
    parameters, direct = _carried(request, "application/sparql-query")
    return _operation(parameters, direct, "query", "default-graph-uri", "named-graph-uri", "union-default-graph")


def update_of(request: Request) -> Operation:
    """The update of a POST request. Raises Problem."""
    parameters, direct = _carried(request, "application/sparql-update")
    return _operation(parameters, direct, "update", "using-graph-uri", "using-named-graph-uri", "using-union-graph")


def _carried(request: Request, direct_type: str) -> tuple[Parameters, str | None]:
    """The parameters, and the text if it is the body itself."""
    in_url = request.parameters()
    if request.method in ("GET", "HEAD"):
        return in_url, None
    if request.media_type == FORM:
        return in_url + form(request.text().encode()), None
    if request.media_type == direct_type:
        return in_url, request.text()
    given = f"Content-Type {request.media_type}" if request.media_type else "no Content-Type"
    raise Problem(415, "not a SPARQL request", f"{given}; expected {direct_type} or {FORM}")


def _operation(
    parameters: Parameters, direct: str | None, name: str, default: str, named: str, union: str
) -> Operation:
    texts = values(parameters, name) + ([direct] if direct is not None else [])
    if not texts:
        raise Problem(400, f"no {name}", f"the parameter {name} is missing")
    if len(texts) > 1:
        raise Problem(400, f"more than one {name}", f"{len(texts)} are given")
    if "\x00" in texts[0]:
        raise Problem(400, "malformed SPARQL", "the text has a NUL character")
    default_graphs = tuple(checked_iri(iri, default) for iri in values(parameters, default))
    named_graphs = tuple(checked_iri(iri, named) for iri in values(parameters, named))
    all_graphs = any(value.lower() != "false" for value in values(parameters, union))
    if all_graphs and (default_graphs or named_graphs):
        raise Problem(400, "the dataset is given twice", f"{union} beside {default} or {named}")
    return Operation(texts[0], default_graphs, named_graphs, all_graphs)


def checked_iri(iri: str, name: str) -> str:
    """An absolute IRI. Raises Problem 400 that names the parameter."""
    try:
        return NamedNode(iri).value
    except ValueError as error:
        raise Problem(400, f"{name} is not an absolute IRI", f"{iri}: {error}") from None
