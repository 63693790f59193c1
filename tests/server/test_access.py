"""Who may do what: every route has its right, and every name that a request brings along is asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import flask.testing
import pytest

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.api.operations import OPERATIONS
from oxiseq.live.api.table import Operation
from oxiseq.rights import Grant, Right, Token, digest_of, grant_of, line_of
from oxiseq.rights import grants as tables
from oxiseq.server import ServerSettings, Tokens, create_app
from oxiseq.server.access import Access
from oxiseq.server.app import OPEN
from oxiseq.sparql import Problem, SparqlEndpoint

EX = "http://example.org/"
A, B, C = (f"{EX}{name}" for name in "abc")
SPASEQ, EPSPARQL, TURTLE = "application/spaseq-query", "application/epsparql-query", "text/turtle"
KB_FACTS = f'INSERT DATA {{ GRAPH <{EX}g> {{ <{EX}h> <{EX}in> "Ulm" }} }}'


def query(stream: str, *, kb: bool = False, into: str = "") -> str:
    """The events of a stream; with the KB; told to a stream."""
    asks = f"GRAPH <{EX}g> {{ ?h <{EX}in> ?t }}" if kb else ""
    told = f"CONSTRUCT {{ ?h <{EX}w> ?w }} INTO STREAM <{into}>" if into else "SELECT ?h ?w"
    gpm = f"DEFINE GPM X ON S {{ ?h <{EX}w> ?w {asks} }}"
    return f"{told} WITHIN 1 HOUR FROM STREAM S <{stream}> WHERE {{ SEQ(X) {gpm} }}"


def at(kind: str, name: str) -> str:
    return f"/{kind}/{quote(name, safe='')}"


class Served:
    """An application with streams a and b, an event in each, and a query of each."""

    def __init__(self, folder: Path, service: LiveService, store: Store) -> None:
        self.file = folder / "tokens"
        self.file.write_text("")
        endpoint = SparqlEndpoint(store)
        routes = LiveRoutes(service, endpoint.evaluations)
        endpoint.offer(routes.services)
        settings = ServerSettings(tokens=Tokens(write="all", file=self.file))
        self.app = create_app(endpoint, settings, routes)
        self.client: flask.testing.FlaskClient = self.app.test_client()
        self.names = 0

    def token(self, *grants: str) -> str:
        """A new token with these rights."""
        self.names += 1
        token = Token(f"t{self.names}", digest_of(f"secret{self.names}"), tuple(map(grant_of, grants)))
        with self.file.open("a") as file:
            file.write(line_of(token) + "\n")
        return f"secret{self.names}"

    def ask(
        self,
        method: str,
        path: str,
        token: str | None = None,
        body: str = "",
        kind: str = "application/json",
        accept: str = "*/*",
    ) -> Any:
        headers = {"Content-Type": kind, "Accept": accept}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.client.open(path, method=method, data=body.encode(), headers=headers)

    def status(self, *given: str | None, **more: str) -> int:
        answer = self.ask(*given, **more)  # type: ignore[arg-type]  # as ask takes it
        answer.close()
        return int(answer.status_code)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Of which tests ask only what is refused."""
    with serving(tmp_path_factory.mktemp("served")) as made:
        yield made


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    store = Store()
    store.update(KB_FACTS)
    with (
        pytest.MonkeyPatch.context() as patch,
        LiveService(store, folder, LiveSettings(idle=0.02), "normal") as service,
    ):
        patch.setattr(tables, "_LOOKED_EVERY", 0.0)
        made = Served(folder, service, store)
        for name, stream in (("qa", A), ("qb", B)):
            assert made.status("PUT", at("queries", name), "all", query(stream), SPASEQ) == 200
            event = f"<{EX}h> <{EX}w> 1 ."
            assert made.status("POST", f"{at('streams', stream)}?time=1", "all", event, TURTLE) == 200
        end = time.monotonic() + 120
        while any(made.ask("GET", f"/queries/{name}", "all").json["matches"]["next"] < 2 for name in ("qa", "qb")):
            assert time.monotonic() < end
            time.sleep(0.01)
        yield made


