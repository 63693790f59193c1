"""In front of another SPARQL endpoint: requests pass on, answers pass back as they come.

    Request ─▶ Upstream.answer ─▶ the endpoint one already has ─▶ Response (streamed)
                 │ SERVICE <stream> {...}
                 └─▶ answered here ─▶ VALUES in its place: one request, or several (in_parts.py)

`RemoteKb` is the engine's KB protocol over the same endpoint.

Another endpoint's answers to SELECT queries: JSON → solutions.

Blank nodes mean something within one answer only: they get labels that no other query's answer has, nor another answer
to the same query, but the same answer to it again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from pyoxigraph import BlankNode, QueryBoolean, QueryResultsFormat, QuerySolutions, parse_query_results

from oxiseq.changes.operations import tokens
from oxiseq.engine.errors import ArgumentValueError, KbError
from oxiseq.engine.extras import needed
from oxiseq.engine.kb import Solution, Versioned
from oxiseq.engine.rdf import Guarded
from oxiseq.engine.standing import Question, Solutions, check_rows
from oxiseq.grammar.records import dataclass
from oxiseq.sparql.endpoint import QUERY, STORE, UPDATE, answered, demand_right, is_writing
from oxiseq.sparql.evaluation import Evaluations, Sink
from oxiseq.sparql.guards import check_query, check_size, check_syntax
from oxiseq.sparql.in_parts import LATE, UNREACHED, answer_in_parts
from oxiseq.sparql.messages import (
    FORM,
    RESULTS,
    Interrupted,
    Parameters,
    Problem,
    Request,
    Response,
    form,
    query_of,
    sparql_problem,
    update_of,
    wanted,
)
from oxiseq.sparql.services import EMPTY, Block, Services, Table, asked, blocks, inner_text, obstacle, with_values
from oxiseq.sparql.settings import SparqlSettings

if TYPE_CHECKING:
    import httpx
else:
    httpx = needed("httpx")


# --- answers ---------------------------------------------------------------------------------------------


def read_answer(query_text: str, body: bytes) -> Iterable[Solution]:
    """The solutions in JSON results. Raises KbError."""
    found = _parsed(body)
    if not isinstance(found, QuerySolutions):
        raise KbError("the knowledge base answers SELECT queries only")
    return _labelled(found, query_text, body) if b'"bnode"' in body else found


def read_rows(query_text: str, body: bytes, question: Question) -> Solutions:
    """The rows of an answer that is well-formed, in a question's columns; of ASK one without columns if it is true.
    Raises KbError, LimitError."""
    found = _parsed(body)
    if isinstance(found, QueryBoolean):
        return [()] * bool(found)
    known = {variable.value for variable in found.variables}
    names = [name if name in known else None for name in question.names]
    rows: Solutions = []
    for solution in read_answer(query_text, body):
        rows.append(tuple(None if name is None else solution[name] for name in names))
        check_rows(question, len(rows))
    return rows


def check_answer(query_text: str, body: bytes) -> None:
    """Raises KbError, and what pyoxigraph raises, for what is no answer to a SELECT or an ASK to its end."""
    if _asks_truth(query_text):
        if not isinstance(_parsed(body), QueryBoolean):
            raise KbError("the knowledge base answers an ASK query with solutions")
        return
    for _ in read_answer(query_text, body):
        pass


def _parsed(body: bytes) -> QuerySolutions | QueryBoolean:
    try:
        Guarded(None, None).check(body)
        return parse_query_results(body, QueryResultsFormat.JSON)
    except (SyntaxError, ValueError, OSError) as error:
        raise KbError(f"the knowledge base's answer cannot be read: {error}") from error


def _asks_truth(query_text: str) -> bool:
    words = (token for token in tokens(query_text) if token.kind == "word")
    first = next((word for word in words if not word.is_word("PREFIX", "BASE")), None)
    return first is not None and first.is_word("ASK")


def _labelled(found: QuerySolutions, query_text: str, body: bytes) -> Iterator[Solution]:
    scope = hashlib.blake2b(body, digest_size=8, key=hashlib.blake2b(query_text.encode()).digest()).hexdigest()
    fresh: dict[BlankNode, BlankNode] = {}
    names = [variable.value for variable in found.variables]
    for solution in found:
        terms: list[Any] = list(solution)
        for i, term in enumerate(terms):
            if isinstance(term, BlankNode):
                terms[i] = fresh.setdefault(term, BlankNode(f"u{scope}x{len(fresh)}"))
        yield _Labelled(terms, names)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A solution, by place or by name."""

    terms: list[Any]
    names: list[str]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.terms)

    def __getitem__(self, key: int | str) -> Any:
        return self.terms[key if isinstance(key, int) else self.names.index(key)]


