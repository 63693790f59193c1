"""The page at `/`, its files below `/ui/`, and what kind of server this is. They reveal nothing of the data, so they
need no token."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import flask
from werkzeug.exceptions import NotFound

from oxiseq.grammar.records import dataclass
from oxiseq.page import SECURITY, asset
from oxiseq.page.assets import INDEX

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
