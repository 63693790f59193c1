"""From a path and a method to its handler; streams that SERVICE may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from pyoxigraph import QuerySolutions
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Map, Rule

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.languages import media_types
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Appended, UnknownError
from oxiseq.live.api import answers, streams
from oxiseq.live.api.long_push import Opening, format_of, opening
from oxiseq.live.api.openapi import document
from oxiseq.live.api.operations import NAMED, OPERATIONS, SOCKET
from oxiseq.live.api.streams import Pushing
from oxiseq.live.api.table import Call, Operation, as_problem, check_known, json_response
from oxiseq.live.service import LiveService
from oxiseq.sparql.endpoint import answered
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Problem, Request, Response

T = TypeVar("T")

# --- SERVICE ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamServices:
    """`oxiseq.sparql.services.Services` of a live service: each stream is one."""

    service: LiveService

    def knows(self, iri: str) -> bool:
        """Whether there is a stream of this name."""
        try:
            self.service.streams.get(iri)
        except UnknownError:
            return False
        return True

    def ask(self, iri: str, queries: Sequence[str], base: str, check: Callable[[], None]) -> list[QuerySolutions]:
        """See `EventGraphs.query`. Raises Problem."""
        try:
            return self.service.graphs.query(iri, queries, base, check)
        except OxiseqError as error:
            raise as_problem(error) from None


# --- routes ----------------------------------------------------------------------------------------------


class LiveRoutes:
    """Answers requests for streams, queries and matches. May be called from many threads."""

    def __init__(self, service: LiveService, evaluations: Evaluations) -> None:
        self.service = service
        self._evaluations = evaluations
        self.services = StreamServices(service)
        """For a SPARQL endpoint to `offer`: streams that SERVICE may name."""

    @staticmethod
    def takes(request: Request) -> bool:
        """Whether a request is for one of the routes here."""
        if request.path.rstrip("/") == "/query":
            return answers.follows(request) or (request.method == "POST" and request.media_type in media_types())
        return request.path.lstrip("/").partition("/")[0] in FIRST

    def answer(self, request: Request) -> Response:
        """The response, whatever the request holds."""
        return answered(request, self._respond)

    def begin_push(self, request: Request) -> Pushing | Response:
        """The push in a request (see `is_push`), read; or why it is refused."""
        parts = {"stream": _decoded(request.path[len(_PUSHED) :].rstrip("/"))}
        return _tried(request, lambda: streams.begin_push(self._call(request), **_checked(_PUSH, request, parts)))

    def end_push(self, request: Request, pushing: Pushing, stored: Callable[[], Appended]) -> Response:
        """The answer to it; `stored` is what the log says of its append, or raises."""
        return _tried(request, lambda: pushing.answer(stored()))

    def begin_long_push(self, request: Request, *, socket: bool) -> Opening | Response:
        """The long push that a request begins (see `long_pushed`), over a `socket` or not; or why it is refused."""
        parts = {"stream": _decoded(long_pushed(request.path))}

        def begin() -> Opening:
            given = _checked(SOCKET if socket else NAMED["pushEvents"], request, parts)
            format = given.pop("format", None) or ("ndjson" if socket else format_of(request))
            given.pop("limit", None)
            self.service.journal.streams.get(parts["stream"])
            return opening(format=format, **given)

        return _tried(request, begin)

    @cached_property
    def openapi(self) -> dict[str, object]:
        """The document that describes all of this."""
        return document(OPERATIONS)

    def _respond(self, request: Request) -> Response:
        operation, parts = _found(request.method, request.path)
        if operation.path == "/query" and request.media_type not in media_types():  # POST, too, has SPARQL's texts
            operation = NAMED["followQuery"]
        try:
            given = _checked(operation, request, parts)
            if operation.name == "openapi":
                return json_response(self.openapi)
            return operation.function(self._call(request), **given)
        except OxiseqError as error:
            raise as_problem(error) from None

    def _call(self, request: Request) -> Call:
        return Call(self.service, request, self._evaluations)


def _tried(request: Request, work: Callable[[], T]) -> T | Response:
    """What `work` returns; or why the request is refused."""
    done: list[T] = []

    def respond(_: Request) -> Response:
        try:
            done.append(work())
        except OxiseqError as error:
            raise as_problem(error) from None
        return Response(200)

    refused = answered(request, respond)
    return done[0] if done else refused


def _checked(operation: Operation, request: Request, parts: Mapping[str, str]) -> dict[str, Any]:
    """What the operation's function takes, of a client that may call it. Raises DeniedError, Problem."""
    operation.needs.check(request.rights, parts)
    if operation.path != "/query":  # which has those of the SPARQL protocol: its function checks them
        check_known(request, operation.in_query)
    return operation.arguments(request, parts)


def _found(method: str, path: str) -> tuple[Operation, dict[str, str]]:
    """The operation, and the variables of its path as it was sent. Raises Problem 404 or 405."""
    try:
        name, parts = _PATHS.match("/" + path.strip("/"), method)
    except NotFound:
        raise Problem(404, "no such resource", path) from None
    except MethodNotAllowed as error:
        allowed = ", ".join(sorted({*(error.valid_methods or ())} - {"HEAD"}))
        raise Problem(405, "method not allowed", f"allowed: {allowed}", headers=(("Allow", allowed),)) from None
    return NAMED[name], {part: _decoded(text) for part, text in parts.items()}


@lru_cache(256)
def _decoded(part: str) -> str:
    return unquote(part, errors="replace")


def _rule(operation: Operation) -> Rule:
    path = operation.path.replace("{", "<").replace("}", ">")
    return Rule(path, methods=[operation.method], endpoint=operation.name)


_PATHS: Final = Map(
    [_rule(each) for each in OPERATIONS], strict_slashes=False, merge_slashes=False, redirect_defaults=False
).bind("")
FIRST: Final = frozenset(each.path.split("/")[1] for each in OPERATIONS) - {"query"}
"""First parts of the paths that are all ours."""
_PUSHED: Final = "/streams/"
_PUSH: Final = NAMED["push"]


def is_push(method: str, path: str) -> bool:
    """Whether a request pushes events, of its path as it was sent."""
    return method == "POST" and path.startswith(_PUSHED) and "/" not in path[len(_PUSHED) :].rstrip("/")


def long_pushed(path: str) -> str:
    """The stream (as it was sent) of a path to its events; empty where it is another path."""
    given = path.strip("/").split("/")
    return given[1] if len(given) == 3 and given[0] == "streams" and given[2] == "events" else ""


def changes(method: str, path: str) -> bool:
    """Whether a request may change something, so that pages from elsewhere may not send it."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return False
    try:
        return _found(method, path)[0].needs.changes
    except Problem:
        return True
