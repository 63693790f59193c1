"""Another kind of SPARQL endpoint for tests: rdflib's evaluation behind a small WSGI application, for queries only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, make_server

from rdflib import Dataset

_FORMATS = {"application/sparql-results+json": "json", "text/csv": "csv", "application/n-triples": "nt"}


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def rdflib_endpoint(data: Dataset) -> Iterator[str]:
    """Its address, `.../sparql`."""

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        direct = environ.get("CONTENT_TYPE", "").startswith("application/sparql-query")
        text = body if direct else parse_qs(body or environ["QUERY_STRING"])["query"][0]
        try:
            result = data.query(text)
        except Exception as error:
            start("400 Bad Request", [("Content-Type", "text/html")])
            return [f"<html>{error}</html>".encode()]
        accepted = environ.get("HTTP_ACCEPT", "").split(";")[0]
        default = "application/n-triples" if result.type == "CONSTRUCT" else "application/sparql-results+json"
        media_type = accepted if accepted in _FORMATS else default
        found = result.serialize(format=_FORMATS[media_type]) or b""
        start("200 OK", [("Content-Type", media_type), ("Content-Length", str(len(found)))])
        return [found]

    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/sparql"
        finally:
            server.shutdown()
            thread.join(10)
