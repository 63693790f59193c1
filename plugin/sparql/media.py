"""Formats and which of them a client wants.

Quality values and wildcards are werkzeug's business; here are the names, all that pyoxigraph writes or reads.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

from pyoxigraph import QueryResultsFormat, RdfFormat
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import dump_options_header, parse_accept_header, parse_options_header

from oxiseq.engine.events.messages.announced import VERSION, is_label
from oxiseq.sparql.problems import Problem

_Format = TypeVar("_Format")

# the first name of a format is the one to answer with; earlier formats win when the client does not care
RESULTS: Mapping[str, QueryResultsFormat] = {
    "application/sparql-results+json": QueryResultsFormat.JSON,
    "application/json": QueryResultsFormat.JSON,
    "text/json": QueryResultsFormat.JSON,
    "application/sparql-results+xml": QueryResultsFormat.XML,
    "application/xml": QueryResultsFormat.XML,
    "text/xml": QueryResultsFormat.XML,
    "text/csv": QueryResultsFormat.CSV,
    "text/tab-separated-values": QueryResultsFormat.TSV,
    "text/tsv": QueryResultsFormat.TSV,
}
_QUADS: Mapping[str, RdfFormat] = {
    "application/n-quads": RdfFormat.N_QUADS,
    "text/x-nquads": RdfFormat.N_QUADS,
    "text/nquads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
    "application/x-trig": RdfFormat.TRIG,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/json": RdfFormat.JSON_LD,
    'application/ld+json; profile="http://www.w3.org/ns/json-ld#streaming"': RdfFormat.STREAMING_JSON_LD,
}
_TRIPLES: Mapping[str, RdfFormat] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/turtle": RdfFormat.TURTLE,
    "application/x-turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "text/plain": RdfFormat.N_TRIPLES,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/xml": RdfFormat.RDF_XML,
    "text/xml": RdfFormat.RDF_XML,
    "text/n3": RdfFormat.N3,
}
GRAPHS: Mapping[str, RdfFormat] = {**_TRIPLES, **_QUADS}
DATASETS: Mapping[str, RdfFormat] = _QUADS
PROBLEMS: Mapping[str, bool] = {
    "application/problem+json": True,
    "application/json": True,
    "text/plain": False,
    "text/html": False,
}


def wanted(accept: str | None, offers: Mapping[str, _Format]) -> _Format:
    """The offer that an Accept header likes best; the first without a header. Raises Problem 406."""
    found = _best(accept, offers)
    if found is None:
        raise Problem(406, "no acceptable format", f"offered: {', '.join(offers)}")
    return found


def _best(accept: str | None, offers: Mapping[str, _Format]) -> _Format | None:
    if accept is None or not accept.strip():
        return next(iter(offers.values()))
    items = [(_plain(item, offers), quality) for item, quality in parse_accept_header(accept, MIMEAccept)]
    best = MIMEAccept(items).best_match(offers)
    return offers[best] if best is not None else None


def wants_json_problem(accept: str | None) -> bool:
    """Problem JSON unless the client prefers text."""
    found = _best(accept, PROBLEMS)
    return True if found is None else found


def _plain(item: str, offers: Container[str] = ()) -> str:
    """Without a charset, for everything is UTF-8; JSON-LD's profile is kept, and the version of RDF Messages where they
    are offered."""
    name, options = parse_options_header(item)
    if is_label(options.get("version", "")) and (messages := with_messages(name)) in offers:
        return messages
    if options.get("profile") == "http://www.w3.org/ns/json-ld#streaming":
        return dump_options_header(name, {"profile": options["profile"]})
    return name


def with_messages(media_type: str) -> str:
    """The media type of RDF Messages in a format."""
    return dump_options_header(media_type, {"version": VERSION})


def content_type(format_: QueryResultsFormat | RdfFormat) -> str:
    """The Content-Type of a format; text formats say that they are UTF-8."""
    name = format_.media_type
    return f"{name}; charset=utf-8" if name.startswith("text/") and "charset" not in name else name


def rdf_format(given: str | None) -> RdfFormat:
    """The RDF format that a Content-Type names. Raises Problem 415."""
    found = GRAPHS.get(_plain(given).lower()) if given else None
    if found is None:
        what = f"Content-Type {given}" if given else "no Content-Type"
        raise Problem(415, "not an RDF format", f"{what}; known: {', '.join(GRAPHS)}")
    return found