def path_of(route: Operation) -> str:
    named = route.path.replace("{stream}", quote(A, safe="")).replace("{query}", "qa")
    return named.replace("{match}", "1").replace("{sink}", "chat")


# --- the table -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", OPERATIONS, ids=lambda route: route.name)
def test_every_route_of_the_document_needs_a_right(untouched: Served, route: Operation) -> None:
    other = untouched.token("read:query:none-such", "push:stream:none:such", "register:query:none-such")
    (token,) = (
        untouched.app.test_client()
        .get("/openapi.json", headers={"Authorization": f"Bearer {other}"})
        .json["paths"][route.path][route.method.lower()]["security"][1]
        .values()
    )
    assert token == [str(route.needs)]
    kind = SPASEQ if route.name in ("queryOnce", "compare", "registerQuery") else "application/json"
    body = query(A, kb=True) if kind == SPASEQ else json.dumps({"iri": A})
    accept = "text/event-stream" if route.name == "followQuery" else "*/*"
    path = path_of(route) + ("?query=ASK{}" if route.name == "followQuery" else "")

    none = untouched.ask(route.method, path, None, body, kind, accept)
    assert none.status_code == 401
    assert none.headers["WWW-Authenticate"] == 'Bearer realm="oxiseq"'
    lacking = untouched.ask(route.method, path, other, body, kind, accept)
    if route.needs.right is None:
        assert lacking.status_code not in (401, 403)
    elif route.needs.of == "list":
        assert next(iter(lacking.json.values())) == []
    else:
        assert lacking.status_code == 403
        assert 'error="insufficient_scope"' in lacking.headers["WWW-Authenticate"]
        assert "does not have the right" in lacking.json["detail"]


@pytest.mark.parametrize("route", [r for r in OPERATIONS if r.needs.right is not None], ids=lambda route: route.name)
def test_no_other_right_will_do(served: Served, route: Operation) -> None:
    kind = SPASEQ if SPASEQ in route.bodies and route.name != "registerQuery" else "application/json"
    body = query(A) if kind == SPASEQ else json.dumps({"iri": A})
    accept = "text/event-stream" if route.name == "followQuery" else "*/*"
    path = path_of(route) + ("?query=ASK{}" if route.name == "followQuery" else "")
    for right in get_args(Right):
        if right not in (route.needs.right, route.needs.instead):
            answer = served.ask(route.method, path, served.token(right), body, kind, accept)
            if route.needs.of == "list":
                assert next(iter(answer.json.values())) == [], right
            else:
                assert answer.status_code == 403, right
    for token, status in ((None, 401), ("none of ours", 401), ("all", 0)):
        assert (served.status(route.method, path, token, body, kind) in (401, 403)) == bool(status), token


@pytest.mark.parametrize("route", [r for r in OPERATIONS if r.needs.right is not None], ids=lambda route: route.name)
def test_the_right_that_a_route_names_is_enough(served: Served, route: Operation) -> None:
    if route.name in ("followQuery", "queryOnce"):
        return  # by bodies, below
    names = {"stream": f":{A}", "query": ":qa"}.get(route.needs.kind, "")
    grants = [f"{route.needs.right}:{route.needs.kind}{names}"]
    if route.name in ("why", "pastStates", "compare", "matchesAt", "provenance", "registerQuery", "replaceQuery"):
        grants.append(f"read:stream:{A}")  # what the text of a query reads is asked for, too
    if route.name == "putSink":
        grants.append("read:query:qa")  # its matches are sent elsewhere
    kind = SPASEQ if route.bodies and SPASEQ in route.bodies else "application/json"
    body = query(A) if kind == SPASEQ else json.dumps({"iri": A})
    path = path_of(route) + ("?name=qa" if route.name == "registerQuery" else "")
    assert served.status(route.method, path, served.token(*grants), body, kind) not in (401, 403)


