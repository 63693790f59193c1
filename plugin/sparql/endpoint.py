"""The endpoint: which operation a request is, and failures as responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple, serialize

from oxiseq.api.store import Store
from oxiseq.engine.attended import attended
from oxiseq.sparql.evaluation import Evaluations, as_problem
from oxiseq.sparql.graph_store import METHODS, GraphStore
from oxiseq.sparql.messages import (
    GRAPHS,
    RESULTS,
    Problem,
    Request,
    Response,
    checked_iri,
    content_type,
    values,
    wanted,
    wants_json_problem,
)
from oxiseq.sparql.processes import Processes
from oxiseq.sparql.querying import Backend, Querying
from oxiseq.sparql.services import Services
from oxiseq.sparql.settings import SparqlSettings

# --- description -----------------------------------------------------------------------------------------

SD = "http://www.w3.org/ns/sparql-service-description#"
_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_PREFIXES = {"sd": SD, "formats": "http://www.w3.org/ns/formats/"}


def describe(endpoint: str, settings: SparqlSettings, *, update: bool) -> list[Triple]:
    """The description of a query or update endpoint at this address."""
    service = BlankNode("service")
    found = [
        Triple(service, _TYPE, _sd("Service")),
        Triple(service, _sd("endpoint"), NamedNode(endpoint)),
    ]
    formats: dict[NamedNode, None] = {}
    if update:
        found.append(Triple(service, _sd("supportedLanguage"), _sd("SPARQL11Update")))
    else:
        languages = ("SPARQL10Query", "SPARQL11Query")
        found += [Triple(service, _sd("supportedLanguage"), _sd(name)) for name in languages]
        formats = {NamedNode(result.iri): None for result in RESULTS.values()}
        formats |= {NamedNode(graph.iri): None for graph in GRAPHS.values()}
    found += [Triple(service, _sd("resultFormat"), iri) for iri in formats]
    inputs = {NamedNode(f.iri): None for f in GRAPHS.values()} if update and settings.allow_load else {}
    found += [Triple(service, _sd("inputFormat"), iri) for iri in inputs]
    found += [Triple(service, _sd("feature"), _sd(name)) for name in _features(settings)]
    dataset, default = BlankNode("dataset"), BlankNode("defaultGraph")
    return [
        *found,
        Triple(service, _sd("defaultDataset"), dataset),
        Triple(dataset, _TYPE, _sd("Dataset")),
        Triple(dataset, _sd("defaultGraph"), default),
        Triple(default, _TYPE, _sd("Graph")),
    ]


def description(endpoint: str, settings: SparqlSettings, format_: RdfFormat, *, update: bool) -> bytes:
    """The same, written."""
    prefixes = _PREFIXES if format_ in (RdfFormat.TURTLE, RdfFormat.TRIG, RdfFormat.N3) else None
    return serialize(describe(endpoint, settings, update=update), format=format_, prefixes=prefixes) or b""


def _features(settings: SparqlSettings) -> list[str]:
    names = ["EmptyGraphs"]
    if settings.union_default_graph:
        names.append("UnionDefaultGraph")
    if settings.allow_service:
        names.append("BasicFederatedQuery")
    if settings.allow_load:
        names.append("DereferencesURIs")
    return names


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)


# --- endpoint --------------------------------------------------------------------------------------------

QUERY: Final = "/query"
UPDATE: Final = "/update"
STORE: Final = "/store"


class SparqlEndpoint:
    """`/query`, `/update` and `/store` over a store.

    `processes`: where queries are evaluated that cannot be ended otherwise. `answer` never raises for what a request
    holds: failures are responses. It may be called from many threads.
    """

    def __init__(
        self, store: Backend, settings: SparqlSettings | None = None, processes: Processes | None = None
    ) -> None:
        self.settings = settings if settings is not None else SparqlSettings()
        self.evaluations = Evaluations(self.settings.limits)
        self.store = store
        self._querying = Querying(store, self.settings, self.evaluations, processes=processes)
        self._graphs = GraphStore(store, self.evaluations, STORE)

    def offer(self, services: Services) -> None:
        """Let queries and updates name these sources in SERVICE."""
        self._querying = replace(self._querying, services=services)

    @staticmethod
    def takes(path: str) -> bool:
        """Whether a path is one of this endpoint's."""
        return path.rstrip("/") in (QUERY, UPDATE, STORE) or path.startswith(f"{STORE}/")

    @staticmethod
    def writes(request: Request) -> bool:
        """Whether a request may change the store."""
        return is_writing(request)

    def answer(self, request: Request) -> Response:
        """The response, whatever the request holds."""
        return answered(request, self._respond)

    def ready(self) -> bool:
        """Whether the store answers, and takes changes where it is to."""
        try:
            answers = bool(self.store.query("ASK {}"))
            return answers and (self.settings.read_only or not isinstance(self.store, Store) or self.store.writable)
        except (OSError, RuntimeError):
            return False

    def _respond(self, request: Request) -> Response:
        if len(request.body) > self.settings.limits.body:
            raise Problem(413, "the body is too large", f"at most {self.settings.limits.body} bytes are taken")
        checked_iri(request.url, "the address")
        demand_right(request)
        if self.settings.read_only and self.writes(request):
            raise Problem(403, "the server is read-only")
        path = request.path.rstrip("/")
        if path == QUERY:
            return self._query(request)
        if path == UPDATE:
            return self._update(request)
        if self.takes(request.path):
            allow(request, METHODS)
            return self._graphs.answer(request)
        raise Problem(404, "no such resource", request.path)

    def _query(self, request: Request) -> Response:
        allow(request, ("GET", "HEAD", "POST"))
        if request.method != "POST" and not request.query_string:
            return self._description(request, update=False)
        return self._querying.query(request)

    def _update(self, request: Request) -> Response:
        allow(request, ("GET", "HEAD", "POST"))
        if request.method == "POST":
            return self._querying.update(request)
        if values(request.parameters(), "update"):
            raise Problem(405, "an update is sent by POST", headers=(("Allow", "POST"),))
        return self._description(request, update=True)

    def _description(self, request: Request, *, update: bool) -> Response:
        format_ = wanted(request.header("accept"), GRAPHS)
        body = description(request.url, self.settings, format_, update=update)
        return Response(200, (("content-type", content_type(format_)),), body)


