"""Streams and queries in front of an endpoint: what queries ask it is asked once, and again when somebody says so."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from http_client import Answer, ask
from servers import NO_OXIGRAPH, ours, oxigraph_program, real, served

from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.sparql import SparqlEndpoint, SparqlSettings
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.settings import Limits
from oxiseq.sparql.upstream import RemoteKb, Upstream, UpstreamError, read_answer
from oxiseq.warmup.first_run import prepare

EX = "http://example.org/"
PAID = f"/streams/{quote(f'{EX}paid', safe='')}"
NAMED = f"""PREFIX : <{EX}>
SELECT ?who ?name ?sum
FROM STREAM S <{EX}paid>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?who :paid ?sum GRAPH :people {{ ?who :name ?name }} }} }}"""
MAYBE = f"""PREFIX : <{EX}>
SELECT ?who ?name ?sum
FROM STREAM S <{EX}paid>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?who :paid ?sum OPTIONAL {{ GRAPH :people {{ ?who :name ?name }} }} }} }}"""
SPASEQ, TURTLE = ("Content-Type", "application/spaseq-query"), ("Content-Type", "text/turtle")


@pytest.fixture(params=["ours", "real"])
def behind(request: pytest.FixtureRequest) -> Iterator[str]:
    """An endpoint that one already has: our server, or the real oxigraph."""
    if request.param == "real" and oxigraph_program() is None:
        pytest.skip(NO_OXIGRAPH)
    with ours() if request.param == "ours" else real() as address:
        people(address, ann="Ann")
        yield address


def people(address: str, **names: str) -> None:
    """Who is called what, instead of what was there."""
    triples = " ".join(f'<{EX}{who}> <{EX}name> "{name}" .' for who, name in names.items())
    graph = f"/store?graph={quote(f'{EX}people', safe='')}"
    assert ask(address, "PUT", graph, [TURTLE], triples.encode()).status in (201, 204)


@contextmanager
def in_front(url: str, folder: Path, refresh: float | None = None) -> Iterator[tuple[str, LiveService]]:
    """A server with streams in front of it."""
    prepare()  # a request is not to wait for kernels that are compiled
    upstream = Upstream(url, SparqlSettings(limits=Limits(seconds=5.0)))
    knowledge = RemoteKnowledge(RemoteKb(upstream))
    upstream.on_written = knowledge.written
    settings = LiveSettings(idle=None, refresh=refresh)
    try:
        with (
            LiveService(knowledge, folder, settings, "normal") as service,
            served(upstream, live=LiveRoutes(service, Evaluations(Limits()))) as address,
        ):
            yield address, service
    finally:
        upstream.close()


def pay(address: str, time: int, who: str, sum: int) -> None:
    """A payment, and nothing before it will come."""
    body = f"<{EX}{who}> <{EX}paid> {sum} .".encode()
    assert ask(address, "POST", f"{PAID}?time={time}&watermark={time + 1}", [TURTLE], body).status == 200


def rows(address: str, query: str, count: int) -> list[tuple[str, ...]]:
    """The matches, once there are so many."""
    deadline = time.monotonic() + 30
    while json.loads(ask(address, "GET", f"/queries/{query}").body)["matches"]["next"] <= count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    text = ask(address, "GET", f"/queries/{query}/matches", [("Accept", "text/csv")]).body.decode()
    return [tuple(line.removeprefix(EX).split(",")) for line in text.splitlines()[1:]]


def told(answer: Answer, status: int = 200) -> Any:
    assert answer.status == status, answer.body
    return json.loads(answer.body)


def test_queries_ask_once_and_again_on_request(behind: str, tmp_path: Path) -> None:
    with in_front(behind, tmp_path) as (address, _):
        for name, text in (("named", NAMED), ("maybe", MAYBE)):
            told(ask(address, "PUT", f"/queries/{name}", [SPASEQ], text.encode()))
        before = told(ask(address, "GET", "/kb"))
        assert before["answers"] == 2  # a pattern that is joined, and a copy for one that is evaluated in place
        pay(address, 1, "ann", 10)
        pay(address, 2, "bob", 20)
        assert rows(address, "named", 1) == [("ann", "Ann", "10")]
        people(behind, ann="Anna", bob="Bob")  # not through us: it is known when it is asked for
        assert b"Anna" in ask(behind, "GET", f"/query?query={quote('SELECT ?n { GRAPH ?g { ?s ?p ?n } }')}").body
        pay(address, 3, "ann", 30)
        assert rows(address, "named", 2)[1:] == [("ann", "Ann", "30")]
        after = told(ask(address, "POST", "/kb/refresh"))
        assert (after["changes"], after["failures"], after["error"]) == (1, 0, None)
        assert after["asked"] > before["asked"]
        pay(address, 4, "ann", 40)
        pay(address, 5, "bob", 50)
        assert rows(address, "named", 4)[2:] == [("ann", "Anna", "40"), ("bob", "Bob", "50")]
        assert rows(address, "maybe", 5) == [
            ("ann", "Ann", "10"),
            ("bob", "", "20"),
            ("ann", "Ann", "30"),
            ("ann", "Anna", "40"),
            ("bob", "Bob", "50"),
        ]
        assert told(ask(address, "POST", "/kb/refresh"))["changes"] == 1  # nothing new
        for name in ("named", "maybe"):
            sends = told(ask(address, "GET", f"/queries/{name}/explanation"))["sends"]
            assert [text for text in sends if f"<{EX}people>" in text and f"<{EX}name>" in text] == sends != []
        once = ask(address, "POST", "/query", [SPASEQ, ("Accept", "text/csv")], NAMED.encode())
        assert once.body.count(b"Anna") == 3  # asked of the endpoint, as it is now


def test_an_update_through_us_is_known_without_a_refresh(behind: str, tmp_path: Path) -> None:
    select = f"SELECT ?n {{ GRAPH <{EX}people> {{ ?who <{EX}name> ?n }} }}".encode()
    with in_front(behind, tmp_path) as (address, service):
        told(ask(address, "PUT", "/queries/names", [("Content-Type", "application/sparql-query")], select))
        told(ask(address, "PUT", "/queries/named", [SPASEQ], NAMED.encode()))

        def names() -> set[bytes]:
            return set(ask(address, "GET", "/queries/names/answer", [("Accept", "text/csv")]).body.split()[1:])

        assert names() == {b"Ann"}
        update = f"INSERT DATA {{ GRAPH <{EX}people> {{ <{EX}bob> <{EX}name> 'Bob' }} }}".encode()
        assert ask(address, "POST", "/update", [("Content-Type", "application/sparql-update")], update).status == 204
        assert names() == {b"Ann", b"Bob"}
        assert ask(address, "POST", "/update", [("Content-Type", "application/sparql-update")], b"INSERT").status == 400
        assert not service.store.behind  # nothing was carried out, and nothing is asked
        people(address, ann="Anna", bob="Bob")
        changes = told(ask(address, "GET", "/queries/names/changes"))["changes"]
        assert [sorted(change) for change in changes] and names() == {b"Anna", b"Bob"}
        pay(address, 1, "ann", 10)
        assert rows(address, "named", 1) == [("ann", "Anna", "10")]


def test_updates_through_us_are_asked_about_once(tmp_path: Path) -> None:
    """Nobody reads meanwhile: the server asks by itself, and readers that follow live hear of it."""
    with ours() as behind, in_front(behind, tmp_path) as (address, service):
        people(behind, ann="Ann")
        select = f"SELECT ?n {{ GRAPH <{EX}people> {{ ?who <{EX}name> ?n }} }}".encode()
        told(ask(address, "PUT", "/queries/names", [("Content-Type", "application/sparql-query")], select))
        before = service.journal.queries.get("names").next
        people(address, ann="Anna")
        deadline = time.monotonic() + 30
        while service.journal.queries.get("names").next == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not service.store.behind


def test_on_a_schedule(behind: str, tmp_path: Path) -> None:
    with in_front(behind, tmp_path, refresh=0.05) as (address, service):
        told(ask(address, "PUT", "/queries/named", [SPASEQ], NAMED.encode()))
        people(behind, ann="Anna")
        deadline = time.monotonic() + 30
        while not told(ask(address, "GET", "/kb"))["changes"]:
            assert time.monotonic() < deadline
        pay(address, 1, "ann", 10)
        assert rows(address, "named", 1) == [("ann", "Anna", "10")]
        assert b"oxiseq_kb_last_query_timestamp_seconds" in service.metrics.text()


def test_an_endpoint_that_is_away(tmp_path: Path) -> None:
    with ours() as url:
        people(url, ann="Ann")
        with in_front(url, tmp_path) as (address, _):
            told(ask(address, "PUT", "/queries/named", [SPASEQ], NAMED.encode()))
    with in_front(url, tmp_path) as (address, service):  # a restart, and nobody answers there
        assert told(ask(address, "GET", "/kb"))["answers"] == 1
        pay(address, 1, "ann", 10)
        assert rows(address, "named", 1) == [("ann", "Ann", "10")]
        problem = told(ask(address, "POST", "/kb/refresh"), 502)
        assert problem["title"] == "the knowledge base cannot be queried"
        state = told(ask(address, "GET", "/kb"))
        assert (state["answers"], state["failures"]) == (1, 1)
        assert "cannot be reached" in state["error"]
        assert b"oxiseq_kb_refresh_failures_total 1.0" in service.metrics.text()
        other = NAMED.replace(":name", ":alias")
        problem = told(ask(address, "PUT", "/queries/other", [SPASEQ], other.encode()), 502)
        assert "cannot be reached" in problem["detail"]
        assert told(ask(address, "GET", "/queries"))["queries"][0]["name"] == "named"
        told(ask(address, "GET", "/queries/other"), 404)
        told(ask(address, "PUT", "/queries/again", [SPASEQ], NAMED.encode()))  # what it asks is known
        pay(address, 2, "ann", 20)
        assert rows(address, "again", 1) == [("ann", "Ann", "20")]
        assert ask(address, "GET", "/query?query=ASK%20%7B%7D").status == 502


def test_a_kb_of_ours_is_not_elsewhere(tmp_path: Path) -> None:
    store = Store()
    endpoint = SparqlEndpoint(store)
    with (
        LiveService(store, tmp_path, LiveSettings(), "normal") as service,
        served(endpoint, live=LiveRoutes(service, endpoint.evaluations)) as address,
    ):
        for method, path in (("GET", "/kb"), ("POST", "/kb/refresh")):
            told(ask(address, method, path), 404)


# --- answers by themselves --------------------------------------------------------------------------


def results(*subjects: str) -> bytes:
    """Solutions that are blank nodes."""
    rows = [{"s": {"type": "bnode", "value": label}, "o": {"type": "literal", "value": "x"}} for label in subjects]
    return json.dumps({"head": {"vars": ["s", "o"]}, "results": {"bindings": rows}}).encode()


def test_blank_nodes_are_of_one_answer() -> None:
    def labels(body: bytes, text: str = "SELECT ?s ?o {}") -> list[str]:
        return [solution["s"].value for solution in read_answer(text, body)]

    one = labels(results("b0", "b1", "b0"))
    assert one[0] == one[2] != one[1]
    assert labels(results("b0", "b1", "b0")) == one  # the same answer again
    assert not set(one) & set(labels(results("b0", "b1")))
    assert not set(one) & set(labels(results("b0", "b1", "b0"), "SELECT * {}"))  # as it happens, the same
    (solution,) = read_answer("", results("b0"))
    assert list(solution) == [solution[0], solution[1]]
    assert (solution[1].value, solution["o"].value) == ("x", "x")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", results("x")[:-20], b'{"head": {}, "boolean": true}', results("x").replace(b"bnode", b"?")]
)
def test_an_answer_that_is_none_is_a_failure(body: bytes) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=httpx.ByteStream(body)))
    upstream = Upstream("http://e", transport=transport)
    with pytest.raises(UpstreamError) as error:
        RemoteKb(upstream).body("SELECT * {}")
    assert error.value.status == 502
    upstream.close()


@pytest.mark.parametrize(("most", "seconds", "status"), [(100, 5.0, 502), (1 << 20, 0.2, 504)])
def test_an_answer_without_end_is_left(most: int, seconds: float, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.sparql.upstream._MOST", most)

    class Drops(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                yield b" "
                time.sleep(0.001)

    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Drops()))
    upstream = Upstream("http://e", SparqlSettings(limits=Limits(seconds=seconds)), transport)
    with pytest.raises(UpstreamError) as error:
        RemoteKb(upstream).body("SELECT * {}")
    assert error.value.status == status
    upstream.close()


class Flaky:
    """An endpoint that fails at the second question of a round."""

    version = 1

    def __init__(self) -> None:
        self.bodies = {"a": results("x"), "b": results("y"), "c": results("z")}
        self.fails = False

    def solutions(self, text: str) -> Any:
        return read_answer(text, self.body(text))

    def body(self, text: str) -> bytes:
        if self.fails and text == "b":
            raise UpstreamError("away", 504)
        return self.bodies[text]


def test_a_refresh_is_done_whole_or_not_at_all(tmp_path: Path) -> None:
    endpoint = Flaky()
    knowledge = RemoteKnowledge(endpoint)
    with LiveService(knowledge, tmp_path, LiveSettings(), "normal"):
        knowledge.learn(["a", "b", "c"])
        version, before = knowledge.kb.version, knowledge.body("a")
        endpoint.bodies["a"], endpoint.fails = results("z"), True
        with pytest.raises(UpstreamError):
            knowledge.refresh(["a", "b"])
        assert (knowledge.body("a"), knowledge.kb.version) == (before, version)
        assert (knowledge.told.failures, knowledge.told.error) == (1, "away")
        endpoint.fails = False
        assert knowledge.refresh(["a", "b"]).error == ""
        assert knowledge.body("a") == results("z")
        assert knowledge.kb.version != version
        assert knowledge.refresh(["a", "b"]).answers == 2  # what is not asked has gone with the change
        endpoint.bodies["a"] = results("w")
        assert knowledge.refresh(["b"]).answers == 2  # "a" has been given to somebody
        assert knowledge.body("a") == results("w")
