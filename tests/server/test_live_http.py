"""Streams and queries over HTTP: routes, tokens, limits, the OpenAPI document, live readers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from http_client import Answer, ask
from servers import served

from oxiseq.api.store import Store
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import write_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import QueryError, load
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.live.api.openapi import SCHEMAS
from oxiseq.live.api.operations import OPERATIONS
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sparql import SparqlEndpoint

EX = "http://example.org/"
STREAM = f"{EX}power"
PATH = f"/streams/{quote(STREAM, safe='')}"
RISES = f"""PREFIX : <{EX}>
SELECT ?house ?after WITHIN 1 HOUR
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?before }}
  DEFINE GPM B ON S {{ ?house :watts ?after FILTER(?after > 2 * ?before) }}
}}"""
SPASEQ = ("Content-Type", "application/spaseq-query")
JSON = ("Content-Type", "application/json")
TURTLE = ("Content-Type", "text/turtle")


@contextmanager
def server(folder: Path, settings: ServerSettings | None = None, live: LiveSettings | None = None) -> Iterator[str]:
    """The address of a server with streams."""
    store = Store()
    endpoint = SparqlEndpoint(store)
    chosen = live if live is not None else LiveSettings(idle=0.05, heartbeat=0.2)
    given = settings if settings is not None else ServerSettings(port=0, threads=6)
    with LiveService(store, folder, chosen, "normal") as service:
        routes = LiveRoutes(service, endpoint.evaluations)
        with served(endpoint, replace(given, live=8), routes) as address:
            yield address


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("live")) as given:
        yield given


@pytest.fixture
def rises(address: str) -> Iterator[str]:
    """A query, registered for one test."""
    assert ask(address, "PUT", "/queries/rises", [SPASEQ], RISES.encode()).status == 200
    yield "/queries/rises"
    ask(address, "DELETE", "/queries/rises")
    ask(address, "DELETE", PATH)


def told(answer: Answer, status: int = 200) -> Any:
    """The JSON body; a refusal is problem details."""
    assert answer.status == status, answer
    assert answer.media_type == ("application/json" if status < 400 else "application/problem+json")
    return json.loads(answer.body)


def push(address: str, second: int, watts: int, *headers: tuple[str, str]) -> Answer:
    """One event."""
    target = f"{PATH}?time=2024-05-01T10:00:{second:02}Z"
    return ask(address, "POST", target, [TURTLE, *headers], f"<{EX}h> <{EX}watts> {watts} .".encode())


def test_a_match_from_push_to_results(address: str, rises: str) -> None:
    for second, watts in ((1, 100), (2, 300), (3, 50)):
        assert told(push(address, second, watts))["accepted"] == 1
    while not (rows := told_rows(ask(address, "GET", f"{rises}/matches"))):
        pass
    assert [row["after"]["value"] for row in rows] == ["300"]
    for media_type in ("text/csv", "text/tab-separated-values", "application/sparql-results+xml"):
        answer = ask(address, "GET", f"{rises}/matches", [("Accept", media_type)])
        assert (answer.status, answer.media_type) == (200, media_type)
        assert b"300" in answer.body
    assert int(answer.headers["oxiseq-last-id"]) == told(ask(address, "GET", rises))["matches"]["next"] - 1
    assert ask(address, "GET", f"{rises}/matches", [("Accept", "image/png")]).status == 406


def told_rows(answer: Answer) -> list[dict[str, Any]]:
    """SPARQL JSON bindings."""
    assert answer.media_type == "application/sparql-results+json", answer
    found: list[dict[str, Any]] = json.loads(answer.body)["results"]["bindings"]
    return found


def test_pages_of_matches_link_to_the_next(address: str, rises: str) -> None:
    first = int(told(ask(address, "GET", rises))["matches"]["next"])
    for second, watts in enumerate((1, 10, 100, 1000), start=1):
        push(address, second, watts)
    while told(ask(address, "GET", rises))["matches"]["next"] < first + 3:
        pass
    seen, target = [], f"{rises}/matches?after={first - 1}&limit=2"
    answer = ask(address, "GET", target)
    seen += told_rows(answer)
    assert len(seen) == 2
    link = answer.headers["link"]
    assert link == f'<{rises}/matches?after={first + 1}>; rel="next"'
    rest = ask(address, "GET", link[1 : link.index(">")])
    assert "link" not in rest.headers
    assert len(told_rows(rest)) >= 1
    assert told_rows(ask(address, "GET", f"{rises}/matches?after=999999")) == []
    for wrong in ("after=x", "after=-1", "limit=1.5", "after=1&after=2", "since=1", "after=99999999999999999999999"):
        told(ask(address, "GET", f"{rises}/matches?{wrong}"), 400)


def test_a_batch_id_is_idempotent(address: str, rises: str) -> None:
    key = ("Idempotency-Key", "k1")
    first = told(push(address, 1, 5, key))
    again = told(push(address, 1, 5, key))
    assert (first["duplicates"], again["duplicates"]) == (0, first["accepted"])
    assert first["offsets"] == again["offsets"]
    told(push(address, 1, 6, key), 409)


def test_events_are_stamped_when_they_arrive(address: str, rises: str) -> None:
    answers = [
        told(ask(address, "POST", f"{PATH}?time=arrival", [TURTLE], f"<{EX}h> <{EX}watts> {watts} .".encode()))
        for watts in (100, 300)
    ]
    assert [(answer["accepted"], answer["late"]) for answer in answers] == [(1, 0)] * 2
    assert answers[0]["time"] < answers[1]["time"]
    while not (rows := told_rows(ask(address, "GET", f"{rises}/matches"))):
        pass  # nothing later comes: the instant is complete by itself
    assert [row["after"]["value"] for row in rows] == ["300"]
    event = f"<{EX}h> <{EX}watts> 5 ."
    told(ask(address, "POST", f"{PATH}?time=arrival&watermark=5", [TURTLE], event.encode()), 400)
    told(ask(address, "POST", f"{PATH}?time=arrival", [("Content-Type", "application/n-quads")], b""), 400)


def test_bodies_of_events(address: str, rises: str) -> None:
    stamp = '<http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:01Z"'
    quads = f"<{EX}e> {stamp}^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n<{EX}h> <{EX}watts> 5 <{EX}e> .\n"
    given = told(ask(address, "POST", PATH, [("Content-Type", "application/n-quads")], quads.encode()), 400)
    assert given["reasons"][0]["line"] == 2  # 5 is Turtle's
    good = quads.replace(" 5 ", ' "5" ').encode()
    assert told(ask(address, "POST", PATH, [("Content-Type", "application/n-quads")], good))["accepted"] == 1
    trig = f"<{EX}f> {stamp}^^<http://www.w3.org/2001/XMLSchema#dateTime> . <{EX}f> {{ <{EX}h> <{EX}watts> 5 }}"
    assert told(ask(address, "POST", PATH, [("Content-Type", "application/trig")], trig.encode()))["accepted"] == 1
    told(ask(address, "POST", PATH, [("Content-Type", "application/zip")], b"x"), 415)
    told(ask(address, "POST", PATH, [TURTLE], b"<http://e/a> <http://e/p> 1 ."), 400)  # no time
    told(ask(address, "POST", f"{PATH}?time=noon", [TURTLE], b"<http://e/a> <http://e/p> 1 ."), 400)
    told(ask(address, "POST", "/streams/http%3A%2F%2Fe%2Fnone?time=1", [TURTLE], b"<http://e/a> <http://e/p> 1 ."), 404)
    events = ask(address, "GET", f"{PATH}/events", [("Accept", "application/trig")])
    assert events.body.count(b"generatedAtTime") == 2
    assert events.headers["oxiseq-next-offset"] == "2"


def test_tables_and_jelly(address: str, rises: str, tmp_path: Path) -> None:
    terms = TermDictionary()
    batch = encode_events([(1, f"<{EX}h> <{EX}watts> 1 ."), (2, f"<{EX}h> <{EX}watts> 2 .")], terms)
    kinds = {"arrow": "application/vnd.apache.arrow.file", "parquet": "application/vnd.apache.parquet"}
    if find_spec("pyjelly") is not None:
        kinds["jelly"] = "application/x-jelly-rdf"
    for ending, media_type in kinds.items():
        write_events([batch], terms, tmp_path / f"events.{ending}")
        body = (tmp_path / f"events.{ending}").read_bytes()
        assert told(ask(address, "POST", PATH, [("Content-Type", media_type)], body))["accepted"] == 2
        told(ask(address, "POST", PATH, [("Content-Type", media_type)], body[: len(body) // 2]), 400)


def test_errors_of_a_query_are_those_of_check(address: str) -> None:
    text = RISES.replace("SEQ(A; B)", "SEQ(A; Bb)")
    with pytest.raises(QueryError) as refused:
        load(text)
    for method, target in (("POST", "/queries"), ("PUT", "/queries/x"), ("POST", "/query")):
        given = told(ask(address, method, target, [SPASEQ], text.encode()), 400)
        assert given["detail"] == refused.value.message
        assert (given["line"], given["column"]) == (refused.value.line, refused.value.column)
        assert "gpm" in [finding["code"] for finding in given["findings"]]
    assert told(ask(address, "GET", "/queries"))["queries"] == []


def test_the_life_of_a_query(address: str) -> None:
    body = {"name": "life", "text": RISES, "lateness": "2.5s", "origin": "2024-05-01T00:00:00Z"}
    made = ask(address, "POST", "/queries", [JSON], json.dumps(body).encode())
    assert made.headers["location"] == "/queries/life"
    query = told(made, 201)
    assert (query["lateness"], query["origin"], query["reads"]) == ("2500ms", "2024-05-01T00:00:00Z", [STREAM])
    told(ask(address, "POST", "/queries", [JSON], json.dumps(body).encode()), 409)
    for state in ("paused", "running"):
        changed = ask(address, "PATCH", "/queries/life", [JSON], json.dumps({"state": state}).encode())
        assert told(changed)["state"] == state
        assert told(ask(address, "GET", "/queries/life"))["variables"] == ["house", "after"]
    told(ask(address, "PATCH", "/queries/life", [JSON], b'{"state": "flying"}'), 400)
    told(ask(address, "DELETE", PATH), 409)
    assert ask(address, "DELETE", "/queries/life").status == 204
    told(ask(address, "GET", "/queries/life"), 404)
    told(ask(address, "GET", "/queries/life/matches"), 404)
    assert ask(address, "DELETE", PATH).status == 204


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"text": 5}',
        b'{"text": "SELECT", "name": 5}',
        b'{"text": "x", "lateness": "long"}',
        b'{"text": "x", "origin": []}',
        b'{"text": "x", "colour": 1}',
        b'{"text": "x", "language": "sql"}',
        b'{"text": "x", "stream_names": [1]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_malformed_registrations(address: str, body: bytes) -> None:
    told(ask(address, "POST", "/queries", [JSON], body), 400)


def test_streams_keep_what_they_are_told(address: str) -> None:
    made = ask(address, "POST", "/streams", [JSON], json.dumps({"iri": f"{EX}k", "retention": {"count": 5}}).encode())
    assert told(made, 201)["retention"] == {"for": None, "count": 5}
    path = made.headers["location"]
    assert told(ask(address, "GET", path))["iri"] == f"{EX}k"
    for wrong in (
        {},
        {"iri": "no iri"},
        {"iri": f"{EX}k", "retention": {"count": -1}},
        {"iri": f"{EX}k", "retention": 5},
    ):
        told(ask(address, "POST", "/streams", [JSON], json.dumps(wrong).encode()), 400)
    assert ask(address, "DELETE", path).status == 204


def test_a_query_runs_once_over_the_kept_events(address: str, rises: str) -> None:
    for second, watts in ((1, 100), (2, 300)):
        push(address, second, watts)
    answer = ask(address, "POST", "/query", [SPASEQ, ("Accept", "text/csv")], RISES.encode())
    assert answer.body == f"house,after\r\n{EX}h,300\r\n".encode()
    assert len(told_rows(ask(address, "POST", "/query", [SPASEQ], RISES.encode()))) == 1
    told(ask(address, "POST", "/query", [SPASEQ], RISES.replace("power", "none").encode()), 404)
    assert ask(address, "GET", "/query?query=" + quote("ASK {}")).status == 200  # SPARQL is as it was


def test_live_readers_get_matches_and_comments(address: str, rises: str) -> None:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
    connection.request("GET", f"{rises}/matches", headers=headers)
    response = connection.getresponse()
    assert (response.status, response.getheader("Content-Type")) == (200, "text/event-stream")
    assert response.getheader("Content-Encoding") is None
    for second, watts in ((1, 100), (2, 300)):
        push(address, second, watts)
    seen = []
    while not any(line.startswith(b"data:") for line in seen):
        seen.append(response.readline())
    number = next(int(line[4:]) for line in seen if line.startswith(b"id:"))
    while b": still here\n" not in seen:
        seen.append(response.readline())
    connection.close()
    again = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    again.request("GET", f"{rises}/matches?after=99", headers={**headers, "Last-Event-ID": str(number - 1)})
    lines = iter(again.getresponse().readline, b"")
    assert f"id: {number}\n".encode() in (next(lines) for _ in range(10))
    again.close()
    told(ask(address, "GET", f"{rises}/matches", [("Accept", "text/event-stream"), ("Last-Event-ID", "x")]), 400)
    assert ask(address, "HEAD", f"{rises}/matches", [("Accept", "text/event-stream")]).body == b""


def test_subscribers_are_capped(tmp_path: Path) -> None:
    settings = LiveSettings(idle=0.05, heartbeat=0.1, subscribers=1)
    with server(tmp_path, live=settings) as address:
        assert ask(address, "PUT", "/queries/q", [SPASEQ], RISES.encode()).status == 200
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        connection.request("GET", "/queries/q/matches", headers={"Accept": "text/event-stream"})
        response = connection.getresponse()  # kept: its socket closes with it
        assert response.readline()
        refused = ask(address, "GET", "/queries/q/matches", [("Accept", "text/event-stream")])
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        response.close()
        connection.close()
        while ask(address, "GET", "/metrics").body.count(b"oxiseq_subscribers 0.0") == 0:
            pass  # its next comment tells the server


def test_a_full_queue_is_a_429(tmp_path: Path) -> None:
    with server(tmp_path, live=LiveSettings(waiting=0)) as address:
        assert ask(address, "PUT", "/queries/q", [SPASEQ], RISES.encode()).status == 200
        refused = push(address, 1, 1)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert b"oxiseq_backpressure_rejected_batches_total 1.0" in ask(address, "GET", "/metrics").body


def test_tokens_hold_for_all_routes(tmp_path: Path) -> None:
    settings = ServerSettings(port=0, threads=4, tokens=Tokens("see", "change"))
    with server(tmp_path, settings) as address:
        fill = {"{stream}": quote(STREAM, safe=""), "{query}": "q"}
        for route in OPERATIONS:
            target = route.path
            for variable, value in fill.items():
                target = target.replace(variable, value)
            reading = route.method == "GET" or route.name in (
                "queryOnce",
                "check",
                "compare",
                "tryMapping",
                "suggestMapping",
            )
            headers = [SPASEQ] if route.name == "queryOnce" else []
            assert ask(address, route.method, target, headers).status == 401
            with_read = ask(address, route.method, target, [*headers, ("Authorization", "Bearer see")])
            assert (with_read.status == 403) == (not reading), route
            with_write = ask(address, route.method, target, [*headers, ("Authorization", "Bearer change")])
            assert with_write.status not in (401, 403), route
        assert ask(address, "GET", "/health").status == 200


def test_the_document_tells_of_every_route(address: str) -> None:
    document = told(ask(address, "GET", "/openapi.json"))
    told_of = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told_of == {(route.method, route.path) for route in OPERATIONS}
    used = set(json.dumps(document["paths"]).split("#/components/schemas/")[1:])
    assert {name.split('"')[0] for name in used} <= set(SCHEMAS)
    for route in OPERATIONS:
        variables = {part[1:-1] for part in route.path.split("/") if part.startswith("{")}
        assert variables == {p.name for p in route.parameters if p.where == "path"}
    names = [route.name for route in OPERATIONS]
    assert len(set(names)) == len(names)


def test_other_paths_and_methods(address: str) -> None:
    told(ask(address, "GET", "/streams/a/b/c"), 404)
    refused = ask(address, "PATCH", "/streams")
    told(refused, 405)
    assert refused.headers["allow"] == "GET, POST"
    told(ask(address, "GET", "/streams/no%20iri"), 400)
    told(ask(address, "PUT", "/queries/a%20b", [SPASEQ], RISES.encode()), 400)


def test_large_bodies_are_refused(tmp_path: Path) -> None:
    with server(tmp_path, ServerSettings(port=0, threads=4, body=1000)) as address:
        told(ask(address, "POST", "/queries", [SPASEQ], b" " * 1001), 413)