def is_writing(request: Request) -> bool:
    """Whether a request may change a store behind these paths."""
    if request.path.rstrip("/") == UPDATE:
        return request.method not in ("GET", "HEAD", "OPTIONS")
    return request.path.startswith(STORE) and request.method not in ("GET", "HEAD", "OPTIONS")


def demand_right(request: Request) -> None:
    """Raises DeniedError for a client without the right to do on a store what these paths do."""
    request.rights.demand("update" if is_writing(request) else "read", "kb")


def allow(request: Request, methods: tuple[str, ...]) -> None:
    """Raises Problem 405 for another method."""
    if request.method not in methods:
        allowed = ", ".join(methods)
        raise Problem(405, "method not allowed", f"allowed: {allowed}", headers=(("Allow", allowed),))


def answered(request: Request, respond: Callable[[Request], Response]) -> Response:
    """What `respond` answers, failures as responses, without a body for HEAD."""
    try:
        with attended(request.gone):
            response = respond(request)
    except Problem as problem:
        response = problem_response(problem, request)
    except Exception as error:  # a failure of ours: reported, not raised, for a server must go on
        response = problem_response(as_problem(error), request)
    return response.without_body() if request.method == "HEAD" else response


def problem_response(problem: Problem, request: Request) -> Response:
    """A failure as problem JSON, or as text if requested."""
    if wants_json_problem(request.header("accept")):
        head, body = ("content-type", "application/problem+json"), problem.as_json()
    else:
        head, body = ("content-type", "text/plain; charset=utf-8"), problem.as_text()
    return Response(problem.status, (head, *problem.headers), body)
