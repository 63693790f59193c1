"""Queries that stand over an endpoint elsewhere: asked at each refresh, told as differences, durable as those here."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from answer_followers import Follower, asked
from http_client import ask
from profiles import in_the_gate
from pyoxigraph import QueryResultsFormat
from rdflib import Dataset
from rdflib_endpoint import rdflib_endpoint
from servers import NO_OXIGRAPH, ours, oxigraph_program, real, served

from oxiseq.api.store import Store
from oxiseq.engine.errors import LimitError
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.standing import StandingQueries
from oxiseq.sparql import SparqlSettings
from oxiseq.sparql.settings import Limits
from oxiseq.sparql.upstream import RemoteKb, Upstream, UpstreamError

P = "PREFIX : <http://e/> "
FRIENDS = P + "SELECT ?who (COUNT(*) AS ?n) WHERE { ?who :knows ?whom } GROUP BY ?who"
OTHERS = P + "SELECT ?whom WHERE { ?who :knows ?whom }"
MAYBE = P + "SELECT ?who ?name WHERE { ?who :knows ?whom OPTIONAL { ?whom :name ?name } }"
GRAPH = P + "CONSTRUCT { ?whom :knownBy ?who } WHERE { ?who :knows ?whom }"
TRUTH = P + "ASK { :p0 :knows :p1 }"
ALL = {"friends": FRIENDS, "others": OTHERS, "maybe": MAYBE, "graph": GRAPH, "truth": TRUTH}
QUICK = LiveSettings(idle=None, heartbeat=0.05)
A, B = "whom=<http://e/a>", "whom=<http://e/b>"
SPARQL = ("Content-Type", "application/sparql-query")
JSON = ("Content-Type", "application/json")


@contextmanager
def in_front(
    url: str, folder: Path, settings: LiveSettings = QUICK, transport: httpx.BaseTransport | None = None
) -> Iterator[LiveService]:
    upstream = Upstream(url, SparqlSettings(limits=Limits(seconds=5.0)), transport)
    try:
        with LiveService(RemoteKnowledge(RemoteKb(upstream)), folder, settings, "normal") as service:
            yield service
    finally:
        upstream.close()


def register(service: LiveService, **texts: str) -> None:
    for name, text in texts.items():
        service.queries.register(name, text, "sparql", replace=True)


def heard(service: LiveService, name: str, follower: Follower | None = None) -> Follower:
    return (follower or Follower()).listen(service, name, service.standing.answer(name).number)


def expected(store: Store, name: str) -> Any:
    """What a store here answers."""
    if name == "truth":
        return bool(store.query(TRUTH))
    if name == "graph":
        found: Any = store.query(GRAPH)
        return Counter(f"object={t.object} predicate={t.predicate} subject={t.subject}" for t in {*found})
    return asked(store, ALL[name])


def told(follower: Follower, name: str) -> Any:
    return follower.truth if name == "truth" else follower.rows


@pytest.fixture(params=in_the_gate({"real", "rdflib"}, ["ours", "real", "rdflib"]))
def behind(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """An endpoint, and how to change it."""
    if request.param == "real" and oxigraph_program() is None:
        pytest.skip(NO_OXIGRAPH)
    if request.param == "rdflib":
        data = Dataset()
        with rdflib_endpoint(data) as address:
            yield address, data.update
        return
    with ours() if request.param == "ours" else real() as address:

        def update(text: str) -> None:
            assert httpx.post(f"{address}/update", data={"update": text}).status_code == 204

        yield address, update


@pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
def test_readers_have_the_answer_after_every_refresh(behind: tuple[str, Any], tmp_path: Path) -> None:
    address, update = behind
    drawn, store = random.Random(7), Store()
    readers = {name: Follower() for name in ALL}
    for restart in range(2):
        with in_front(address, tmp_path) as service:
            if not restart:
                register(service, **ALL)
            for _ in range(12):
                for _ in range(drawn.randrange(3)):
                    a, b = (f":p{drawn.randrange(3)}" for _ in range(2))
                    text = P + drawn.choice(
                        [
                            f"INSERT {{ {a} :knows {b} }} WHERE {{}}",
                            f"DELETE {{ {a} :knows {b} }} WHERE {{}}",
                            f"INSERT {{ {a} :name '{b}' }} WHERE {{}}",
                            f"DELETE {{ {a} :name ?n }} WHERE {{ {a} :name ?n }}",
                        ]
                    )
                    update(text)
                    store.update(text)
                service.refresh()
                for name, reader in readers.items():
                    heard(service, name, reader)
                    assert told(reader, name) == expected(store, name), name
    for reader in readers.values():
        assert reader.told.count("snapshot") == 1  # all else came as changes, over the restart too


def test_one_question_each_refresh_and_nothing_told_when_nothing_changes(tmp_path: Path) -> None:
    texts: list[str] = []
    rows = ["a", "b"]

    def said(request: httpx.Request) -> httpx.Response:
        texts.append(request.content.decode())
        return httpx.Response(200, stream=httpx.ByteStream(results(*rows)))

    with in_front("http://e", tmp_path, transport=httpx.MockTransport(said)) as service:
        register(service, one=OTHERS, two=OTHERS)
        assert len(texts) == 1
        before = service.standing.answer("one").number
        rows.reverse()
        service.refresh()
        service.refresh()
        assert len(texts) == 3
        assert service.standing.answer("one").number == before
        rows += ["a"]
        service.refresh()
        assert service.standing.answer("one").number == service.standing.answer("two").number == before + 1
        told = json.loads(json.dumps(service.standing.explain("one").json()))
        assert told["asks"] == texts[0]
        assert "elsewhere" in str(service.standing.explain("one"))


def results(*objects: str) -> bytes:
    rows = [{"whom": {"type": "uri", "value": f"http://e/{each}"}} for each in objects]
    return json.dumps({"head": {"vars": ["whom"]}, "results": {"bindings": rows}}).encode()


class Away:
    """An endpoint of a test: what it says, and of which texts it says nothing."""

    def __init__(self) -> None:
        self.body = results("a")
        self.away = False
        self.hangs = ""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.away or (self.hangs and self.hangs in request.content.decode()):
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(200, stream=httpx.ByteStream(self.body))


def test_an_endpoint_that_is_away(tmp_path: Path) -> None:
    endpoint = Away()
    transport = httpx.MockTransport(endpoint)
    with in_front("http://e", tmp_path, transport=transport) as service:
        register(service, q=OTHERS)
        reader = heard(service, "q")
        endpoint.away = True
        with pytest.raises(UpstreamError):
            service.refresh()
        standing = service.queries.get("q").standing
        assert standing is not None
        assert (standing.state, "cannot be reached" in standing.reason) == ("asked", True)
        assert isinstance(service.store, RemoteKnowledge)
        assert service.store.told.failures == 1
        with pytest.raises(UpstreamError):
            register(service, other=FRIENDS)
        assert [status.record.name for status in service.queries.all()] == ["q"]
    with in_front("http://e", tmp_path, transport=transport) as service:  # a restart, and it is still away
        assert service.queries.get("q").record.state == "running"
        assert list(heard(service, "q", reader).rows.items()) == [(A, 1)]
        endpoint.away, endpoint.body = False, results("b")
        service.refresh()
        assert list(heard(service, "q", reader).rows.items()) == [(B, 1)]
        assert reader.told.count("snapshot") == 1
        standing = service.queries.get("q").standing
        assert standing is not None
        assert "failed" not in standing.reason


@pytest.mark.parametrize("body", [b"", b"<html>", results("b")[:-20], b'{"head": {}, "boolean": true}'])
def test_what_is_no_answer_changes_nothing(body: bytes, tmp_path: Path) -> None:
    endpoint = Away()
    with in_front("http://e", tmp_path, transport=httpx.MockTransport(endpoint)) as service:
        register(service, q=OTHERS)
        endpoint.body = body
        with pytest.raises(UpstreamError):
            service.refresh()
        assert service.standing.answer("q").rows == Counter({("<http://e/a>",): 1})
        with pytest.raises(UpstreamError):
            register(service, other=FRIENDS)


def test_one_that_fails_does_not_hinder_others(tmp_path: Path) -> None:
    endpoint = Away()
    with in_front("http://e", tmp_path, transport=httpx.MockTransport(endpoint)) as service:
        register(service, slow=P + "SELECT ?whom WHERE { ?who :slow ?whom }", quick=OTHERS)
        endpoint.hangs, endpoint.body = "slow", results("b")
        with pytest.raises(UpstreamError):
            service.refresh()
        answers = {name: service.standing.answer(name).rows for name in ("slow", "quick")}
        assert answers == {"slow": Counter({("<http://e/a>",): 1}), "quick": Counter({("<http://e/b>",): 1})}


def test_an_answer_that_grows_too_large_fails_the_query_alone(tmp_path: Path) -> None:
    endpoint = Away()
    settings = LiveSettings(idle=None, answer=2)
    with in_front("http://e", tmp_path, settings, httpx.MockTransport(endpoint)) as service:
        register(service, q=OTHERS)
        endpoint.body = results("a", "b", "c")
        service.refresh()
        deadline = time.monotonic() + 30
        while service.queries.get("q").record.state != "failed":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(LimitError):
            register(service, other=OTHERS)
        endpoint.body = results("b")
        service.queries.resume("q")
        assert service.standing.answer("q").rows == Counter({("<http://e/b>",): 1})


def test_who_resumes_is_answered_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandingQueries, "_round", lambda _: time.sleep(0.05))  # a thread that is late
    endpoint = Away()
    with in_front("http://e", tmp_path, transport=httpx.MockTransport(endpoint)) as service:
        register(service, q=OTHERS)
        reader = heard(service, "q")
        service.queries.pause("q")
        service.refresh()
        endpoint.body = results("b")
        service.queries.resume("q")
        assert list(heard(service, "q", reader).rows.items()) == [(B, 1)]
        service.queries.delete("q")
        endpoint.body = results("c")
        register(service, q=OTHERS)
        assert service.standing.answer("q").rows == Counter({("<http://e/c>",): 1})


def test_over_http(tmp_path: Path) -> None:
    with ours() as behind:
        upstream = Upstream(behind)
        with LiveService(RemoteKnowledge(RemoteKb(upstream)), tmp_path, QUICK, "normal") as service:
            routes = LiveRoutes(service, upstream.evaluations)
            with served(upstream, live=routes) as address:
                assert ask(address, "PUT", "/queries/q", [SPARQL], OTHERS.encode()).status == 200
                update = ("Content-Type", "application/sparql-update")
                text = (P + "INSERT DATA { :a :knows :b }").encode()
                assert ask(address, "POST", "/update", [update], text).status == 204
                changes = "/queries/q/changes"
                assert json.loads(ask(address, "GET", changes).body)["changes"] == []
                assert ask(address, "POST", "/kb/refresh").status == 200
                (change,) = json.loads(ask(address, "GET", changes).body)["changes"]
                assert [row["whom"]["value"] for row in change["added"]] == ["http://e/b"]
                assert change["at"] > "2026"
                value = json.loads(ask(address, "GET", "/queries/q").body)
                assert (value["evaluation"], value["rows"]) == ("asked", 1)
                explained = json.loads(ask(address, "GET", "/queries/q/explanation").body)
                assert "SELECT ?whom" in explained["text"]
                assert explained["sends"] == [explained["explanation"]["asks"]]
                answer = ask(address, "GET", "/queries/q/answer", [("Accept", QueryResultsFormat.CSV.media_type)])
                assert answer.body == b"whom\r\nhttp://e/b\r\n"
        upstream.close()
