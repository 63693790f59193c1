"""SERVICE <stream> in ordinary SPARQL: joined with the knowledge base, which sees no event unless it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from asking import ask, column, get, problem, send, update
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, Variable, parse_query_results
from pyoxigraph import Store as RdfStore
from trades import EX, OWNERS, PREFIXES, QUOTES, TRADES, path, table, trade

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.sparql import Limits, Request, Response, SparqlEndpoint, SparqlSettings
from oxiseq.sparql.services import blocks, inner_text, with_values

PRICES = f"{PREFIXES} SELECT ?p {{ SERVICE :trades {{ GRAPH ?e {{ ?t :price ?p }} }} }}"


class Server:
    """An endpoint with streams, and its live routes."""

    def __init__(self, folder: Path, settings: SparqlSettings | None = None, live: LiveSettings | None = None) -> None:
        self.store = Store()
        self.store.update(OWNERS)
        self.endpoint = SparqlEndpoint(self.store, settings)
        self.service = LiveService(self.store, folder, live or LiveSettings(idle=None), "normal")
        self.routes = LiveRoutes(self.service, self.endpoint.evaluations)
        self.endpoint.offer(self.routes.services)

    def live(self, method: str, path: str, body: str = "", media_type: str = "application/json") -> Response:
        return self.routes.answer(Request(method, path, "", (("content-type", media_type),), body.encode()))

    def push(self, body: str, stream: str = TRADES) -> None:
        answer = self.live("POST", path(stream), body, "application/n-quads")
        assert answer.status == 200, answer.content()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    with made.service:
        for stream in (TRADES, QUOTES):
            assert made.live("PUT", path(stream)).status == 200
        yield made


@pytest.fixture
def traded(server: Server) -> Server:
    """With three trades."""
    server.push(trade(1, "acme", 10) + trade(2, "bolt", 7))
    server.push(trade(3, "acme", 30))
    return server


def details(response: Response) -> dict[str, Any]:
    return problem(response)


def test_trades_joined_with_the_knowledge_base(traded: Server) -> None:
    text = f"""{PREFIXES}
    SELECT ?sector (SUM(?price) AS ?sum) (MAX(?time) AS ?last) {{
      SERVICE :trades {{
        GRAPH ?event {{ ?trade :of ?company ; :price ?price }}
        ?event prov:generatedAtTime ?time ; <urn:oxiseq:stream> ?stream
        FILTER(?time >= "2024-05-01T10:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>)
      }}
      ?company :sector ?sector
    }} GROUP BY ?sector ORDER BY ?sector"""
    expected = [
        {"sector": f"{EX}steel", "sum": "40", "last": "2024-05-01T10:00:03Z"},
        {"sector": f"{EX}tools", "sum": "7", "last": "2024-05-01T10:00:02Z"},
    ]
    assert table(ask(traded.endpoint, text)) == expected
    assert table(send(traded.endpoint, "/query", text, "application/sparql-query")) == expected
    traded.push(trade(4, "bolt", 100))
    assert table(ask(traded.endpoint, text))[1]["sum"] == "107"


def test_two_streams_named_graphs_optional_and_exists(traded: Server) -> None:
    traded.push(trade(5, "acme", 11), QUOTES)
    both = f"""{PREFIXES} SELECT ?paid ?asked ?who {{
      SERVICE :trades {{ GRAPH ?e {{ ?t :of ?c ; :price ?paid }} }}
      OPTIONAL {{ SERVICE <{QUOTES}> {{ GRAPH ?f {{ ?q :of ?c ; :price ?asked }} }} }}
      OPTIONAL {{ GRAPH :board {{ ?c :chair ?who }} }}
    }} ORDER BY ?paid"""
    assert table(ask(traded.endpoint, both)) == [
        {"paid": "7"},
        {"paid": "10", "asked": "11", "who": "Ann"},
        {"paid": "30", "asked": "11", "who": "Ann"},
    ]
    idle = f"""{PREFIXES} SELECT ?c {{ ?c :sector ?s
      FILTER NOT EXISTS {{ SERVICE :trades {{ GRAPH ?e {{ ?t :of ?c }} }} }} }}"""
    assert column(ask(traded.endpoint, idle)) == [f"{EX}idle"]
    counted = f"{PREFIXES} SELECT (COUNT(*) AS ?n) {{ SERVICE SILENT :trades {{ ?s ?p ?o }} }}"
    assert column(ask(traded.endpoint, counted)) == ["6"]
    unbound = f"{PREFIXES} SELECT ?c ?x {{ SERVICE :trades {{ {{ GRAPH ?e {{ ?t :price ?x }} }} UNION {{}} }} }}"
    assert sorted(row.get("x", "") for row in table(ask(traded.endpoint, unbound))) == ["", "10", "30", "7"]


def test_an_event_keeps_its_name_and_its_blank_nodes_are_its_own(traded: Server) -> None:
    named = f"{PREFIXES} SELECT ?e {{ SERVICE :trades {{ GRAPH ?e {{ ?t :price 30 }} }} }}"
    (found,) = column(ask(traded.endpoint, named))
    assert found == f"urn:oxiseq:event:{quote(TRADES, safe='')}:2"
    price = f"{PREFIXES} SELECT ?p {{ SERVICE :trades {{ GRAPH <{found}> {{ ?t :price ?p }} }} }}"
    assert column(ask(traded.endpoint, price)) == ["30"]
    joined = f"""{PREFIXES} SELECT ?c ?p {{
      SERVICE :trades {{ GRAPH ?e {{ ?t :of ?c }} }} SERVICE :trades {{ GRAPH ?e2 {{ ?t :price ?p }} }} }}"""
    assert sorted((r["c"], r["p"]) for r in table(ask(traded.endpoint, joined))) == [
        (f"{EX}acme", "10"),
        (f"{EX}acme", "30"),
        (f"{EX}bolt", "7"),
    ]
    outside = joined.replace("?c ?p {", "?t {", 1)
    assert all(term.startswith("urn:oxiseq:blank:") for term in column(ask(traded.endpoint, outside)))


def test_the_knowledge_base_sees_no_event(traded: Server) -> None:
    for text, expected in (
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "3"),
        ("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }", "1"),
    ):
        before = table(ask(traded.endpoint, text))
        assert column(ask(traded.endpoint, PRICES)) == ["10", "30", "7"]
        assert table(ask(traded.endpoint, text)) == before == [{"n": expected}]
    assert len(table(ask(traded.endpoint, "SELECT * { ?s ?p ?o }", ("union-default-graph", "")))) == 4
    dumped = get(traded.endpoint, "/store", accept="application/n-quads").content()
    assert dumped.count(b"\n") == 4
    assert b"trades" not in dumped
    outside = f"{PREFIXES} SELECT ?t {{ SERVICE :trades {{ GRAPH ?e {{ ?x :price ?p }} }} ?e prov:generatedAtTime ?t }}"
    assert table(ask(traded.endpoint, outside)) == []


def test_an_update_may_ask_for_events(traded: Server) -> None:
    version = traded.store.kb.version
    text = f"""{PREFIXES} PREFIX s: <{EX}>
      INSERT {{ ?c :traded ?p }} WHERE {{ SERVICE :trades {{ GRAPH ?e {{ ?t :of ?c ; :price ?p }} }} }} ;
      INSERT {{ :all :max ?m }}
      WHERE {{ SELECT (MAX(?p) AS ?m) {{ SERVICE s:trades {{ GRAPH ?e {{ ?t :price ?p }} }} }} }}"""
    assert update(traded.endpoint, text).status == 204
    assert column(ask(traded.endpoint, f"SELECT ?p {{ ?c <{EX}traded> ?p }}")) == ["10", "30", "7"]
    assert column(ask(traded.endpoint, f"SELECT ?p {{ ?c <{EX}max> ?p }}")) == ["30"]
    assert traded.store.kb.version > version


def test_datasets_of_the_request_are_of_the_knowledge_base(traded: Server) -> None:
    text = f"{PREFIXES} SELECT ?who {{ SERVICE :trades {{ GRAPH ?e {{ ?t :of ?c }} }} ?c :chair ?who }}"
    assert table(ask(traded.endpoint, text)) == []
    assert column(ask(traded.endpoint, text, ("default-graph-uri", f"{EX}board"))) == ["Ann", "Ann"]


def test_other_servers_are_as_forbidden_as_before(traded: Server) -> None:
    other = "SERVICE <http://127.0.0.1:9/> { ?s ?p ?o }"
    for text in (
        f"SELECT * {{ {other} }}",
        f"SELECT * {{ SERVICE <{TRADES}> {{ ?a ?b ?c }} {other} }}",
        f"SELECT * {{ SERVICE <{TRADES}> {{ {other} }} }}",
        "SELECT * { SERVICE ?x { ?s ?p ?o } }",
        f"SELECT * {{ SERVICE <{TRADES}x> {{ ?s ?p ?o }} }}",
    ):
        refused = details(ask(traded.endpoint, text))
        assert refused["status"] == 403, text
        assert "SERVICE outside of its streams; the server was started without --allow-service" in refused["detail"]
        assert update(traded.endpoint, f"INSERT {{ <x:a> <x:b> <x:c> }} WHERE {{ {text} }}").status == 403
    loading = f"LOAD <http://127.0.0.1:9/> ; INSERT {{ ?a ?b ?c }} WHERE {{ SERVICE <{TRADES}> {{ ?a ?b ?c }} }}"
    assert update(traded.endpoint, loading).status == 403


def test_data_with_the_word_service_is_data(server: Server) -> None:
    told = " } SERVICE <http://127.0.0.1:9/> { ?s ?p ?o }"
    server.push(trade(1, "service", 1, f'<{EX}a> <{EX}b> "{told}" <{EX}t1> .\n'))
    text = f"SELECT ?o {{ SERVICE <{TRADES}> {{ GRAPH ?e {{ ?s <{EX}b> ?o }} }} }}"
    assert column(ask(server.endpoint, text)) == [told]
    assert update(server.endpoint, f"INSERT {{ <x:a> <x:b> ?o }} WHERE {{ {text} }}").status == 204


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * {\n SERVICE <S> {\n GRAPH ?e { ?s ?p } } }",
        "SELECT * {\n SERVICE <S> {\n ?s ?p ?o }\n ?x }",
        "SELECT * { SERVICE <S> { GRAPH ?e { ?s ?p ?o } } ?x ?y }",
        "PREFIX : <http://e/>\nSELECT * { ?a :b ?c SERVICE <S> { GRAPH ?e { ?s\n\n :p ?o } } ?x }\n",
        "SELECT * { SERVICE <S> { ?s ?p ?o }",
        "SELECT * { SERVICE <S> { ?s nope:p ?o } }",
    ],
)
def test_syntax_errors_have_their_place(server: Server, text: str) -> None:
    plain = details(ask(server.endpoint, text.replace("SERVICE <S>", f"GRAPH <{TRADES}xx>")))
    told = details(ask(server.endpoint, text.replace("SERVICE <S>", f"SERVICE <{TRADES}>")))
    assert (told["status"], told["title"]) == (400, "malformed SPARQL")
    assert (told["line"], told["column"]) == (plain["line"], plain["column"])


def test_retention_by_count_and_time_is_set_per_stream(traded: Server) -> None:
    assert json.loads(traded.live("GET", path(TRADES)).content())["retention"] == {"for": "1h", "count": None}
    answer = traded.live("PATCH", path(TRADES), '{"retention": {"count": 1}}')
    assert json.loads(answer.content())["retention"] == {"for": None, "count": 1}
    traded.service.journal.retain()
    assert column(ask(traded.endpoint, PRICES)) == ["30"]
    assert traded.live("PUT", path(TRADES), '{"retention": {"for": "0s"}}').status == 200
    traded.service.journal.retain()
    assert column(ask(traded.endpoint, PRICES)) == []
    assert traded.live("PUT", path(f"{EX}new"), '{"retention": {"for": "60s", "count": 5}}').status == 200
    assert json.loads(traded.live("PUT", path(f"{EX}new")).content())["retention"] == {"for": "1m", "count": 5}
    for method, body, status in (
        ("PATCH", '{"retention": {"count": -1}}', 400),
        ("PATCH", '{"retention": 1}', 400),
        ("PATCH", '{"kep": {}}', 400),
        ("PUT", "[]", 400),
        ("PATCH", "{", 400),
    ):
        assert traded.live(method, path(TRADES), body).status == status
    assert traded.live("PATCH", path(f"{EX}unknown"), '{"retention": {"count": 1}}').status == 404


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    text = f"{PREFIXES} SELECT * {{ SERVICE :trades {{ GRAPH ?e {{ [] :price ?p }} ?e prov:generatedAtTime ?t }} }}"
    answers = []
    for start in range(2):
        server = Server(tmp_path)
        with server.service:
            if not start:
                server.live("PUT", path(TRADES))
                server.push(trade(1, "acme", 10) + trade(2, "bolt", 7))
            answers.append(sorted(map(repr, table(ask(server.endpoint, text)))))
    assert len(answers[0]) == 2
    assert answers[0] == answers[1]


def test_bounds_are_told(tmp_path: Path) -> None:
    limited = SparqlSettings(limits=Limits(query=300))
    server = Server(tmp_path, limited, LiveSettings(idle=None, graphs=6))
    with server.service:
        server.live("PUT", path(TRADES))
        server.push(trade(1, "acme", 10))
        text = f"SELECT ?s {{ SERVICE <{TRADES}> {{ ?s ?p ?o }} }}"
        assert len(column(ask(server.endpoint, text))) == 2
        assert details(ask(server.endpoint, text + " " * 300))["status"] == 413
        server.push(trade(2, "acme", 10))
        assert "more than 6 triples" in details(ask(server.endpoint, text))["detail"]


def test_nobody_asks_nothing_is_held(traded: Server) -> None:
    assert traded.service.graphs.size == 0
    assert b"oxiseq_graph_triples 0.0" in traded.routes.answer(Request("GET", "/metrics")).content()


class _One:
    """A source for tests of the text alone."""

    def knows(self, iri: str) -> bool:
        return iri == "http://base/s"

    def ask(self, *_: object) -> list[Any]:
        raise NotImplementedError


def parts(text: str) -> list[str]:
    return [inner_text(text, block) for block in blocks(text, _One(), "http://base/x")]


def test_blocks_are_found_where_the_text_has_them() -> None:
    assert parts("BASE <http://base/> SELECT * { SERVICE <s> { ?a ?b ?c } }") == [
        "BASE <http://base/>            SELECT  *   { ?a ?b ?c }"
    ]
    two = parts("PREFIX :<http://base/> ASK {service :s{?a ?b '}'} SERVICE\n:s{}}")
    assert [text.split("SELECT")[1] for text in two] == ["  * {?a ?b '}'}", " \n* {}"]
    assert len(parts("SELECT * { SERVICE <other> { SERVICE <s> {} } SERVICE silent <s> { SERVICE <s> {} } }")) == 2
    for none in (
        "SELECT * { ?a ?b 'SERVICE <s> {}' }",
        "SELECT * { } # SERVICE <s> {}",
        "SELECT * { SERVICE ?s {} }",
        "SELECT * { <SERVICE> ?service <s> }",
        "SELECT * { SERVICE <s> { ",
        "SELECT * { SERVICE nope:s {} }",
        "SERVICE",
        "PREFIX service: <http://base/> SELECT * { ?x service:s {} }",
        "SELECT * { SERVICE <s> ( }",
        "SERVICE SILENT",
        "PREFIX SERVICE",
        "BASE",
    ):
        assert parts(none) == [], none


def test_what_follows_stays_at_its_place() -> None:
    text = "SELECT * {\n SERVICE <s> {\n  ?a ?b ?c } ?d\n}"
    (block,) = blocks(text, _One(), "http://base/x")
    filled = with_values(text, [block], ["VALUES(?a){" + "(1)" * 100 + "}"])
    assert filled.splitlines()[2] == " " * 12 + " ?d"
    assert filled.count("\n") == text.count("\n")


TERMS = st.one_of(
    st.text(max_size=8).map(Literal),
    st.integers().map(Literal),
    st.floats().map(Literal),
    st.booleans().map(Literal),
    st.text("ab", min_size=1, max_size=3).map(lambda t: Literal(t, language="en")),
    st.text("abc", min_size=1, max_size=3).map(lambda t: NamedNode(f"http://e/{t}")),
    st.sampled_from(["1.50", "-0", "x", "INF"]).map(
        lambda t: Literal(t, datatype=NamedNode("http://www.w3.org/2001/XMLSchema#decimal"))
    ),
)


@given(st.lists(TERMS, min_size=1, max_size=6))
def test_any_term_comes_through(objects: list[Any]) -> None:
    source = RdfStore()
    for number, term in enumerate(objects):
        source.add(Quad(NamedNode(f"http://e/{number}"), NamedNode("http://e/p"), term))

    class Source(_One):
        def ask(self, iri: str, queries: Any, *_: Any) -> list[Any]:
            return [source.query(text) for text in queries]

    endpoint = SparqlEndpoint(Store())
    endpoint.offer(Source())
    text = "SELECT ?s ?o { SERVICE <http://base/s> { { ?s ?p ?o } UNION { BIND(<http://e/p> AS ?p) } } }"
    response = ask(endpoint, text, accept="application/sparql-results+json")
    assert response.status == 200, response.content()
    expected = [(row["s"], row["o"]) for row in source.query("SELECT ?s ?o { { ?s ?p ?o } UNION {} }")]
    found = parse_query_results(response.content(), QueryResultsFormat.JSON)
    assert sorted(map(str, ((row[Variable("s")], row[Variable("o")]) for row in found))) == sorted(map(str, expected))