def test_every_route_of_the_application_needs_a_right_or_is_named_as_open(served: Served) -> None:
    other = served.token("read:query:none-such")
    seen = set()
    for rule in served.app.url_map.iter_rules():
        path = rule.rule.replace("<path:name>", "x").replace("<path:path>", "app.css")
        for method in sorted((rule.methods or set()) - {"OPTIONS"}):
            without, lacking = served.status(method, path), served.status(method, path, other)
            if rule.endpoint in OPEN:
                assert without not in (401, 403), rule
            else:
                assert (without, lacking) == (401, 403), (rule, method)
        seen.add(rule.endpoint)
    assert set(OPEN) < seen


def test_a_route_that_somebody_adds_needs_the_right_on_the_server(served: Served) -> None:
    served.app.add_url_rule("/more", "more", lambda: "more", methods=["GET", "POST"])
    reads, updates = served.token("read:server"), served.token("update:server")
    assert [served.status("GET", "/more", token) for token in (None, reads, updates)] == [401, 200, 403]
    assert [served.status("POST", "/more", token) for token in (None, reads, updates)] == [401, 403, 200]


# --- names in bodies and texts -------------------------------------------------------------------------


def test_the_stream_that_a_body_names_is_asked_for(served: Served) -> None:
    token = served.token(f"register:stream:{EX}mine/*")
    assert served.status("POST", "/streams", token, json.dumps({"iri": f"{EX}mine/1"})) == 201
    assert served.status("POST", "/streams", token, json.dumps({"iri": C})) == 403
    assert served.status("GET", at("streams", C), "all") == 404


def test_a_query_is_registered_by_who_may_read_what_it_reads_and_push_what_it_feeds(served: Served) -> None:
    token = served.token("register:query:mine-*", f"read:stream:{A}", f"push:stream:{C}")

    def registered(name: str, text: str, by: str = token) -> int:
        return served.status("POST", f"/queries?name={name}", by, text, SPASEQ)

    assert registered("mine-1", query(A)) == 201
    assert registered("yours", query(A)) == 403
    assert served.status("POST", "/queries", token, query(A), SPASEQ) == 403  # the random name is not theirs
    assert registered("mine-2", query(B)) == 403
    assert registered("mine-2", query(f"{EX}new")) == 403
    assert served.status("GET", at("streams", f"{EX}new"), "all") == 404  # nothing was made
    assert registered("mine-2", query(A, kb=True)) == 403
    assert registered("mine-2", query(A, into=B)) == 403
    assert registered("mine-2", query(A, into=C)) == 201
    as_json = json.dumps({"name": "yours", "text": query(A)})
    assert served.status("POST", "/queries", token, as_json) == 403
    assert served.status("PUT", "/queries/mine-1", token, query(B), SPASEQ) == 403
    assert served.status("GET", "/queries/mine-2", "all") == 200
    with_kb = served.token("register:query:mine-*", f"read:stream:{A}", "read:kb")
    assert registered("mine-3", query(A, kb=True), with_kb) == 201


def test_a_query_over_the_store_is_registered_by_who_may_read_the_store(served: Served) -> None:
    text, kind = "SELECT * { ?s ?p ?o }", "application/sparql-query"
    assert served.status("PUT", "/queries/all", served.token("register:query", "read:stream"), text, kind) == 403
    assert served.status("PUT", "/queries/all", served.token("register:query", "read:kb"), text, kind) == 200


def test_a_query_that_names_no_stream_reads_those_that_may_be_read(served: Served) -> None:
    text = f"SELECT ?h ?v WHERE {{ {{ ?h <{EX}w> ?w }} SEQ {{ ?h <{EX}w> ?v }} }}"
    for stream, watts in ((A, 2), (B, 3)):
        event = f"<{EX}h> <{EX}w> {watts} ."
        assert served.status("POST", f"{at('streams', stream)}?time=2", "all", event, TURTLE) == 200
    token = served.token("register:query", f"read:stream:{A}", "read:query", "read:kb")  # EP-SPARQL always asks it
    assert served.status("PUT", "/queries/ep", token, text, EPSPARQL) == 200
    assert served.ask("GET", "/queries/ep", token).json["reads"] == [A]
    once = served.ask("POST", "/query", token, text, EPSPARQL)
    assert (once.status_code, len(once.json["results"]["bindings"])) == (200, 1)
    assert len(served.ask("POST", "/query", "all", text, EPSPARQL).json["results"]["bindings"]) == 2


