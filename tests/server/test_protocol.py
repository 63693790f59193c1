"""The protocol layer, without a socket: one fact per test."""

from __future__ import annotations

import pytest
from asking import ask, column, endpoint, get, limited, problem, send, update

from oxiseq.sparql import Request, SparqlSettings

OBJECTS = "SELECT ?o { ?s ?p ?o }"
FORM = "application/x-www-form-urlencoded"


def test_a_query_by_get_by_form_and_directly() -> None:
    to = endpoint()
    assert column(ask(to, OBJECTS)) == ["1", "2"]
    assert column(send(to, "/query", "query=SELECT+%3Fo+%7B+%3Fs+%3Fp+%3Fo+%7D", FORM)) == ["1", "2"]
    assert column(send(to, "/query", OBJECTS, "application/sparql-query; charset=UTF-8")) == ["1", "2"]


@pytest.mark.parametrize(
    ("graphs", "expected"),
    [
        ([], ["1", "2", "3", "4"]),
        ([("default-graph-uri", "http://e/g")], ["3"]),
        ([("default-graph-uri", "http://e/g"), ("default-graph-uri", "http://e/h")], ["3", "4"]),
        ([("named-graph-uri", "http://e/h")], ["4"]),
        ([("default-graph-uri", "http://e/g"), ("named-graph-uri", "http://e/h")], ["3", "4"]),
        ([("union-default-graph", "")], ["3", "3", "4", "4", "1", "2"]),
    ],
)
def test_the_dataset_is_what_the_protocol_names(graphs: list[tuple[str, str]], expected: list[str]) -> None:
    query = "SELECT ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
    assert column(ask(endpoint(), query, *graphs)) == sorted(expected)


def test_the_protocols_dataset_stands_before_from() -> None:
    query = "SELECT ?o FROM <http://e/h> { ?s ?p ?o }"
    assert column(ask(endpoint(), query)) == ["4"]
    assert column(ask(endpoint(), query, ("default-graph-uri", "http://e/g"))) == ["3"]


@pytest.mark.parametrize("name", ["default-graph-uri", "named-graph-uri"])
@pytest.mark.parametrize("iri", ["not an iri", "relative", "http://[::1", ""])
def test_a_graph_that_is_no_iri_is_a_bad_request(name: str, iri: str) -> None:
    assert ask(endpoint(), "ASK {}", (name, iri)).status == 400


def test_a_union_and_named_graphs_contradict() -> None:
    response = ask(endpoint(), "ASK {}", ("union-default-graph", ""), ("named-graph-uri", "http://e/g"))
    assert response.status == 400


RESULTS = [
    (None, "application/sparql-results+json"),
    ("*/*", "application/sparql-results+json"),
    ("application/json", "application/sparql-results+json"),
    ("application/sparql-results+xml", "application/sparql-results+xml"),
    ("application/sparql-results+xml, */*", "application/sparql-results+xml"),
    ("text/csv; charset=utf-8", "text/csv; charset=utf-8"),
    ("text/*", "application/sparql-results+json"),
    ("text/csv;q=0.2, text/tab-separated-values;q=0.9", "text/tab-separated-values; charset=utf-8"),
    (
        "application/sparql-results+json;q=0, application/json;q=0, text/json;q=0, */*;q=0.1",
        "application/sparql-results+xml",
    ),
    ("image/png, text/csv;q=0.1", "text/csv; charset=utf-8"),
]


@pytest.mark.parametrize(("accept", "media_type"), RESULTS)
def test_the_format_of_results_is_negotiated(accept: str | None, media_type: str) -> None:
    response = ask(endpoint(), OBJECTS, accept=accept)
    assert (response.status, response.header("content-type")) == (200, media_type)


GRAPHS = [
    "text/turtle",
    "application/n-triples",
    "application/rdf+xml",
    "application/n-quads",
    "application/trig",
    "application/ld+json",
    "text/n3",
]


@pytest.mark.parametrize("media_type", GRAPHS)
def test_a_graph_is_written_in_every_format(media_type: str) -> None:
    for response in (
        ask(endpoint(), "CONSTRUCT WHERE { ?s ?p ?o }", accept=media_type),
        get(endpoint(), "/store", [("graph", "http://e/g")], accept=media_type),
    ):
        assert response.status == 200
        assert (response.header("content-type") or "").partition(";")[0] == media_type
        assert b"http://e/a" in response.content()