# --- upstream --------------------------------------------------------------------------------------------

_HOP_BY_HOP: Final = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
# ours are for us: the body was unpacked, tokens and cookies are not to be shown to another server
_OURS: Final = frozenset(["host", "content-length", "content-encoding", "authorization", "cookie"])
_NO_COOKIES: Final = DefaultCookiePolicy(allowed_domains=())
"""All requests share a client: what the endpoint has one of them keep is not for the others."""
_CONNECT_SECONDS: Final = 10.0
_CALLED: Final = re.compile(rb"service|%", re.IGNORECASE)
"""What a request has that may name a stream in SERVICE: the word, or letters that are percent-encoded."""
_MOST: Final = 256 << 20
"""Bytes of an answer that is kept."""
PART: Final = 1 << 20
"""Characters of a request when a query is sent in parts."""
WHOLE: Final = 16 << 20
"""Characters that SERVICE blocks may put into a text that is sent as a whole."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where an endpoint answers queries, updates and graph requests; None where it does not."""

    query: str
    update: str | None
    store: str | None


def addresses(url: str) -> Addresses:
    """A server's root (`http://host:7878`: Oxigraph's paths below it), its `.../query` (the others beside it),
    or any other query endpoint (which then takes queries only). Raises OxiseqError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ArgumentValueError(f"{url}: not an http address")
    path = parts.path.rstrip("/")
    if path and not path.endswith(QUERY):
        return Addresses(url, None, None)
    root = urlunsplit((parts.scheme, parts.netloc, path.removesuffix(QUERY), "", ""))
    return Addresses(root + QUERY, root + UPDATE, root + STORE)


class Upstream:
    """Answers SPARQL requests by asking another endpoint. It may be called from many threads.

    `token`: sent there as `Authorization: Bearer`; a name and a password may be in the URL. `part`, `whole`: see
    `PART` and `WHOLE`.
    """

    def __init__(
        self,
        url: str,
        settings: SparqlSettings | None = None,
        transport: httpx.BaseTransport | None = None,
        *,
        token: str | None = None,
        part: int = PART,
        whole: int = WHOLE,
    ) -> None:
        self.settings = settings if settings is not None else SparqlSettings()
        self.addresses = addresses(url)
        self.evaluations = Evaluations(self.settings.limits)
        timeout = httpx.Timeout(self.settings.limits.seconds, connect=_CONNECT_SECONDS)
        headers = {"accept-encoding": "identity"}  # where the client takes no packed answer either
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            timeout=timeout, transport=transport, trust_env=False, headers=headers, cookies=CookieJar(_NO_COOKIES)
        )
        self._services: Services | None = None
        self._part, self._whole = part, whole
        self.on_written: Callable[[], None] = lambda: None
        """Called when a request may have changed the other endpoint's data."""

    def offer(self, services: Services) -> None:
        """Let queries and updates name these sources in SERVICE."""
        self._services = services

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def answer(self, request: Request) -> Response:
        """The other endpoint's response; 502 when it cannot be reached, 504 when it takes too long."""
        return answered(request, self._respond)

    def ready(self) -> bool:
        """Whether the other endpoint answers."""
        try:
            asked = self._client.get(self.addresses.query, params={"query": "ASK {}"}, timeout=_CONNECT_SECONDS)
        except httpx.HTTPError:
            return False
        return asked.is_success

    def _respond(self, request: Request) -> Response:
        demand_right(request)
        if self.settings.read_only and is_writing(request):
            raise Problem(403, "the server is read-only")
        called = self._called(request)
        status = 500
        try:
            response = self._passed(request) if called is None else self._joined(request, called)
            status = response.status
        finally:
            if is_writing(request) and not 400 <= status < 500:  # it may have been carried out where no answer came
                self.on_written()
        return response

    def _passed(self, request: Request) -> Response:
        response = self._sent(request)
        headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
        dropped = _hop_by_hop(headers)
        kept = tuple((name, value) for name, value in headers if name not in dropped)
        return Response(response.status_code, kept, _Passed(response))

    def _sent(self, request: Request) -> httpx.Response:
        """The response, its body not read yet. Raises Problem."""
        sent = self._client.build_request(
            request.method,
            self._address(request),
            content=request.body or None,
            headers=[(n, v) for n, v in request.headers if n not in _OURS and n not in _hop_by_hop(request.headers)],
        )
        try:
            return self._client.send(sent, stream=True)
        except httpx.TimeoutException as error:
            raise Problem(504, LATE, str(error)) from None
        except httpx.HTTPError as error:
            raise Problem(502, UNREACHED, str(error)) from None

    # --- SERVICE <stream> -------------------------------------------------------------------------------

    def _called(self, request: Request) -> _Called | None:
        """The blocks of a query or an update that are answered here; None where there are none, or it is malformed: the
        other endpoint says so. Raises DeniedError."""
        path = request.path.rstrip("/")
        if self._services is None or path not in (QUERY, UPDATE):
            return None
        if not _CALLED.search(request.body) and not _CALLED.search(request.query_string.encode()):
            return None
        try:
            text = (query_of if path == QUERY else update_of)(request).text
        except Problem:
            return None
        if len(text) > self.settings.limits.query:  # it is data
            return None
        found = blocks(text, self._services, request.url)
        request.rights.demand_reading((block.iri for block in found), kb=False)
        return _Called(text, found, path == UPDATE) if found else None

    def _joined(self, request: Request, called: _Called) -> Response:
        """The answer to a text whose blocks are answered here. Raises Problem."""
        check_size(called.text, self.settings)
        for block in called.blocks:
            check_query(inner_text(called.text, block), self.settings, request.url)
        tables = self._tables(request, called)
        size = len(called.text) + sum(table.size for table in tables)
        if size > self._part and not called.updates:
            blocking = obstacle(called.text, called.blocks)
            if blocking is None:
                return self._in_parts(request, called, tables)
            if size > self._whole:
                raise Problem(
                    403,
                    "too many results",
                    f"the SERVICE blocks have solutions of {size:,} characters, one "
                    f"request has at most {self._whole:,}, and the query cannot be sent in parts: "
                    f"{blocking.reason}. Filter or aggregate in the block",
                    blocking.place,
                )
        elif size > self.settings.limits.body:
            raise Problem(
                403,
                "too many results",
                f"the SERVICE blocks have solutions of {size:,} characters, and an "
                f"update has at most {self.settings.limits.body:,}: filter in the block",
            )
        response = self._passed(called.request(request, tables))
        if response.status == 400:  # columns have moved: restore their order
            try:
                skeleton = with_values(called.text, called.blocks, [EMPTY] * len(called.blocks))
                check_syntax(skeleton, request.url, update=called.updates)
            except Problem:
                response.content()
                raise
        return response

    def _tables(self, request: Request, called: _Called) -> list[Table]:
        """The blocks' solutions, within the limits of an answer. Raises Problem."""
        services, found = self._services, list[Table]()
        assert services is not None

        def work(sink: Sink) -> None:
            try:
                found.extend(asked(called.text, called.blocks, services, request.url, sink.check))
            except SyntaxError as error:
                raise sparql_problem(called.text, error, update=called.updates) from None

        self.evaluations.answer(work, request.gone, self.evaluations.unended)
        return found

    def _in_parts(self, request: Request, called: _Called, tables: Sequence[Table]) -> Response:
        """One answer of many: each combination of the tables' parts is a query of its own."""
        format_ = wanted(request.header("accept"), RESULTS)
        share = max(1, (self._part - len(called.text)) // len(tables))
        json_ = (("accept", "application/sparql-results+json"),)

        def ask(text: str) -> httpx.Response:
            return self._sent(called.sent(request, text, json_))

        def work(sink: Sink) -> None:
            texts = (with_values(called.text, called.blocks, cut) for cut in product(*(t.parts(share) for t in tables)))
            answer_in_parts(texts, ask, format_, sink)

        return self.evaluations.answer(work, request.gone, self.evaluations.ready)

    def _address(self, request: Request) -> str:
        path = request.path.rstrip("/")
        if path == QUERY:
            base: str | None = self.addresses.query
        elif path == UPDATE:
            base = self.addresses.update
        else:
            base = self.addresses.store
            base = base + request.path.removeprefix(STORE) if base is not None else None
        if base is None:
            raise Problem(501, "not supported", "the endpoint behind takes queries only")
        return f"{base}?{request.query_string}" if request.query_string else base


@dataclass(frozen=True, slots=True)
class _Called:
    """A query, or an update, with SERVICE blocks that are answered here."""

    text: str
    blocks: list[Block]
    updates: bool

    def request(self, given: Request, tables: Sequence[Table]) -> Request:
        """What is sent instead: the blocks' solutions in their places."""
        kept = tuple((n, v) for n, v in given.headers if n.lower() != "content-type")
        return self.sent(given, with_values(self.text, self.blocks, tables), kept)

    def sent(self, given: Request, text: str, headers: Parameters) -> Request:
        """A request with another text: by POST, for it may be long; the rest stays."""
        in_body = form(given.body) if given.media_type == FORM else ()
        others = [(n, v) for n, v in (*given.parameters(), *in_body) if n not in ("query", "update")]
        kind = "application/sparql-update" if self.updates else "application/sparql-query"
        return replace(
            given,
            method="POST",
            query_string=urlencode(others),
            body=text.encode(),
            headers=(*headers, ("content-type", kind)),
        )


def _hop_by_hop(headers: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Headers of one connection: the standard ones, and those that Connection names."""
    named = [v for name, value in headers if name == "connection" for v in value.lower().split(",")]
    return _HOP_BY_HOP | {name.strip() for name in named}


class _Passed:
    """The body as it comes, still packed as the other endpoint packed it."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._response.iter_raw()
        except httpx.HTTPError as error:
            raise Interrupted(f"the endpoint behind broke off: {error}") from None

    def close(self) -> None:
        """Leaves the connection."""
        self._response.close()


class UpstreamError(KbError):
    """The endpoint behind cannot answer a query to the knowledge base; `status`: HTTP's, 502 or 504."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class RemoteKb(Versioned):
    """A SPARQL endpoint as the engine's knowledge base (`engine.kb.KnowledgeBase`): each query is sent there.

    The engine queries each pattern once and keeps the answer; `touch` says that it is to be queried again.
    """

    def __init__(self, upstream: Upstream) -> None:
        super().__init__()
        self._upstream = upstream

    def solutions(self, query_text: str) -> Iterable[Solution]:
        """The solutions of a SELECT query. Raises KbError."""
        return read_answer(query_text, self.body(query_text))

    def body(self, query_text: str) -> bytes:
        """The same in JSON, or whether an ASK is true, well-formed to its end. Raises UpstreamError."""
        asked = Request(
            "POST",
            QUERY,
            body=query_text.encode(),
            headers=(("content-type", "application/sparql-query"), ("accept", "application/sparql-results+json")),
        )
        seconds = self._upstream.settings.limits.seconds
        deadline = None if seconds is None else monotonic() + seconds
        response = self._upstream.answer(asked)
        try:
            content = _whole(response, deadline)
        except Interrupted as error:
            raise UpstreamError(f"the knowledge base fails: {error}") from error
        if response.status != 200:
            said = content.decode(errors="replace").strip()
            status = response.status if response.status == 504 else 502
            raise UpstreamError(f"the knowledge base refuses a query: {said}", status)
        try:
            check_answer(query_text, content)
        except KbError as error:
            raise UpstreamError(str(error)) from error
        except (SyntaxError, ValueError, OSError) as error:
            raise UpstreamError(f"the knowledge base fails: {error}") from error
        return content


def _whole(response: Response, deadline: float | None) -> bytes:
    """A body of bounded size, by a moment of the monotonic clock. Raises UpstreamError, Interrupted."""
    if isinstance(response.body, bytes):
        return response.body
    parts: list[bytes] = []
    size = 0
    try:
        for part in response.body:
            parts.append(part)
            size += len(part)
            if size > _MOST:
                raise UpstreamError(f"the knowledge base's answer has more than {_MOST >> 20} MB, the limit")
            if deadline is not None and monotonic() > deadline:
                raise UpstreamError("the knowledge base takes too long to answer", 504)
    finally:
        response.body.close()
    return b"".join(parts)