def test_a_query_that_runs_once_needs_what_it_reads(served: Served) -> None:
    token = served.token(f"read:stream:{A}")
    assert served.status("POST", "/query", token, query(A), SPASEQ) == 200
    assert served.status("POST", "/query", token, query(B), SPASEQ) == 403
    assert served.status("POST", "/query", token, query(A, kb=True), SPASEQ) == 403
    both = served.token(f"read:stream:{A}", "read:kb")
    assert served.status("POST", "/query", both, query(A, kb=True), SPASEQ) == 200


def test_lists_tell_what_may_be_read(served: Served) -> None:
    token = served.token(f"read:stream:{A}", "read:query:qb")
    assert [each["iri"] for each in served.ask("GET", "/streams", token).json["streams"]] == [A]
    assert [each["name"] for each in served.ask("GET", "/queries", token).json["queries"]] == ["qb"]
    assert len(served.ask("GET", "/streams", "all").json["streams"]) == 2


def test_looking_back_needs_the_streams_beside_the_query(served: Served) -> None:
    query_only, both = served.token("read:query:qa"), served.token("read:query:qa", f"read:stream:{A}")
    for path in (
        "/queries/qa/why",
        "/queries/qa/states",
        "/queries/qa/matches-at?at=1",
        "/queries/qa/matches/1/provenance",
    ):
        assert served.status("GET", path, query_only) == 403
        assert served.status("GET", path, both) == 200
    assert served.status("GET", "/queries/qa/matches", query_only) == 200
    assert served.status("POST", "/queries/qa/compare", both, query(A), SPASEQ) == 200
    for draft in (query(B), query(A, kb=True)):
        assert served.status("POST", "/queries/qa/compare", both, draft, SPASEQ) == 403
    assert served.status("GET", "/queries/qb/why", both) == 403


def test_who_may_push_may_make_the_stream_and_say_no_more_of_it(served: Served) -> None:
    token = served.token(f"push:stream:{EX}plant/*")
    path = at("streams", f"{EX}plant/1")
    assert served.status("PUT", path, token) == 200
    assert served.status("POST", f"{path}?time=1", token, f"<{A}> <{A}> 1 .", TURTLE) == 200
    assert served.status("POST", f"{path}?watermark=5", token) == 200
    assert served.status("PUT", path, token, '{"retention": {"count": 0}}') == 403
    assert served.status("DELETE", path, token) == 403
    assert served.status("GET", f"{path}/events", token) == 403
    assert served.status("POST", f"{at('streams', A)}?time=2", token, f"<{A}> <{A}> 1 .", TURTLE) == 403


# --- SPARQL --------------------------------------------------------------------------------------------


def test_sparql_reads_and_updates_the_knowledge_base(served: Served) -> None:
    reads, updates, other = served.token("read:kb"), served.token("update:kb"), served.token("read:stream")
    for path in ("/query?query=ASK{}", "/store", "/store?default", "/query", "/update"):
        assert [served.status("GET", path, token) for token in (reads, updates, other)] == [200, 403, 403], path
    for method, path in (("POST", "/update"), ("PUT", "/store?default"), ("DELETE", "/store?default")):
        kind = "application/sparql-update" if path == "/update" else TURTLE
        found = [served.status(method, path, token, "", kind) for token in (reads, updates, other)]
        assert (found[0], found[2]) == (403, 403)
        assert found[1] < 300


