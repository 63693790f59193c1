"""What an ASGI scope says of a request, in our terms, and headers back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from werkzeug.datastructures import Headers

from oxiseq.server.cors import allow_origin
from oxiseq.sparql import Request

Scope = dict[str, Any]
"""ASGI's."""


def address_in(scope: Scope) -> str:
    """Path and query as they were sent."""
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def request_in(scope: Scope) -> partial[Request]:
    """The request but for its body, and what is known when that has come."""
    headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return partial(Request, scope["method"], path, query, headers)


def headers_in(scope: Scope) -> dict[str, str]:
    """By their names in lower case; of several of a name all, with commas."""
    return joined([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names; of several of a name all, with commas."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def client_in(scope: Scope) -> str | None:
    """The client's address."""
    return scope["client"][0] if scope["client"] else None


def sent_headers(
    headers: list[tuple[str, str]], asked: Mapping[str, str], cors: tuple[str, ...]
) -> list[tuple[bytes, bytes]]:
    """Headers of an answer as they are sent, with those that pages from elsewhere need."""
    if cors:
        shared = Headers(headers)
        allow_origin(asked, shared, cors)
        headers = list(shared)
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
