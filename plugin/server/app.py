"""The Flask application: routes, tokens, CORS and health around something that answers SPARQL requests."""

from __future__ import annotations

from typing import Protocol

import flask
from werkzeug.exceptions import HTTPException

from oxiseq.grammar.records import dataclass
from oxiseq.live.api import LiveRoutes
from oxiseq.rights import DeniedError
from oxiseq.server.access import Access, check_origin
from oxiseq.server.conversion import request_of, response_to
from oxiseq.server.cors import allow_origin, preflight
from oxiseq.server.hosts import KnownHosts
from oxiseq.server.live import LiveApplication
from oxiseq.server.page import ENDPOINTS as PAGE
from oxiseq.server.page import Kind, add_page
from oxiseq.server.refusals import as_problem, refusal
from oxiseq.server.settings import ServerSettings
from oxiseq.sparql import Problem, Request, Response, SparqlEndpoint
from oxiseq.sparql.endpoint import is_writing
from oxiseq.sparql.problems import denied
from oxiseq.sparql.upstream import Upstream

DOORS = "oxiseq"
"""Where the application keeps its Doors among Flask's extensions."""
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
OPEN = ("health", "ready", *PAGE)
"""Names of the routes that need no right: they reveal nothing of the data."""
_SPARQL = ("/query", "/update", "/store", "/store/<path:name>")


@dataclass(frozen=True, slots=True)
class Doors:
    """For a server that answers some requests without WSGI: whether they may come in."""

    settings: ServerSettings
    hosts: KnownHosts
    live: LiveApplication | None


class Answers(Protocol):
    """A SPARQL endpoint: ours or one behind us."""

    def answer(self, request: Request) -> Response:
        """Never raises for what the request holds."""
        ...

    def ready(self) -> bool:
        """Whether requests can be answered now."""
        ...


def create_app(
    endpoint: Answers, settings: ServerSettings | None = None, live: LiveRoutes | None = None
) -> flask.Flask:
    """A WSGI application. More routes can be added to it; CORS holds for them too, and they need the right to read or
    update the server. `live`: streams and continuous queries. Raises TokenError.

    `app.config["DRAINING"]` set to true makes `/ready` say no, while the server ends its requests.
    """
    chosen = settings if settings is not None else ServerSettings()
    access = Access(chosen)
    app = flask.Flask("oxiseq", static_folder=None)
    app.config["DRAINING"] = False
    app.url_map.strict_slashes = False

    def sparql(name: str = "") -> flask.Response:
        try:
            asked = request_of(flask.request, chosen.body, flask.g.rights)
            if is_writing(asked):  # of the path as it was sent
                check_origin(flask.request.headers, chosen.cors)
        except Problem as problem:
            return refusal(problem, flask.request)
        taken = live is not None and live.takes(asked)
        return response_to(live.answer(asked) if live is not None and taken else endpoint.answer(asked), flask.request)

    for number, rule in enumerate(_SPARQL):
        app.add_url_rule(
            rule, f"sparql{number}", sparql, methods=_METHODS, provide_automatic_options=False, merge_slashes=False
        )
    # to replace the method is how Flask says that an application is wrapped
    gate = None
    if live is not None:
        gate = LiveApplication(live, chosen, access, app.wsgi_app)
        app.wsgi_app = gate  # type: ignore[method-assign]  # as above
    hosts = KnownHosts(chosen.host, chosen.allowed_hosts, app.wsgi_app)
    app.wsgi_app = hosts  # type: ignore[method-assign]  # as above
    app.extensions[DOORS] = Doors(chosen, hosts, gate)
    _add_health(app, endpoint, live)
    add_page(app, _kind(endpoint, live))
    _add_checks(app, chosen, access)
    app.register_error_handler(HTTPException, lambda error: refusal(as_problem(error), flask.request))
    return app


def _kind(endpoint: Answers, live: LiveRoutes | None) -> Kind:
    read_only = isinstance(endpoint, SparqlEndpoint | Upstream) and endpoint.settings.read_only
    return Kind(live is not None, read_only, isinstance(endpoint, Upstream))


def _add_health(app: flask.Flask, endpoint: Answers, live: LiveRoutes | None) -> None:
    def health() -> flask.Response:
        return flask.jsonify(status="ok")

    def ready() -> tuple[flask.Response, int]:
        told = {} if live is None else live.service.health()
        reason = "it is ending" if app.config["DRAINING"] else str(told.get("reason", ""))
        if not reason and not endpoint.ready():
            reason = "the store does not answer, or takes no changes: its disk may be full"
        if not reason:
            return flask.jsonify({"status": "ready", **told}), 200
        return flask.jsonify({"status": "not ready", **told, "reason": reason}), 503

    app.add_url_rule("/health", "health", health)
    app.add_url_rule("/ready", "ready", ready)


def _add_checks(app: flask.Flask, settings: ServerSettings, access: Access) -> None:
    @app.before_request
    def check() -> flask.Response | None:
        request = flask.request
        if settings.cors and request.method == "OPTIONS":
            return preflight(request, settings.cors)
        if request.endpoint in OPEN:
            return None
        writing = _writes(request)
        try:
            flask.g.rights = access.check(request.headers, request.remote_addr, writing=writing)
            if not _is_sparql(request):  # that checks its rights itself
                flask.g.rights.demand("update" if writing else "read", "server")
        except DeniedError as error:
            return refusal(denied(error), request)
        except Problem as problem:
            return refusal(problem, request)
        return None

    @app.after_request
    def finish(response: flask.Response) -> flask.Response:
        if settings.cors:
            allow_origin(flask.request.headers, response.headers, settings.cors)
        return response


def _writes(request: flask.Request) -> bool:
    """Of SPARQL's paths they know it themselves; elsewhere what is not read is written."""
    if _is_sparql(request):
        return is_writing(Request(request.method, request.path))
    return request.method not in ("GET", "HEAD", "OPTIONS")


def _is_sparql(request: flask.Request) -> bool:
    return request.endpoint is not None and request.endpoint.startswith("sparql")