def test_a_stream_inside_sparql_needs_the_right_to_read_it(served: Served) -> None:
    token = served.token("read:kb", "update:kb", f"read:stream:{A}")

    def asked(stream: str, more: str = "") -> int:
        text = f"SELECT * {{ {more} SERVICE <{stream}> {{ GRAPH ?e {{ ?s ?p ?o }} }} }}"
        return served.status("POST", "/query", token, text, "application/sparql-query")

    assert asked(A) == 200
    assert asked(B) == 403
    assert asked(A, f"SERVICE <{B}> {{ ?x ?y ?z }}") == 403
    assert asked(A, f"OPTIONAL {{ SERVICE SILENT <{B}> {{ ?x ?y ?z }} }}") == 403
    prefixed = f"PREFIX e: <{EX}> SELECT * {{ SERVICE e:b {{ GRAPH ?e {{ ?s ?p ?o }} }} }}"
    assert served.status("POST", "/query", token, prefixed, "application/sparql-query") == 403
    for stream, status in ((A, 204), (B, 403)):
        text = f"INSERT {{ ?s ?p ?o }} WHERE {{ SERVICE <{stream}> {{ GRAPH ?e {{ ?s ?p ?o }} }} }}"
        assert served.status("POST", "/update", token, text, "application/sparql-update") == status


def test_live_readers_need_the_right(served: Served) -> None:
    live = {"accept": "text/event-stream"}
    reads = served.token("read:query:qa")
    assert served.status("GET", "/queries/qa/matches", reads, **live) == 200
    assert served.status("GET", "/queries/qb/matches", reads, **live) == 403
    assert served.status("GET", "/query?query=ASK{}", reads, **live) == 403
    follow = served.token("read:kb")
    assert served.status("GET", "/query?query=ASK{}", follow, **live) == 200
    body = ("ASK{}", "application/sparql-query", "text/event-stream")
    assert served.status("POST", "/query", follow, *body) == 200
    assert served.status("POST", "/query", served.token("read:stream"), *body) == 403


# --- tokens --------------------------------------------------------------------------------------------


def test_tokens_come_and_go_with_the_file(served: Served) -> None:
    path = "/query?query=ASK{}"
    token = served.token("read:kb")
    assert [served.status("GET", path, each) for each in (token, "all", None)] == [200, 200, 401]
    served.file.write_text("anonymous - read:kb\n")
    revoked = served.ask("GET", path, token)
    assert (revoked.status_code, revoked.headers["WWW-Authenticate"]) == (
        401,
        'Bearer realm="oxiseq", error="invalid_token"',
    )
    assert [served.status("GET", path, each) for each in ("all", None)] == [200, 200]
    refused = served.ask("POST", "/update", None, "CLEAR ALL", "application/sparql-update")
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Bearer realm="oxiseq"')


def test_named_tokens_by_the_environment_close_the_rest() -> None:
    lines = line_of(Token("a", digest_of("s"), (Grant("read", "kb"),)))
    app = create_app(SparqlEndpoint(Store()), ServerSettings(tokens=Tokens(lines=lines)))
    client = app.test_client()
    asked = [client.get("/query?query=ASK{}", headers=h) for h in ({}, {"Authorization": "Bearer s"})]
    assert [answer.status_code for answer in asked] == [401, 200]
    assert digest_of("s").hex() not in repr(Tokens(lines=lines))


def test_behind_a_proxy_a_client_is_who_the_proxy_says_last() -> None:
    access = Access(ServerSettings(tokens=Tokens(write="w"), behind_proxy=True))

    def status(told: str, token: str = "wrong") -> int:
        headers = {"authorization": f"Bearer {token}", "x-forwarded-for": told}
        try:
            access.check(headers, "127.0.0.1", writing=True)
        except Problem as problem:
            return problem.status
        return 200

    assert [status(f"10.0.0.{i}, 192.0.2.1") for i in range(11)] == [401] * 10 + [429]
    assert status("192.0.2.1, 192.0.2.2", "w") == 200
    assert status("192.0.2.1", "w") == 429
    assert status("", "w") == 200
