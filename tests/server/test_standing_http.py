"""Queries over the store over HTTP: registered, answered, followed; what is refused and how."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from http_client import Answer, ask
from servers import served

import oxiseq
from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sparql import SparqlEndpoint

P = "PREFIX : <http://e/> "
KNOWS = P + "SELECT ?who ?whom WHERE { ?who :knows ?whom }"
SPARQL = ("Content-Type", "application/sparql-query")
UPDATE = ("Content-Type", "application/sparql-update")
JSON = ("Content-Type", "application/json")
LIVE = ("Accept", "text/event-stream")


def serving(folder: Path, settings: LiveSettings, tokens: Tokens | None = None) -> Iterator[str]:
    store = Store()
    endpoint = SparqlEndpoint(store)
    with LiveService(store, folder, settings, "normal") as service:
        routes = LiveRoutes(service, endpoint.evaluations)
        chosen = ServerSettings(port=0, threads=4, live=4, tokens=tokens or Tokens())
        with served(endpoint, chosen, routes) as address:
            yield address


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from serving(tmp_path_factory.mktemp("live"), LiveSettings(idle=None, heartbeat=0.2, subscribers=3))


@pytest.fixture
def here(address: str) -> Iterator[str]:
    """The same server, empty."""
    update(address, "CLEAR ALL")
    yield address
    for query in json.loads(ask(address, "GET", "/queries").body)["queries"]:
        ask(address, "DELETE", f"/queries/{query['name']}")


def update(address: str, text: str) -> None:
    assert ask(address, "POST", "/update", [UPDATE], (P + text).encode()).status == 204


def put(address: str, name: str, text: str) -> Answer:
    return ask(address, "PUT", f"/queries/{name}", [SPARQL], text.encode())


def changes(address: str, name: str, after: int | None = None) -> list[dict[str, Any]]:
    answer = ask(address, "GET", f"/queries/{name}/changes" + ("" if after is None else f"?after={after}"))
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = json.loads(answer.body)["changes"]
    return found


class Listening:
    """Server-sent events as they come."""

    def __init__(self, address: str, target: str, method: str = "GET", body: bytes | None = None, **headers: str):
        parts = urlsplit(address)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        given = {"Accept": "text/event-stream", **{name.replace("_", "-"): text for name, text in headers.items()}}
        self.connection.request(method, target, body, given)
        self.response = self.connection.getresponse()

    def next(self) -> tuple[str, dict[str, Any]]:
        """Kind and data of the next event."""
        lines: dict[str, str] = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if not line and "event" in lines:
                return lines["event"], json.loads(lines["data"])
            name, _, value = line.partition(": ")
            lines[name] = value

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def test_a_query_is_registered_and_followed(here: str) -> None:
    update(here, "INSERT DATA { :a :knows :b }")
    told = put(here, "friends", KNOWS)
    assert told.status == 200
    value = json.loads(told.body)
    assert (value["language"], value["form"], value["rows"], value["evaluation"]) == ("sparql", "SELECT", 1, "followed")
    with Listening(here, "/queries/friends/changes") as reader:
        assert reader.response.getheader("content-type", "").startswith("text/event-stream")
        kind, snapshot = reader.next()
        assert (kind, [row["whom"]["value"] for row in snapshot["rows"]]) == ("snapshot", ["http://e/b"])
        update(here, "DELETE DATA { :a :knows :b } ; INSERT DATA { :a :knows :c }")
        kind, change = reader.next()
        assert kind == "change"
        assert [row["whom"]["value"] for row in change["removed"]] == ["http://e/b"]
        assert [row["whom"]["value"] for row in change["added"]] == ["http://e/c"]
        assert change["id"] == snapshot["id"] + 2
    with Listening(here, "/queries/friends/changes", Last_Event_ID=str(snapshot["id"])) as reader:
        assert reader.next() == ("change", change)
    assert changes(here, "friends", snapshot["id"]) == [change]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [("text/csv", "text/csv"), ("application/sparql-results+xml", None), ("application/sparql-results+json", None)],
)
def test_the_answer_in_the_formats_of_sparql(here: str, accept: str, kind: str | None) -> None:
    put(here, "friends", KNOWS)
    update(here, "INSERT DATA { :a :knows :b }")
    answer = ask(here, "GET", "/queries/friends/answer", [("Accept", accept)])
    assert (answer.status, answer.media_type) == (200, kind or accept)
    assert b"http://e/b" in answer.body
    direct = ask(here, "GET", f"/query?query={quote(KNOWS)}", [("Accept", accept)])
    assert answer.body.split() == direct.body.split()
    assert int(answer.headers["oxiseq-last-id"]) == changes(here, "friends")[-1]["id"]


def test_graphs_and_truths(here: str) -> None:
    put(here, "graph", P + "CONSTRUCT { ?b :knownBy ?a } WHERE { ?a :knows ?b }")
    put(here, "truth", P + "ASK { ?a :knows ?b }")
    assert json.loads(ask(here, "GET", "/queries/truth/answer").body)["boolean"] is False
    update(here, "INSERT DATA { :a :knows :b }")
    assert json.loads(ask(here, "GET", "/queries/truth/answer").body)["boolean"] is True
    graph = ask(here, "GET", "/queries/graph/answer", [("Accept", "application/n-triples")])
    assert graph.body == b"<http://e/b> <http://e/knownBy> <http://e/a> .\n"
    assert [change["answer"] for change in changes(here, "truth")] == [True]
    assert changes(here, "graph")[0]["added"][0]["predicate"]["value"] == "http://e/knownBy"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_text_is_followed_without_a_name(here: str, method: str) -> None:
    """EventSource of a browser can do no more than GET; who comes back goes on where it was."""
    target = f"/query?query={quote(KNOWS)}" if method == "GET" else "/query"
    body, headers = (None, {}) if method == "GET" else (KNOWS.encode(), {"Content_Type": SPARQL[1]})
    with Listening(here, target, method, body, **headers) as reader:
        kind, snapshot = reader.next()
        assert (kind, snapshot["rows"]) == ("snapshot", [])
    update(here, "INSERT DATA { :a :knows :b }")
    with Listening(here, target, method, body, Last_Event_ID=str(snapshot["id"]), **headers) as reader:
        kind, change = reader.next()
        assert (kind, len(change["added"])) == ("change", 1)


def test_a_page_has_as_many_changes_as_are_asked_for(here: str) -> None:
    put(here, "q", KNOWS)
    begin = int(ask(here, "GET", "/queries/q/answer").headers["oxiseq-last-id"])
    for name in "ab":
        update(here, f"INSERT DATA {{ :{name} :knows :c }}")
    for limit, count in ((0, 0), (1, 1), (5, 2)):
        page = ask(here, "GET", f"/queries/q/changes?after={begin}&limit={limit}")
        told = json.loads(page.body)
        assert (len(told["changes"]), told["last"]) == (count, begin + count)
        assert ("link" in page.headers) == (count < 2)


def test_all_that_changes_the_store_counts(here: str) -> None:
    put(here, "all", P + "SELECT ?g ?o WHERE { { ?s :p ?o } UNION { GRAPH ?g { ?s :p ?o } } }")
    begin = int(ask(here, "GET", "/queries/all/answer").headers["oxiseq-last-id"])
    graph = f"/store?graph={quote('http://e/g')}"
    turtle = [("Content-Type", "text/turtle")]
    assert ask(here, "PUT", graph, turtle, b"<http://e/x> <http://e/p> 1 .").status == 201
    assert ask(here, "POST", graph, turtle, b"<http://e/x> <http://e/p> 2 .").status == 204
    assert ask(here, "DELETE", graph).status == 204
    update(here, "INSERT DATA { :x :p 3 }")
    found = [(len(c["removed"]), len(c["added"])) for c in changes(here, "all", begin)]
    assert found == [(0, 1), (0, 1), (2, 0), (0, 1)]


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("SELECT ?x WHERE {\n  ?x ?p ?y FILTER(?y > NOW())\n}", 1, 1, "each change"),
        ("SELECT ?x WHERE {\n  SERVICE <http://e/> { ?x ?p ?y }\n}", 2, 3, "GRAPH"),
        ("SELECT ?x WHERE {\n  ?x ?p", 1, 17, "}"),
        ("DESCRIBE <http://e/a>", 1, 1, "CONSTRUCT"),
    ],
)
def test_a_text_that_cannot_stand_is_told_where(here: str, text: str, line: int, column: int, hint: str) -> None:
    for answer in (
        put(here, "q", text),
        ask(here, "POST", "/queries", [SPARQL], text.encode()),
        ask(here, "GET", f"/query?query={quote(text)}", [LIVE]),
    ):
        problem = json.loads(answer.body)
        assert (answer.status, problem["line"], problem["column"]) == (400, line, column), problem
        assert hint in problem["hint"]
        assert problem["findings"]
    assert ask(here, "GET", "/queries/q").status == 404


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/queries/none/answer", 404),
        ("GET", "/queries/none/changes", 404),
        ("GET", "/queries/q/matches", 404),
        ("GET", "/queries/q/changes?after=99", 410),
        ("GET", "/queries/q/changes?after=x", 400),
        ("GET", "/queries/q/changes?since=0", 400),
        ("GET", f"/query?query={quote(KNOWS)}&since=0", 400),
        ("POST", "/queries/q/changes", 405),
        ("GET", "/queries/q/why?since=5", 400),
        ("PUT", "/queries/q?lateness=5s", 400),
        ("PUT", "/queries/a%20b", 400),
        ("GET", "/query", 400),
        ("GET", f"/query?query={quote(KNOWS)}&default-graph-uri=http://e/g", 501),
    ],
)
def test_what_is_refused(here: str, method: str, target: str, status: int) -> None:
    put(here, "q", KNOWS)
    headers = [LIVE] if target.startswith("/query") and not target.startswith("/queries") else [SPARQL]
    body = KNOWS.encode() if method == "PUT" else None
    answer = ask(here, method, target, headers, body)
    assert (answer.status, answer.media_type) == (status, "application/problem+json"), answer


def test_readers_have_their_limit(here: str) -> None:
    put(here, "q", KNOWS)
    readers = [Listening(here, "/queries/q/changes") for _ in range(3)]
    for reader in readers:
        reader.next()
    refused = ask(here, "GET", "/queries/q/changes", [LIVE])
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    for reader in readers:
        reader.connection.close()


def test_pause_resume_explain_and_delete(here: str) -> None:
    put(here, "q", KNOWS)
    told = json.loads(ask(here, "GET", "/queries/q/explanation").body)
    assert "incremental" in told["text"]
    assert json.loads(ask(here, "PATCH", "/queries/q", [JSON], b'{"state": "paused"}').body)["state"] == "paused"
    assert ask(here, "GET", "/queries/q/explanation").status == 409
    update(here, "INSERT DATA { :a :knows :b }")
    assert changes(here, "q") == []
    assert json.loads(ask(here, "PATCH", "/queries/q", [JSON], b'{"state": "running"}').body)["state"] == "running"
    assert len(changes(here, "q")) == 1
    with Listening(here, "/queries/q/changes") as reader:
        assert reader.next()[0] == "snapshot"
        assert ask(here, "DELETE", "/queries/q").status == 204
        assert reader.next() == ("end", {"reason": "deleted"})


def test_who_may_only_read_may_follow_and_not_register(tmp_path: Path) -> None:
    for address in serving(tmp_path, LiveSettings(idle=None), Tokens("r", "w")):
        reads, writes = ("Authorization", "Bearer r"), ("Authorization", "Bearer w")
        text = KNOWS.encode()
        assert ask(address, "PUT", "/queries/q", [SPARQL], text).status == 401
        assert ask(address, "PUT", "/queries/q", [SPARQL, reads], text).status == 403
        assert ask(address, "PUT", "/queries/q", [SPARQL, writes], text).status == 200
        assert ask(address, "GET", "/queries/q/answer", [reads]).status == 200
        assert ask(address, "GET", f"/query?query={quote(KNOWS)}", [LIVE]).status == 401
        with Listening(address, f"/query?query={quote(KNOWS)}", Authorization="Bearer r") as reader:
            assert reader.next()[0] == "snapshot"


def test_it_says_why(here: str) -> None:
    update(here, "INSERT DATA { :a :knows :b . :b :age 2 , 1 }")
    text = P + "SELECT ?who ?age WHERE { ?who :knows ?whom . ?whom :age ?age FILTER(?age > 2) }"
    put(here, "older", text)
    told = ask(here, "GET", "/queries/older/why")
    assert told.status == 200, told
    value = json.loads(told.body)
    assert (value["language"], value["found"]) == ("sparql", 0)
    assert [stage["matches"] for stage in value["stages"]] == [1, 2, 0, 0]
    (reason,) = value["reasons"]
    assert (reason["kind"], reason["matches"]) == ("filter", 2)
    assert value["looked"] == {"events": 0, "first": None, "last": None}
    ask(here, "PATCH", "/queries/older", [JSON], b'{"state": "paused"}')
    update(here, "INSERT DATA { :b :age 3 }")
    kb = oxiseq.open(here)
    paused = kb.find("older")
    assert isinstance(paused, oxiseq.StandingQuery)
    report = paused.why(limit=1)
    assert report.found == 1 and len(report.matches[0].facts) == 2
    prov = ask(here, "GET", "/queries/older/why", [("Accept", "application/trig")]).body
    assert b"generatedAtTime" in prov and b"<http://e/knows>" in prov
    refused = ask(here, "GET", "/queries/older/why?since=2024-05-01")
    assert refused.status == 400 and b"reads none" in refused.body
