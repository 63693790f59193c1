"""Requests to an endpoint without a socket."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from oxiseq.api.store import Store
from oxiseq.sparql import Limits, Request, Response, SparqlEndpoint, SparqlSettings

DATA = """
INSERT DATA {
  <http://e/a> <http://e/p> 1 , 2 .
  GRAPH <http://e/g> { <http://e/a> <http://e/p> 3 }
  GRAPH <http://e/h> { <http://e/a> <http://e/p> 4 }
}"""


def endpoint(settings: SparqlSettings | None = None, data: str = DATA) -> SparqlEndpoint:
    """An endpoint over a new store in memory with some data."""
    store = Store()
    store.update(data)
    return SparqlEndpoint(store, settings)


def limited(**limits: Any) -> SparqlSettings:
    """Settings with these limits."""
    return SparqlSettings(limits=Limits(**limits))


def get(
    to: SparqlEndpoint,
    path: str,
    parameters: list[tuple[str, str]] | None = None,
    accept: str | None = None,
    method: str = "GET",
) -> Response:
    """A request without a body."""
    headers = () if accept is None else (("accept", accept),)
    return to.answer(Request(method, path, urlencode(parameters or [], quote_via=quote), headers))


def send(
    to: SparqlEndpoint,
    path: str,
    body: str | bytes,
    media_type: str | None,
    parameters: list[tuple[str, str]] | None = None,
    method: str = "POST",
    accept: str | None = None,
) -> Response:
    """A request with a body."""
    headers = [] if media_type is None else [("Content-Type", media_type)]
    headers += [] if accept is None else [("Accept", accept)]
    content = body.encode() if isinstance(body, str) else body
    return to.answer(Request(method, path, urlencode(parameters or []), tuple(headers), content))


def ask(to: SparqlEndpoint, query: str, *more: tuple[str, str], accept: str | None = None) -> Response:
    """A query by GET."""
    return get(to, "/query", [("query", query), *more], accept)


def update(to: SparqlEndpoint, text: str, *more: tuple[str, str]) -> Response:
    """An update, sent directly."""
    return send(to, "/update", text, "application/sparql-update", list(more))


def column(response: Response) -> list[str]:
    """The values of a one-column JSON result, sorted."""
    assert response.status == 200, response
    found = json.loads(response.content())["results"]["bindings"]
    return sorted(value["value"] for row in found for value in row.values())


def problem(response: Response) -> dict[str, Any]:
    """Problem details; the status in them is the response's."""
    assert response.header("content-type") == "application/problem+json"
    details: dict[str, Any] = json.loads(response.content())
    assert details["status"] == response.status
    return details
