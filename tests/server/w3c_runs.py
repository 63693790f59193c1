"""Running the W3C's tests against an address: the same code for any server. Failures are AssertionErrors."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any
from urllib.parse import quote

from http_client import Answer, ask
from pyoxigraph import BlankNode, QueryBoolean, QueryResultsFormat, RdfFormat, parse_query_results
from rdflib import Graph
from rdflib.compare import isomorphic
from w3c_manifests import Case, FormatCase, Step

_CLASSES = {"OK": "200", "Created": "201", "NoContent": "204", "NotFound": "404", "BadRequest": "400"}
_MEDIA = {
    "boolean": ["application/sparql-results+xml", "application/sparql-results+json"],
    "tabular": [
        "application/sparql-results+xml",
        "application/sparql-results+json",
        "text/csv",
        "text/tab-separated-values",
    ],
    "RDF": ["application/rdf+xml", "text/turtle", "application/n-triples", "application/n-quads"],
}
_RESULTS = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".srj": "application/sparql-results+json",
}


def empty(address: str) -> None:
    """Without any graph."""
    answer = ask(address, "POST", "/update", [("Content-Type", "application/sparql-update")], b"DROP ALL")
    assert answer.status == 204


def run_case(address: str, case: Case) -> None:
    """All requests of a test in order."""
    empty(address)
    for iri, file in case.graphs:
        target = f"/store?graph={quote(iri, safe='')}"
        assert ask(address, "PUT", target, [("Content-Type", "application/n-triples")], file.read_bytes()).status < 300
    known: dict[str, str] = {}
    for step in case.steps:
        target = _target(case, step)
        for name, value in known.items():
            target = target.replace(name, quote(value, safe=""))
        _check(step, ask(address, step.method, target, step.headers, step.body), known)


def _target(case: Case, step: Step) -> str:
    """The manifests' `/sparql/` and `/gsp` at the paths of oxigraph's server."""
    if step.target.startswith("/gsp"):
        return "/store" + step.target.removeprefix("/gsp")
    body = step.body or b""
    update = (
        "sparql-update" in dict(step.headers).get("content-type", "")
        or body.startswith(b"update=")
        or "update=" in step.target
        or case.name.startswith("bad_update")
        or case.name == "bad_multiple_updates"
    )
    return ("/update" if update else "/query") + step.target.removeprefix("/sparql/")


def _check(step: Step, answer: Answer, known: dict[str, str]) -> None:
    expected = step.expected
    statuses = [_CLASSES.get(name, name.removeprefix("StatusCode")) for name in expected.statuses]
    assert any(_is_status(answer.status, status) for status in statuses), (answer, statuses)
    if expected.format is not None:
        assert answer.media_type in _MEDIA[expected.format], answer
    if expected.boolean is not None:
        format_ = QueryResultsFormat.from_media_type(answer.media_type)
        found = parse_query_results(answer.body, format_)
        assert isinstance(found, QueryBoolean)
        assert bool(found) == expected.boolean, answer
    if expected.location is not None:
        known[expected.location] = answer.headers["location"]
    if expected.media_type is not None:
        assert answer.media_type == expected.media_type.partition(";")[0], answer
    if expected.body is not None:
        ours = Graph().parse(data=answer.body, format=answer.media_type, publicID="http://www.example/")
        theirs = Graph().parse(data=expected.body, format="turtle", publicID="http://www.example/")
        assert isomorphic(ours, theirs), answer.body.decode()


def _is_status(status: int, expected: str) -> bool:
    return str(status) == expected or (expected.endswith("xx") and str(status)[0] == expected[0])


def run_format(address: str, case: FormatCase) -> None:
    """A query's results in the format of the expected file, as bags of rows with blank nodes alike."""
    empty(address)
    sent = ask(address, "PUT", "/store?default", [("Content-Type", "text/turtle")], case.data.read_bytes())
    assert sent.status < 300
    media_type = _RESULTS[case.result.suffix]
    answer = ask(address, "GET", f"/query?query={quote(case.query)}", [("Accept", media_type)])
    assert (answer.status, answer.media_type) == (200, media_type)
    assert _rows(answer.body, case.result.suffix) == _rows(case.result.read_bytes(), case.result.suffix)


def _rows(content: bytes, ending: str) -> Any:
    if ending == ".csv":
        head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
        values = [{n: "_:" if v.startswith("_:") else v for n, v in zip(head, row, strict=True)} for row in rows]
        return Counter(frozenset(row.items()) for row in values)
    format_ = QueryResultsFormat.TSV if ending == ".tsv" else QueryResultsFormat.JSON
    found = parse_query_results(content, format_)
    if isinstance(found, QueryBoolean):
        return bool(found)
    names = [variable.value for variable in found.variables]
    return Counter(
        frozenset((name, "_:" if isinstance(row[name], BlankNode) else str(row[name])) for name in names)
        for row in found
    )


def run_description(address: str, name: str) -> None:
    """The three tests of the service description."""
    answer = ask(address, "GET", "/query", [("Accept", "text/turtle")])
    assert answer.status == 200
    assert RdfFormat.from_media_type(answer.media_type) is not None
    graph = Graph().parse(data=answer.body, format=answer.media_type, publicID=f"{address}/query")
    sd = "http://www.w3.org/ns/sparql-service-description#"
    services = list(graph.query(f"SELECT ?s {{ ?s a <{sd}Service> }}"))
    if name == "has-endpoint-triple":
        assert graph.query(f"ASK {{ ?s <{sd}endpoint> <{address}/query> }}").askAnswer
    if name == "conforms-to-schema":
        assert len(services) == 1
        for kind, prop in [("Language", "supportedLanguage"), ("Feature", "feature"), ("Format", "resultFormat")]:
            wrong = f"SELECT ?x {{ ?s <{sd}{prop}> ?x FILTER(!isIRI(?x)) }}"
            assert not list(graph.query(wrong)), kind
