"""From a path and a method to its handler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import unquote

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.languages import media_types
from oxiseq.journal import Appended
from oxiseq.live.api import (
    answers,
    bridges,
    checking,
    kb,
    mappings,
    matches,
    once,
    past,
    push_events,
    queries,
    sinks,
    streams,
)
from oxiseq.live.api.openapi import document
from oxiseq.live.api.problems import as_problem
from oxiseq.live.api.push_events import Opening, opening
from oxiseq.live.api.services import StreamServices
from oxiseq.live.api.streams import Pushing
from oxiseq.live.api.table import Answer, Call, Need, Route, json_response
from oxiseq.live.metrics import MEDIA_TYPE
from oxiseq.live.service import LiveService
from oxiseq.sparql.endpoint import answered
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request, Response
from oxiseq.sparql.problems import Problem


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
        begun: list[Pushing] = []

        def begin(request: Request) -> Response:
            stream = _decoded(request.path[len(_PUSHED) :].rstrip("/"))
            try:
                _PUSH.needs.check(request.rights, {"stream": stream})
                call = Call(self.service, request, {"stream": stream}, self._evaluations)
                call.check_parameters(_PUSH_PARAMETERS)
                begun.append(streams.begin_push(call))
            except OxiseqError as error:
                raise as_problem(error) from None
            return Response(200)

        refused = answered(request, begin)
        return begun[0] if begun else refused

    def end_push(self, request: Request, pushing: Pushing, stored: Callable[[], Appended]) -> Response:
        """The answer to it; `stored` is what the log says of its append, or raises."""

        def end(request: Request) -> Response:
            try:
                return pushing.answer(stored())
            except OxiseqError as error:
                raise as_problem(error) from None

        return answered(request, end)

    def begin_long_push(self, request: Request, *, socket: bool) -> Opening | Response:
        """The long push that a request begins (see `long_pushed`), over a `socket` or not; or why it is refused."""
        begun: list[Opening] = []

        def begin(request: Request) -> Response:
            stream = _decoded(long_pushed(request.path))
            try:
                _PUSH.needs.check(request.rights, {"stream": stream})
                self.service.journal.streams.get(stream)
                begun.append(opening(Call(self.service, request, {"stream": stream}, self._evaluations), socket=socket))
            except OxiseqError as error:
                raise as_problem(error) from None
            return Response(200)

        refused = answered(request, begin)
        return begun[0] if begun else refused

    @cached_property
    def openapi(self) -> dict[str, object]:
        """The document that describes all of this."""
        return document(ROUTES)

    def _respond(self, request: Request) -> Response:
        route, parts = _found(request)
        try:
            route.needs.check(request.rights, parts)
            if route.name == "openapi":
                return json_response(self.openapi)
            call = Call(self.service, request, parts, self._evaluations)
            if route.path != "/query":  # which has those of the SPARQL protocol, or options: its handler checks them
                call.check_parameters(route.in_query)
            return route.handler(call)
        except OxiseqError as error:
            raise as_problem(error) from None


def _found(request: Request) -> tuple[Route, dict[str, str]]:
    """The route and its path's variables. Raises Problem 404 or 405."""
    given = [unquote(part, errors="replace") for part in request.path.strip("/").split("/")]
    here = [(route, parts) for route, pattern in _PATTERNS if (parts := _parts(pattern, given)) is not None]
    if not here:
        raise Problem(404, "no such resource", request.path)
    method = "GET" if request.method == "HEAD" else request.method
    for route, parts in here:
        if route.method == method:
            return route, parts
    allowed = ", ".join(sorted({route.method for route, _ in here}))
    raise Problem(405, "method not allowed", f"allowed: {allowed}", headers=(("Allow", allowed),))


def _parts(pattern: Sequence[str], given: Sequence[str]) -> dict[str, str] | None:
    if len(pattern) != len(given) or pattern[0] != given[0]:
        return None
    parts: dict[str, str] = {}
    for expected, value in zip(pattern, given, strict=True):
        if expected.startswith("{"):
            parts[expected[1:-1]] = value
        elif expected != value:
            return None
    return parts


@lru_cache(256)
def _decoded(part: str) -> str:
    return unquote(part, errors="replace")


def _metrics(call: Call) -> Response:
    return Response(200, (("content-type", MEDIA_TYPE),), call.service.metrics.text())


def _openapi(call: Call) -> Response:
    raise AssertionError("answered above: it needs no service")


ROUTES: Final[tuple[Route, ...]] = (
    *streams.ROUTES,
    *push_events.ROUTES,
    *queries.ROUTES,
    *matches.ROUTES,
    *answers.ROUTES,
    *sinks.ROUTES,
    *bridges.ROUTES,
    *past.ROUTES,
    *once.ROUTES,
    *kb.ROUTES,
    *checking.ROUTES,
    *mappings.ROUTES,
    Route(
        "GET",
        "/metrics",
        _metrics,
        "metrics",
        "Counters and distributions for Prometheus.",
        Need("read", "server"),
        answers={200: Answer("The metrics.", ("text/plain",))},
    ),
    Route(
        "GET",
        "/openapi.json",
        _openapi,
        "openapi",
        "This document.",
        Need(None),
        answers={200: Answer("The document.")},
    ),
)
_PATTERNS: Final = tuple((route, route.path.strip("/").split("/")) for route in ROUTES)
FIRST: Final = frozenset(route.path.split("/")[1] for route in ROUTES) - {"query"}
"""First parts of the paths that are all ours."""
_PUSHED: Final = "/streams/"
_PUSH: Final = next(route for route in ROUTES if route.handler is streams.push)
_PUSH_PARAMETERS: Final = _PUSH.in_query
_READING: Final = tuple(pattern for route, pattern in _PATTERNS if route.method == "POST" and not route.needs.changes)


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
    given = path.strip("/").split("/")
    return method != "POST" or all(_parts(pattern, given) is None for pattern in _READING)
