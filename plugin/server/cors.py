"""Cross-origin requests, for web pages from elsewhere; answered as `oxigraph serve --cors` does."""

from __future__ import annotations

import flask
import werkzeug


def preflight(request: werkzeug.Request) -> flask.Response:
    """The answer to OPTIONS: what was asked for is allowed."""
    response = flask.Response(status=204)
    for asked, allowed in (("Method", "Methods"), ("Headers", "Headers")):
        value = request.headers.get(f"Access-Control-Request-{asked}")
        if value is not None:
            response.headers[f"Access-Control-Allow-{allowed}"] = value
    response.headers["Access-Control-Max-Age"] = "600"
    return response


def allow_origin(request: werkzeug.Request, response: flask.Response) -> None:
    """Any page may read the response. Tokens are sent by the page itself, never by the browser on its own."""
    if "Origin" in request.headers:
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Expose-Headers"] = (
            "Link, Location, Oxiseq-Last-Id, Oxiseq-Next-Offset, Retry-After, WWW-Authenticate"
        )
