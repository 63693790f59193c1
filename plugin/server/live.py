"""The routes of streams, queries and matches as a WSGI application, before Flask's.

A single event is pushed a thousand times a second: Flask's contexts and routing would take longer than all that is
done with it. Paths and methods are distinguished by LiveRoutes, tokens and CORS are checked by the code that Flask's
routes use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import flask
import werkzeug
from werkzeug.exceptions import HTTPException

from oxiseq.live.api import LiveRoutes
from oxiseq.live.api.routes import FIRST, changes
from oxiseq.rights import Rights
from oxiseq.server.access import Access
from oxiseq.server.conversion import request_of, response_to
from oxiseq.server.cors import Named, allow_origin, preflight
from oxiseq.server.refusals import as_problem, refusal
from oxiseq.server.settings import ServerSettings
from oxiseq.sparql import Problem

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


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
