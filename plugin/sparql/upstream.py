"""In front of another SPARQL endpoint: requests pass on, answers pass back as they come.

    Request ─▶ Upstream.answer ─▶ the endpoint one already has ─▶ Response (streamed)

`RemoteKb` is the engine's KB protocol over the same endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import httpx

from oxiseq.engine.errors import KbError, OxiseqError
from oxiseq.engine.kb import Solution, Versioned
from oxiseq.sparql.answers import read_answer
from oxiseq.sparql.endpoint import QUERY, STORE, UPDATE, answered, demand_right, is_writing
from oxiseq.sparql.messages import Request, Response
from oxiseq.sparql.problems import Interrupted, Problem
from oxiseq.sparql.settings import SparqlSettings

_HOP_BY_HOP: Final = frozenset(
    ["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade"]
)  # fmt: skip
# ours are for us: the body was unpacked, tokens and cookies are not to be shown to another server
_OURS: Final = frozenset(["host", "content-length", "content-encoding", "authorization", "cookie"])
_CONNECT_SECONDS: Final = 10.0


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
        raise OxiseqError(f"{url}: not an http address")
    path = parts.path.rstrip("/")
    if path and not path.endswith(QUERY):
        return Addresses(url, None, None)
    root = urlunsplit((parts.scheme, parts.netloc, path.removesuffix(QUERY), "", ""))
    return Addresses(root + QUERY, root + UPDATE, root + STORE)


class Upstream:
    """Answers SPARQL requests by asking another endpoint. It may be called from many threads."""

    def __init__(
        self, url: str, settings: SparqlSettings | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.settings = settings if settings is not None else SparqlSettings()
        self.addresses = addresses(url)
        timeout = httpx.Timeout(self.settings.limits.seconds, connect=_CONNECT_SECONDS)
        self._client = httpx.Client(timeout=timeout, transport=transport, trust_env=False)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def answer(self, request: Request) -> Response:
        """The other endpoint's response; 502 when it cannot be reached, 504 when it takes too long."""
        return answered(request, self._passed)

    def ready(self) -> bool:
        """Whether the other endpoint answers."""
        try:
            asked = self._client.get(self.addresses.query, params={"query": "ASK {}"}, timeout=_CONNECT_SECONDS)
        except httpx.HTTPError:
            return False
        return asked.is_success

    def _passed(self, request: Request) -> Response:
        demand_right(request)
        if self.settings.read_only and is_writing(request):
            raise Problem(403, "the server is read-only")
        sent = self._client.build_request(
            request.method, self._address(request), content=request.body or None,
            headers=[(n, v) for n, v in request.headers if n not in _OURS and n not in _hop_by_hop(request.headers)],
        )  # fmt: skip
        try:
            response = self._client.send(sent, stream=True)
        except httpx.TimeoutException as error:
            raise Problem(504, "the endpoint behind takes too long", str(error)) from None
        except httpx.HTTPError as error:
            raise Problem(502, "the endpoint behind cannot be reached", str(error)) from None
        headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
        dropped = _hop_by_hop(headers)
        kept = tuple((name, value) for name, value in headers if name not in dropped)
        return Response(response.status_code, kept, _Passed(response))

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
    """The endpoint behind cannot answer what a knowledge base is asked; `status`: HTTP's, 502 or 504."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class RemoteKb(Versioned):
    """A SPARQL endpoint as the engine's knowledge base (`engine.kb.KnowledgeBase`): each question is asked there.

    The engine asks each pattern once and keeps the answer; `touch` says that it is to be asked again.
    """

    def __init__(self, upstream: Upstream) -> None:
        super().__init__()
        self._upstream = upstream

    def solutions(self, query_text: str) -> Iterable[Solution]:
        """The solutions of a SELECT query. Raises KbError."""
        return read_answer(query_text, self.body(query_text))

    def body(self, query_text: str) -> bytes:
        """The same in JSON, well-formed to its end. Raises UpstreamError."""
        asked = Request(
            "POST", QUERY, body=query_text.encode(),
            headers=(("content-type", "application/sparql-query"), ("accept", "application/sparql-results+json"),
                     ("accept-encoding", "identity")),
        )  # fmt: skip
        response = self._upstream.answer(asked)
        try:
            content = response.content()
        except Interrupted as error:
            raise UpstreamError(f"the knowledge base fails: {error}") from error
        if response.status != 200:
            said = content.decode(errors="replace").strip()
            status = response.status if response.status == 504 else 502
            raise UpstreamError(f"the knowledge base refuses a query: {said}", status)
        try:
            for _ in read_answer(query_text, content):
                pass
        except KbError as error:
            raise UpstreamError(str(error)) from error
        except (SyntaxError, ValueError, OSError) as error:
            raise UpstreamError(f"the knowledge base fails: {error}") from error
        return content
