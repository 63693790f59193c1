"""SERVICE <stream> in front of another endpoint: the answers are those of a store here, however they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from asking import problem
from pyoxigraph import RdfFormat
from rdflib import Dataset
from rdflib_endpoint import rdflib_endpoint
from servers import NO_OXIGRAPH, ours, oxigraph_program, real
from trades import EX, OWNERS, PREFIXES, QUOTES, TRADES, path, table, trade

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.rights import Rights, grant_of
from oxiseq.sparql import Limits, Request, Response, SparqlEndpoint, SparqlSettings
from oxiseq.sparql.upstream import PART, WHOLE, RemoteKb, Upstream

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
PRICE = "GRAPH ?e { ?t :price ?p }"
BY_COMPANY = "SERVICE :trades { GRAPH ?e { ?t :of ?c ; :price ?p } }"
SPLIT = {
    "joined": f"SELECT ?c ?p ?s {{ {BY_COMPANY} ?c :sector ?s }}",
    "the knowledge base first": f"SELECT ?c ?p ?s {{ ?c :sector ?s {BY_COMPANY} }}",
    "optional": f"SELECT ?c ?p ?who {{ {BY_COMPANY} OPTIONAL {{ GRAPH :board {{ ?c :chair ?who }} }} }}",
    "minus": f"SELECT ?c ?p {{ {BY_COMPANY} MINUS {{ GRAPH :board {{ ?c :chair ?who }} }} }}",
    "exists": f"SELECT ?c ?p {{ {BY_COMPANY} FILTER NOT EXISTS {{ GRAPH :board {{ ?c :chair ?who }} }} }}",
    "filter and bind": f"SELECT ?c ?d {{ {BY_COMPANY} FILTER(?p < 30) BIND(?p * 2 AS ?d) }}",
    "a group and a sub-select": f"SELECT ?p ?s {{ {{ SELECT ?c ?p {{ {BY_COMPANY} }} }} ?c :sector ?s }}",
    "a graph": f"SELECT ?g ?c ?who {{ GRAPH ?g {{ ?c :chair ?who {BY_COMPANY} }} }}",
    "unbound": "SELECT ?c ?s ?p { SERVICE :trades { { GRAPH ?e { ?t :price ?p } } UNION "
    "{ GRAPH ?e { ?t :of ?c } } } ?c :sector ?s }",
    "two of one stream": "SELECT ?c ?p { SERVICE :trades { GRAPH ?e { ?t :of ?c } } "
    "SERVICE :trades { GRAPH ?e2 { ?t :price ?p } } }",
    "two streams": f"SELECT ?c ?p ?q {{ {BY_COMPANY} SERVICE :quotes {{ GRAPH ?f {{ ?u :of ?c ; :price ?q }} }} }}",
    "as often as it is there": f"SELECT ?s {{ {BY_COMPANY} ?c :sector ?s }}",
    "no columns outside": "SELECT ?c ?s { SERVICE :trades { :nobody :of :nothing } ?c :sector ?s }",
    "a truth": f"ASK {{ {BY_COMPANY} ?c :sector :tools }}",
    "a falsehood": f"ASK {{ {BY_COMPANY} ?c :sector :wood }}",
}
WHOLE_ONLY = {
    "DISTINCT": f"SELECT DISTINCT ?s {{ {BY_COMPANY} ?c :sector ?s }}",
    "GROUP BY": f"SELECT ?s (SUM(?p) AS ?sum) {{ {BY_COMPANY} ?c :sector ?s }} GROUP BY ?s",
    "COUNT": f"SELECT (COUNT(*) AS ?n) {{ {BY_COMPANY} ?c :sector ?s }}",
    "ORDER BY": f"SELECT ?c ?p {{ {BY_COMPANY} ?c :sector ?s }} ORDER BY ?p",
    "LIMIT": f"SELECT ?c {{ {BY_COMPANY} ?c :sector :steel }} LIMIT 2",
    "OFFSET": f"SELECT ?c {{ {BY_COMPANY} ?c :sector :steel }} OFFSET 1",
    "in OPTIONAL": f"SELECT ?c ?p {{ ?c :sector ?s OPTIONAL {{ {BY_COMPANY} }} }}",
    "in UNION": f"SELECT ?c ?p {{ {{ ?c :sector ?s }} UNION {{ {BY_COMPANY} }} }}",
    "in MINUS": f"SELECT ?c {{ ?c :sector ?s MINUS {{ {BY_COMPANY} }} }}",
    "in EXISTS": f"SELECT ?c {{ ?c :sector ?s FILTER NOT EXISTS {{ {BY_COMPANY} }} }}",
    "MAX": f"SELECT ?c ?m {{ ?c :sector ?s {{ SELECT (MAX(?p) AS ?m) {{ {BY_COMPANY} }} }} }}",
    "SELECT *": "SELECT * { SERVICE :trades { GRAPH ?e { [] :of ?c ; :price ?p } } ?c :sector ?s }",
    "NOW()": f"SELECT ?c {{ {BY_COMPANY} ?c :sector ?s FILTER(NOW() > 5 || true) }}",
}
RDFLIBS_OWN = {
    "optional": "after VALUES it leaves out rows that OPTIONAL finds nothing for",
    "no columns outside": "an empty VALUES ends in an AttributeError",
    "MAX": "what is bound outside of a sub-SELECT is bound in it",
}
"""What rdflib 7.6 answers in its own way, also when one writes the same VALUES by hand."""
GRAPH = f"CONSTRUCT {{ ?s :price ?p }} {{ {BY_COMPANY} ?c :sector ?s }}"


class Front:
    """An endpoint with streams, of which some trades are."""

    def __init__(self, endpoint: Upstream | SparqlEndpoint, service: LiveService) -> None:
        self.endpoint, self.service = endpoint, service
        self.routes = LiveRoutes(service, endpoint.evaluations)
        endpoint.offer(self.routes.services)

    def live(self, method: str, target: str, body: str = "") -> None:
        headers = (("content-type", "application/n-quads" if body else "application/json"),)
        answer = self.routes.answer(Request(method, target, "", headers, body.encode()))
        assert answer.status == 200, answer.content()

    def ask(self, text: str, accept: str = "application/sparql-results+json", more: str = "") -> Response:
        query = urlencode([("query", PREFIXES + text)], quote_via=quote) + more
        return self.endpoint.answer(Request("GET", "/query", query, (("accept", accept),)))


@contextmanager
def front(endpoint: Upstream | SparqlEndpoint, folder: Path) -> Iterator[Front]:
    store = endpoint.store if isinstance(endpoint, SparqlEndpoint) else RemoteKnowledge(RemoteKb(endpoint))
    assert isinstance(store, Store | RemoteKnowledge)
    with LiveService(store, folder, LiveSettings(idle=None), "normal") as service:
        made = Front(endpoint, service)
        for stream in (TRADES, QUOTES):
            made.live("PUT", path(stream))
        made.live("POST", path(TRADES), trade(1, "acme", 10) + trade(2, "bolt", 7))
        made.live("POST", path(TRADES), trade(3, "acme", 30) + trade(4, "none", 1))
        made.live("POST", path(QUOTES), trade(5, "acme", 11) + trade(6, "acme", 12) + trade(7, "bolt", 3))
        yield made


@contextmanager
def of_kind(kind: str) -> Iterator[str]:
    """An endpoint that holds who owns what."""
    if kind == "rdflib":
        store = Store()
        store.update(OWNERS)
        data = Dataset()
        data.parse(data=store.dump(format=RdfFormat.N_QUADS), format="nquads")
        with rdflib_endpoint(data) as address:
            yield address
        return
    if kind == "real" and oxigraph_program() is None:
        pytest.skip(NO_OXIGRAPH)
    with ours() if kind == "ours" else real() as address:
        assert httpx.post(f"{address}/update", data={"update": OWNERS}).status_code == 204
        yield address


@pytest.fixture(scope="module", params=["ours", "real", "rdflib"])
def behind(request: pytest.FixtureRequest) -> Iterator[str]:
    with of_kind(request.param) as address:
        yield address


Fronts = Callable[..., Front]


@pytest.fixture(autouse=True)
def _not_of_rdflib(request: pytest.FixtureRequest) -> None:
    given = getattr(request.node, "callspec", None)
    if given is not None and given.params.get("behind") == "rdflib" and given.params.get("name") in RDFLIBS_OWN:
        pytest.skip(RDFLIBS_OWN[given.params["name"]])


@pytest.fixture(scope="module")
def fronts(behind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    """Fronts of one endpoint with different bounds."""
    made: dict[Any, Front] = {}
    with ExitStack() as opened:

        def of(part: int = PART, whole: int = WHOLE) -> Front:
            if (part, whole) not in made:
                upstream = Upstream(behind, part=part, whole=whole)
                opened.callback(upstream.close)
                made[part, whole] = opened.enter_context(front(upstream, tmp_path_factory.mktemp("front")))
            return made[part, whole]

        yield of


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """The same over a store here."""
    store = Store()
    store.update(OWNERS)
    with front(SparqlEndpoint(store), tmp_path_factory.mktemp("here")) as made:
        yield made


def plain(response: Response) -> Any:
    """A truth, or the rows in some order."""
    assert response.status == 200, response.content()
    told = json.loads(response.content())
    return told["boolean"] if "boolean" in told else sorted(map(repr, rows(told)))


def rows(told: Any) -> list[list[tuple[str, str]]]:
    return [sorted((name, value["value"]) for name, value in row.items()) for row in told["results"]["bindings"]]


@pytest.mark.parametrize("name", SPLIT)
def test_one_request_and_many_answer_as_a_store_here_does(name: str, here: Front, fronts: Fronts) -> None:
    expected = plain(here.ask(SPLIT[name]))
    assert expected not in ([],) or name == "no columns outside"
    for chosen in (fronts(), fronts(part=1, whole=1), fronts(part=800, whole=1)):
        assert plain(chosen.ask(SPLIT[name])) == expected


@pytest.mark.parametrize("name", WHOLE_ONLY)
def test_what_parts_would_change_is_asked_at_once_or_refused(name: str, here: Front, fronts: Fronts) -> None:
    text = WHOLE_ONLY[name]
    expected = plain(here.ask(text))
    assert expected
    for chosen in (fronts(), fronts(part=1)):
        assert plain(chosen.ask(text)) == expected
    refused = problem(fronts(part=1, whole=1).ask(text))
    assert (refused["status"], refused["title"]) == (403, "too many results")
    assert "the query cannot be sent in parts" in refused["detail"]
    assert name.removeprefix("in ") in refused["detail"]
    assert refused["line"] == 1


@pytest.mark.parametrize("kind", ["application/sparql-results+xml", "text/csv", "text/tab-separated-values"])
@pytest.mark.parametrize("name", ["joined", "no columns outside", "a truth", "optional"])
def test_the_format_is_the_clients(name: str, kind: str, here: Front, fronts: Fronts) -> None:
    one, many = (each.ask(SPLIT[name], kind) for each in (here, fronts(part=1)))
    assert (one.status, one.header("content-type")) == (many.status, many.header("content-type"))
    lines = [sorted(r.content().replace(b"</result>", b"</result>\n").splitlines()) for r in (one, many)]
    assert lines[0] == lines[1] or kind.endswith("xml")
    assert len(lines[0]) == len(lines[1])


def test_a_graph(fronts: Fronts) -> None:
    answer = fronts().ask(GRAPH, "application/n-triples")
    assert answer.status == 200, answer.content()
    assert sorted({line for line in answer.content().decode().splitlines() if line}) == [
        f'<{EX}{sector}> <{EX}price> "{price}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        for sector, price in (("steel", 10), ("steel", 30), ("tools", 7))
    ]
    assert problem(fronts(part=1, whole=1).ask(GRAPH, "text/turtle"))["detail"].count("CONSTRUCT makes one graph") == 1


def test_blank_nodes_of_events_stand_as_iris(fronts: Fronts) -> None:
    text = f"SELECT ?t {{ SERVICE :trades {{ {PRICE} }} }}"
    for chosen in (fronts(), fronts(part=1)):
        found = [row["t"] for row in table(chosen.ask(text))]
        assert len(set(found)) == 4
        assert all(each.startswith("urn:oxiseq:blank:") for each in found)


@pytest.mark.parametrize("rest", ["GRAPH ?e { ?s ?p } } }", "GRAPH ?e { ?s ?p ?o } } ?x }"])
def test_syntax_errors_have_their_place(rest: str, here: Front, fronts: Fronts) -> None:
    text = f"SELECT * {{\n SERVICE :trades {{ {rest}"
    expected, answer = problem(here.ask(text, "application/json")), fronts().ask(text, "application/json")
    assert answer.status == 400
    if "html" in (answer.header("content-type") or ""):  # as another endpoint says it
        return
    told = problem(answer)
    assert (told["status"], told["line"], told["column"]) == (400, expected["line"], expected["column"]), told


def test_other_servers_are_not_called_from_within_a_block(fronts: Fronts) -> None:
    nested = "SELECT * { SERVICE :trades { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } } }"
    assert problem(fronts().ask(nested))["status"] == 403


def test_who_may_not_read_the_stream_is_refused(tmp_path: Path) -> None:
    asked: list[httpx.Request] = []

    def said(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(results(ROW)))

    with before(said, tmp_path) as here:
        query = Request("GET", "/query", urlencode({"query": PREFIXES + TWO}), (("accept", "application/json"),))
        for grants, status in (
            (("read:kb", f"read:stream:{TRADES}"), 200),
            (("read:kb", f"read:stream:{QUOTES}"), 403),
            ((f"read:stream:{TRADES}",), 403),
        ):
            rights = Rights(tuple(map(grant_of, grants)), "somebody")
            assert here.endpoint.answer(replace(query, rights=rights)).status == status
    assert len(asked) == 1


# --- endpoints that misbehave -----------------------------------------------------------------------


@contextmanager
def before(handler: Callable[[httpx.Request], httpx.Response], folder: Path, **more: Any) -> Iterator[Front]:
    """A front of what a test wants to be said."""
    upstream = Upstream("http://e", transport=httpx.MockTransport(handler), **more)
    with front(upstream, folder) as made:
        yield made
    upstream.close()


def results(*rows: dict[str, Any], names: tuple[str, ...] = ("c", "p")) -> bytes:
    return json.dumps({"head": {"vars": names}, "results": {"bindings": rows}}).encode()


ROW = {"c": {"type": "uri", "value": "http://e/c"}, "p": {"type": "literal", "value": 'a "bnode", : "bnode"'}}
TWO = f"SELECT ?c ?p {{ {BY_COMPANY} }}"


def test_each_part_is_a_post_without_what_is_ours(tmp_path: Path) -> None:
    asked: list[httpx.Request] = []

    def said(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, content=results(ROW))

    with before(said, tmp_path, part=1, token="secret") as here:
        answer = here.ask(TWO, more="&default-graph-uri=http://e/g&timeout=5")
        assert len(table(answer)) == 4
    assert len(asked) == 4
    for request in asked:
        assert (request.method, request.headers["content-type"]) == ("POST", "application/sparql-query")
        assert request.headers["authorization"] == "Bearer secret"
        assert dict(request.url.params) == {"default-graph-uri": "http://e/g", "timeout": "5"}
        assert request.content.count(b"http://example.org/t") == 0
        assert b"VALUES(" in request.content
        assert b"SERVICE" not in request.content


BROKEN: dict[str, tuple[int, bytes, int, str]] = {
    "html": (200, b"<html>", 502, "no SPARQL results"),
    "half": (200, results(ROW)[:-20], 502, "no SPARQL results"),
    "nothing": (200, b"", 502, "no SPARQL results"),
    "a graph": (200, b"<a> <b> <c> .", 502, "no SPARQL results"),
    "an error": (500, b"boom", 502, "refuses a part of the query (500)"),
    "too large": (413, b"no", 413, "refuses a part of the query (413)"),
    "blank nodes": (200, results({**ROW, "c": {"type": "bnode", "value": "b0"}}), 501, "blank nodes"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("good", [0, 2])
def test_a_part_that_fails_fails_the_answer(name: str, good: int, tmp_path: Path) -> None:
    status, body, told, title = BROKEN[name]
    count = 0

    def said(_: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        return httpx.Response(200, content=results(ROW)) if count <= good else httpx.Response(status, content=body)

    with before(said, tmp_path, part=1) as here:
        refused = problem(here.ask(TWO))
        assert (refused["status"], title in refused["title"]) == (told, True), refused
    assert count == good + 1


def test_other_columns_in_another_part_are_told(tmp_path: Path) -> None:
    answers = [results(ROW), results(names=("p", "c"))]
    with before(lambda _: httpx.Response(200, content=answers.pop(0)), tmp_path, part=1) as here:
        assert "other columns" in problem(here.ask(TWO))["title"]


def test_a_silent_endpoint_is_left_at_the_time_limit(tmp_path: Path) -> None:
    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("silent", request=request)

    with before(silent, tmp_path, part=1) as here:
        assert problem(here.ask(TWO))["status"] == 504
    with before(silent, tmp_path) as here:
        assert problem(here.ask(TWO))["status"] == 504


def test_limits_hold_for_all_parts_together(tmp_path: Path) -> None:
    settings = SparqlSettings(limits=Limits(rows=3))
    with before(lambda _: httpx.Response(200, content=results(ROW, ROW)), tmp_path, part=1, settings=settings) as here:
        assert problem(here.ask(TWO))["title"] == "too many results"


def test_a_truth_ends_the_asking(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def said(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        return httpx.Response(200, content=json.dumps({"head": {}, "boolean": len(asked) > 1}).encode())

    with before(said, tmp_path, part=1) as here:
        assert json.loads(here.ask(f"ASK {{ {BY_COMPANY} }}").content())["boolean"] is True
    assert len(asked) == 2


def test_an_update_asks_events_too(tmp_path: Path) -> None:
    text = f"{PREFIXES} INSERT {{ ?c :traded ?p }} WHERE {{ {BY_COMPANY} ?c :sector ?s }}"
    with of_kind("ours") as address:
        upstream = Upstream(address)
        with front(upstream, tmp_path) as here:
            for headers, body in (
                ("application/sparql-update", text),
                ("application/x-www-form-urlencoded", urlencode({"update": text})),
            ):
                answer = upstream.answer(Request("POST", "/update", "", (("content-type", headers),), body.encode()))
                assert answer.status == 204, answer.content()
                found = here.ask("SELECT ?c ?p { ?c :traded ?p }")
                assert len(plain(found)) == 3
        upstream.close()


def test_what_names_no_stream_passes_as_it_is(tmp_path: Path) -> None:
    asked: list[httpx.Request] = []

    def said(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(b"whatever"))

    with before(said, tmp_path) as here:
        for text in ("SELECT * { SERVICE <http://else/> { ?s ?p ?o } }", "service %", "SELECT * { SERVICE :trades {"):
            assert here.ask(text).content() == b"whatever"
    assert {request.method for request in asked} == {"GET"}
