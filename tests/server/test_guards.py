"""Nothing is fetched, read from files or nested without end."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asking import ask, endpoint, limited, problem, send, update

from oxiseq.options.addresses import networks_of
from oxiseq.sparql import Request, SparqlSettings


@contextmanager
def trap() -> Iterator[tuple[str, list[str]]]:
    """A server that notes who asked it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/turtle")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/x", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


QUERIES = [
    "SELECT * { SERVICE <URL> { ?a ?b ?c } }",
    "SELECT * { service silent <URL> { ?a ?b ?c } }",
    "ASK { SeRvIcE<URL>{ ?a ?b ?c } }",
    "SELECT (COUNT(*) AS ?n) { SERVICE SILENT <URL> { ?a ?b ?c } }",
    "PREFIX : <URL> CONSTRUCT { ?a ?b ?c } WHERE { SERVICE: { ?a ?b ?c } }",
    "SELECT * { FILTER EXISTS { SERVICE SILENT <URL> { ?a ?b ?c } } }",
    # `<?b#>` is an IRI for a lexer; for the parser `<` is less-than and the rest a comment
    "SELECT * { VALUES ?a { 1 } VALUES ?b { 2 } FILTER(?a<?b#>'''\n) SERVICE SILENT <URL> { ?x ?y ?z } #'''\n}",
    "SELECT ?servicx ?servica { SERVICE SILENT <URL> { ?a ?b ?c } }",
]


@pytest.mark.parametrize("query", QUERIES)
def test_service_is_refused_unless_allowed(query: str) -> None:
    with trap() as (url, asked):
        text = query.replace("URL", url)
        details = problem(ask(endpoint(), text))
        assert (details["status"], asked) == (403, [])
        assert "SERVICE" in details["detail"]
        ask(endpoint(SparqlSettings(allow_service=True)), text)
        assert asked == ["/x"]


def test_a_service_that_a_variable_names_is_refused() -> None:
    assert ask(endpoint(), "SELECT * { VALUES ?s { <http://e/x> } SERVICE ?s { ?a ?b ?c } }").status == 403


UPDATES = [
    "LOAD <URL>",
    "load silent <URL> INTO GRAPH <http://e/g>",
    "CLEAR ALL; LOAD <URL>",
    "INSERT { ?a ?b ?c } WHERE { SERVICE SILENT <URL> { ?a ?b ?c } }",
]


@pytest.mark.parametrize("text", UPDATES)
def test_load_and_service_in_updates_are_refused_unless_allowed(text: str) -> None:
    with trap() as (url, asked):
        assert update(endpoint(), text.replace("URL", url)).status == 403
        assert asked == []
        settings = SparqlSettings(allow_load=True, allow_service=True, load_networks=networks_of(["127.0.0.1/32"]))
        assert update(endpoint(settings), text.replace("URL", url)).status in (204, 500)
        assert asked == ["/x"]


def test_files_are_never_read(tmp_path: Path) -> None:
    file = tmp_path / "secret.ttl"
    file.write_text("<http://e/secret> <http://e/p> 1 .")
    assert update(endpoint(), f"LOAD <{file.as_uri()}>").status == 403
    allowed = endpoint(SparqlSettings(allow_load=True))
    refused = problem(update(allowed, f"LOAD <{file.as_uri()}>"))
    assert (refused["status"], "http and https only" in refused["detail"]) == (400, True)
    assert b"secret" not in allowed.answer(Request("GET", "/store")).content()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?service ?p 'SERVICE <x> {' } # SERVICE",
        "PREFIX service: <http://service/> SELECT * { service:service ?Service ?SERVICE }",
        "SELECT (1 AS ?service) (2 AS ?servicx) {}",
        '''SELECT * { VALUES ?x { """service 'load' """@service "load"^^<http://service/load> } }''',
    ],
)
def test_the_words_may_stand_where_they_are_none(query: str) -> None:
    assert ask(endpoint(), query).status == 200


def test_the_words_in_updates_may_stand_where_they_are_none() -> None:
    to = endpoint()
    text = "PREFIX load: <http://load/> INSERT DATA { load:service load:p 'LOAD <x> SERVICE' }"
    assert update(to, text).status == 204
    assert ask(to, "ASK { <http://load/service> <http://load/p> 'LOAD <x> SERVICE' }").content().endswith(b"true}")


def test_a_malformed_text_with_the_words_is_malformed() -> None:
    assert problem(ask(endpoint(), "SELECT * {\n?service ?p }"))["line"] == 2
    assert update(endpoint(), "LOAD ;\nCLEAR ALL").status == 400


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * " + "{" * 100_000 + "}" * 100_000,
        "SELECT * { FILTER(" + "(" * 100_000 + "1" + ")" * 100_000 + ") }",
        "SELECT * { FILTER(" + "!" * 100_000 + "1) }",
        "SELECT * { ?a <http://e/p> " + "<<" * 100_000 + "}",
        "SELECT * { ?a <http://e/p> " + "[<http://e/p> " * 20_000,
    ],
)
def test_deep_nesting_is_refused(query: str) -> None:
    assert "deep" in problem(send(endpoint(), "/query", query, "application/sparql-query"))["title"]


def test_nesting_within_the_limit_is_answered() -> None:
    to = endpoint(limited(nesting=500))
    assert ask(to, "ASK " + "{" * 490 + "}" * 490).status == 200
    assert ask(to, "ASK { FILTER(" + "(" * 480 + "1" + ")" * 480 + ") }").status == 200