def test_streaming_json_ld_is_asked_for_by_its_profile() -> None:
    accept = 'application/ld+json; profile="http://www.w3.org/ns/json-ld#streaming"'
    response = ask(endpoint(), "CONSTRUCT WHERE { ?s ?p ?o }", accept=accept)
    assert "streaming" in (response.header("content-type") or "")


@pytest.mark.parametrize("accept", ["image/png", "text/turtle", "application/sparql-results+json;q=0"])
def test_no_acceptable_format(accept: str) -> None:
    assert ask(endpoint(), OBJECTS, accept=accept).status == 406


def test_booleans_have_formats_too() -> None:
    for accept, body in [("text/csv", b"true"), ("application/sparql-results+json", b'{"head":{},"boolean":true}')]:
        assert ask(endpoint(), "ASK {}", accept=accept).content() == body


def test_a_syntax_error_is_told_in_our_words() -> None:
    details = problem(ask(endpoint(), "SELECT *\n{ ?s ?p }"))
    assert (details["status"], details["line"], details["column"]) == (400, 2, 9)
    assert details["message"] == "unexpected `}`"
    assert details["expected"] == "a variable, an IRI, a literal, a blank node or `(`"
    assert details["hint"] == "a triple is subject, predicate, object"
    assert details["detail"].startswith("unexpected `}`; expected: a variable, ")


def test_a_problem_as_text_for_who_asks_for_it() -> None:
    response = ask(endpoint(), "SELECT *", accept="text/plain")
    assert (response.status, response.header("content-type")) == (400, "text/plain; charset=utf-8")
    assert response.content().decode().splitlines() == [
        "malformed SPARQL: unexpected end of the query",
        "line 1, column 9",
        "  1 | SELECT *",
        "    |         ^",
        "expected: FROM, WHERE or `{`",
    ]


def test_relative_iris_are_resolved_against_the_address() -> None:
    assert column(ask(endpoint(), "SELECT (<x> AS ?i) {}")) == ["http://localhost/x"]


@pytest.mark.parametrize(
    ("method", "path", "media_type", "status"),
    [
        ("PUT", "/query", None, 405),
        ("DELETE", "/update", None, 405),
        ("PATCH", "/store", None, 405),
        ("POST", "/query", None, 415),
        ("POST", "/query", "text/plain", 415),
        ("POST", "/query", "application/sparql-update", 415),
        ("POST", "/update", "application/sparql-query", 415),
        ("POST", "/query", "application/sparql-query; charset=UTF-16", 415),
        ("POST", "/store", "image/png", 415),
        ("POST", "/store", None, 415),
        ("GET", "/nothing", None, 404),
    ],
)
def test_what_is_not_of_the_protocol(method: str, path: str, media_type: str | None, status: int) -> None:
    response = send(endpoint(), path, b"ASK {}", media_type, method=method)
    assert response.status == status
    assert (response.header("allow") is not None) == (status == 405)


def test_texts_that_are_missing_doubled_or_no_utf_8() -> None:
    to = endpoint()
    assert get(to, "/query", [("default-graph-uri", "http://e/g")]).status == 400
    assert get(to, "/query", [("query", "ASK {}"), ("query", "ASK {}")]).status == 400
    assert send(to, "/query", "ASK {}", "application/sparql-query", [("query", "ASK {}")]).status == 400
    assert send(to, "/query", b"ASK { \xff }", "application/sparql-query").status == 400
    assert to.answer(Request("GET", "/query", "query=ASK%20%FF")).status == 400
    assert get(to, "/update", [("update", "CLEAR ALL")]).status == 405


def test_an_update_is_all_or_nothing() -> None:
    to = endpoint()
    assert update(to, "CLEAR ALL; INSERT DATA { <http://e/b> <http://e/p> 9 }").status == 204
    assert column(ask(to, OBJECTS)) == ["9"]
    assert update(to, "CLEAR ALL; CLEAR GRAPH <http://e/none>").status == 404
    assert column(ask(to, OBJECTS)) == ["9"]
    assert problem(update(to, "CLEAR ALL;\nNONSENSE"))["line"] == 2


