"""The WSGI application: the live service's routes before Flask's, tokens, CORS and health around SPARQL, the page.

The routes of streams, queries and matches as a WSGI application, before Flask's.

A single event is pushed a thousand times a second: Flask's contexts and routing would take longer than all that is
done with it. Paths and methods are distinguished by LiveRoutes, tokens and CORS are checked by the code that Flask's
routes use.

The page at `/`, its files below `/ui/`, and what kind of server this is. They reveal nothing of the data, so they
need no token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Protocol

import flask
import werkzeug
from werkzeug.exceptions import HTTPException, NotFound

from oxiseq.grammar.records import dataclass
from oxiseq.live.api import LiveRoutes
from oxiseq.live.api.routes import FIRST, changes
from oxiseq.page import SECURITY, asset
from oxiseq.page.assets import INDEX
from oxiseq.rights import DeniedError, Rights
from oxiseq.server.access import Access, KnownHosts, check_origin
from oxiseq.server.conversion import Named, allow_origin, as_problem, preflight, refusal, request_of, response_to
from oxiseq.server.settings import ServerSettings
from oxiseq.sparql import Problem, Request, Response, SparqlEndpoint
from oxiseq.sparql.endpoint import is_writing
from oxiseq.sparql.messages import denied
from oxiseq.sparql.upstream import Upstream

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


# --- streams, queries and matches, before Flask ----------------------------------------------------------


class LiveApplication:
    """Answers what LiveRoutes answers, and passes the rest on."""

    def __init__(self, live: LiveRoutes, settings: ServerSettings, access: Access, rest: WSGIApplication) -> None:
        self.routes = live
        self._settings, self._access, self._rest = settings, access, rest

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """WSGI."""
        if not FIRST.intersection(environ["PATH_INFO"].split("/", 2)[1:2]):  # of `OPTIONS *` there is no part
            return self._rest(environ, start_response)
        request = werkzeug.Request(environ)
        response = self._answer(request)
        if self._settings.cors:
            allow_origin(request.headers, response.headers, self._settings.cors)
        return response(environ, start_response)

    def admit(self, method: str, path: str, headers: Named, address: str | None) -> Rights:
        """The rights of a client, from this address; the path is decoded. Raises Problem."""
        return self._access.check(headers, address, writing=changes(method, path))

    def _answer(self, request: werkzeug.Request) -> flask.Response:
        if self._settings.cors and request.method == "OPTIONS":
            return preflight(request, self._settings.cors)
        try:
            rights = self.admit(request.method, request.path, request.headers, request.remote_addr)
            asked = request_of(request, self._settings.body, rights)
        except Problem as problem:
            return refusal(problem, request)
        except HTTPException as error:
            return refusal(as_problem(error), request)
        return response_to(self.routes.answer(asked), request)


def same_rights(admitted: Callable[[], Rights], rights: Rights) -> bool:
    """Whether the client would have the same rights now; `admitted` returns them, or raises Problem."""
    try:
        return admitted() == rights
    except Problem as problem:
        return problem.status == 429  # its token is not checked for now, because of others


# --- the page --------------------------------------------------------------------------------------------

ENDPOINTS: Final = ("page", "page-file", "page-server")
"""Names of the routes here."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the page must know before its first request: whether there are streams and continuous queries (`live`),
    whether updates are refused, whether another endpoint answers SPARQL."""

    live: bool
    read_only: bool
    upstream: bool


def add_page(app: flask.Flask, kind: Kind) -> None:
    """Its routes."""

    def page() -> flask.Response:
        return _sent(INDEX)

    def file(path: str) -> flask.Response:
        return _sent(path)

    app.add_url_rule("/", ENDPOINTS[0], page)

    def server() -> flask.Response:
        response = flask.jsonify(asdict(kind))
        response.headers["Cache-Control"] = "no-store"
        return response

    app.add_url_rule("/ui/<path:path>", ENDPOINTS[1], file)
    app.add_url_rule("/ui/server.json", ENDPOINTS[2], server)


def _sent(path: str) -> flask.Response:
    found = asset(path)
    if found is None:
        raise NotFound(f"no such file: {path}")
    zipped = flask.request.accept_encodings["gzip"] > 0
    response = flask.Response(found.packed if zipped else found.body, content_type=found.media_type)
    if zipped:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = "no-cache"  # validated each time, answered by 304
    response.headers.update(SECURITY)
    response.set_etag(found.etag + ("-z" if zipped else ""))
    response.make_conditional(flask.request)
    return response


# --- the application -------------------------------------------------------------------------------------

DOORS = "oxiseq"
"""Where the application keeps its Doors among Flask's extensions."""
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
OPEN = ("health", "ready", *ENDPOINTS)
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
