"""Cross-origin requests, for web pages from elsewhere; answered as `oxigraph serve --cors` does.

`*` among the origins: any page may ask and read. What writes must be named (see access.py).
"""

from __future__ import annotations

from typing import Final, Protocol

import flask
import werkzeug
from werkzeug.datastructures import Headers

ANY: Final = "*"


class Named(Protocol):
    """Headers of a request: a framework's, or a dictionary with names in lower case."""

    def get(self, name: str, /) -> str | None:
        """The value of the one of this name in lower case."""


def named(origin: str, origins: tuple[str, ...]) -> bool:
    """Whether it is one of them itself."""
    return origin != ANY and origin.lower() in {each.lower().rstrip("/") for each in origins}


def preflight(request: werkzeug.Request, origins: tuple[str, ...]) -> flask.Response:
    """The answer to OPTIONS: the request is allowed to pages of allowed origins."""
    response = flask.Response(status=204)
    if not _may_ask(request.headers, origins):
        return response
    for asked, allowed in (("Method", "Methods"), ("Headers", "Headers")):
        value = request.headers.get(f"Access-Control-Request-{asked}")
        if value is not None:
            response.headers[f"Access-Control-Allow-{allowed}"] = value
    response.headers["Access-Control-Max-Age"] = "600"
    return response


def allow_origin(asked: Named, headers: Headers, origins: tuple[str, ...]) -> None:
    """The page may read the response with these headers. Tokens are sent by the page itself, never by the browser."""
    if ANY not in origins:
        headers.add("Vary", "Origin")
    origin = asked.get("origin")
    if origin is not None and _may_ask(asked, origins):
        headers["Access-Control-Allow-Origin"] = ANY if ANY in origins else origin
        headers["Access-Control-Expose-Headers"] = (
            "Link, Location, Oxiseq-Last-Id, Oxiseq-Next-Offset, Retry-After, WWW-Authenticate"
        )


def _may_ask(asked: Named, origins: tuple[str, ...]) -> bool:
    return ANY in origins or named(asked.get("origin") or "", origins)