@pytest.mark.parametrize(
    ("text", "graphs", "expected"),
    [
        ("INSERT { <http://e/n> <http://e/p> ?o } WHERE { ?s ?p ?o }", ["using-graph-uri=http://e/g"], ["3"]),
        (
            "DELETE { ?s ?p 'where {' } INSERT { <http://e/n> <http://e/p> ?o } # WHERE\nwhere{ ?s ?p ?o }",
            ["using-graph-uri=http://e/g", "using-graph-uri=http://e/h"],
            ["3", "4"],
        ),
        (
            "INSERT { <http://e/n> <http://e/p> ?o } WHERE { GRAPH ?g { ?s ?p ?o } }",
            ["using-named-graph-uri=http://e/h"],
            ["4"],
        ),
        (
            "INSERT { <http://e/n> <http://e/p> ?o } WHERE { { SELECT ?o WHERE { ?s ?p ?o } } }",
            ["using-graph-uri=http://e/h"],
            ["4"],
        ),
        (
            "CLEAR DEFAULT; INSERT { <http://e/n> <http://e/p> ?o } WHERE { ?s ?p ?o }",
            ["using-graph-uri=http://e/h"],
            ["4"],
        ),
    ],
)
def test_using_graph_uri(text: str, graphs: list[str], expected: list[str]) -> None:
    to = endpoint()
    named = [tuple(graph.split("=", 1)) for graph in graphs]
    assert update(to, text, *named).status == 204  # type: ignore[arg-type]  # pairs
    assert column(ask(to, "SELECT ?o { <http://e/n> ?p ?o }")) == expected


def test_using_graph_uri_of_delete_where() -> None:
    to = endpoint()
    assert update(to, "INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/p> 1 } }").status == 204
    assert update(to, "DELETE WHERE { ?s ?p ?o }", ("using-graph-uri", "http://e/g")).status == 204
    assert column(ask(to, OBJECTS)) == ["2"]  # 1 and 3 are found in the graph, and deleted in the default graph


@pytest.mark.parametrize("clause", ["USING <http://e/g>", "using named <http://e/g>"])
def test_using_given_twice(clause: str) -> None:
    text = f"INSERT {{ ?s ?p 7 }} {clause} WHERE {{ ?s ?p ?o }}"
    assert update(endpoint(), text, ("using-graph-uri", "http://e/g")).status == 400
    assert update(endpoint(), f"WITH <http://e/g> {text}", ("using-graph-uri", "http://e/g")).status == 400
    assert update(endpoint(), text).status == 204


def test_a_read_only_endpoint_answers_and_refuses() -> None:
    to = endpoint(SparqlSettings(read_only=True))
    assert column(ask(to, OBJECTS)) == ["1", "2"]
    assert update(to, "CLEAR ALL").status == 403
    for method in ("PUT", "POST", "DELETE"):
        assert send(to, "/store", "", "text/turtle", [("default", "")], method).status == 403
    assert get(to, "/update").status == 200
    assert column(ask(to, OBJECTS)) == ["1", "2"]


def test_bodies_and_queries_that_are_too_long() -> None:
    assert send(endpoint(limited(body=10)), "/query", "SELECT * {}", "application/sparql-query").status == 413
    assert send(endpoint(limited(query=10)), "/query", "SELECT * {}", "application/sparql-query").status == 413


def test_head_is_get_without_its_body() -> None:
    to = endpoint()
    for path, parameters in [("/query", []), ("/query", [("query", "ASK {}")]), ("/store", [("default", "")])]:
        head, full = get(to, path, parameters, method="HEAD"), get(to, path, parameters)
        assert (head.status, head.headers, head.body) == (200, full.headers, b"")


def test_the_service_description_tells_the_formats_that_are_written() -> None:
    text = get(endpoint(), "/query", accept="application/n-triples").content().decode()
    for name in ("SPARQL_Results_JSON", "SPARQL_Results_CSV", "Turtle", "N-Quads", "RDF_XML"):
        assert f"<http://www.w3.org/ns/formats/{name}>" in text
    assert "BasicFederatedQuery" not in text
    allowed = endpoint(SparqlSettings(allow_service=True))
    assert b"BasicFederatedQuery" in get(allowed, "/query").content()
    assert b"SPARQL11Update" in get(endpoint(), "/update").content()
