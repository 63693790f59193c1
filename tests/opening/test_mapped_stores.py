"""Rows pushed to a stream with a mapping: in memory, in a folder, at a server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pandas as pd
import pyarrow as pa
import pytest
from opened_stores import KINDS, opened, serving

import oxiseq
from oxiseq.engine.errors import EventError
from oxiseq.mappings.plan import MappingError

S: Final = "http://e/S"
FLAT: Final[dict[str, Any]] = {
    "subject": "http://e/{id}",
    "predicates": {"http://e/p": {"column": "temp", "datatype": "xsd:double"}},
    "time": "ts",
    "unit": "s",
}
QUERY: Final = (
    f"PREFIX : <http://e/> SELECT ?x ?a ?b FROM STREAM S <{S}> WHERE {{ SEQ(A; B) "
    "DEFINE GPM A ON S { ?x :p ?a } DEFINE GPM B ON S { ?x :p ?b FILTER(?b > ?a) } }"
)
ROWS: Final = [{"id": "a", "temp": 1, "ts": 1}, {"id": "a", "temp": 2.5, "ts": 2}, {"id": "b", "temp": 3, "ts": 3}]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with opened(request.param, tmp_path) as store:
        yield store


def _found(store: Any, query: Any, count: int) -> list[tuple[str, str, str]]:
    store.advance(1_000_000_000)
    end = time.monotonic() + 60
    while len(query.matches()) < count and time.monotonic() < end:
        query.poll("1s")
    return [(m["x"].value, m["a"].value, m["b"].value) for m in query.matches()]


def test_rows_are_events(store: Any) -> None:
    query = store.register(QUERY, name="rises")
    stream = store.stream(S, mapping=FLAT)
    stream.push(ROWS[0])
    assert stream.extend(ROWS[1:]) == 2
    assert (
        stream.extend(
            pd.DataFrame([{"id": "b", "temp": 4.0, "ts": 4}, {"id": "b", "temp": None, "ts": 5}]), on_error="skip"
        )
        == 1
    )
    assert stream.rejected == 1
    stream.extend(pa.table({"id": ["b"], "temp": [5], "ts": [6]}))
    assert _found(store, query, 3) == [
        ("http://e/a", "1", "2.5"),
        ("http://e/b", "3", "4"),
        ("http://e/b", "4", "5"),
    ]
    assert stream.events == 5


def test_files_of_rows(store: Any, tmp_path: Path) -> None:
    stream = store.stream(S, mapping=FLAT)
    (tmp_path / "a.csv").write_text("id,temp,ts\na,1,1\nb,warm,2\nc,3,3\n")
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    with pytest.raises(EventError, match="line 3: temp: 'warm' is no xsd:double"):
        stream.extend(tmp_path / "a.csv")
    assert stream.extend(str(tmp_path / "a.csv"), on_error="skip") == 2
    assert stream.extend(tmp_path / "a.jsonl") == 3
    assert (stream.events, stream.rejected) == (5, 1)


def test_a_bad_row_is_refused_with_its_column(store: Any) -> None:
    stream = store.stream(S, mapping=FLAT)
    with pytest.raises(EventError, match="temp: 'warm' is no xsd:double"):
        stream.push({"id": 1, "temp": "warm", "ts": 1})
    with pytest.raises(EventError, match="time is given twice"):
        stream.push(ROWS[0], 5)
    with pytest.raises(TypeError, match="time"):
        stream.push("<http://a> <http://b> 1 .")
    assert stream.events == 0


def test_rows_without_a_mapping_are_refused(store: Any) -> None:
    stream = store.stream(S)
    with pytest.raises(EventError, match="no mapping"):
        stream.push(ROWS[0])
    with pytest.raises(EventError, match="needs a mapping"):
        stream.extend(ROWS)


def test_a_mapping_without_a_time_takes_it_beside_the_row(store: Any) -> None:
    stream = store.stream(S, mapping={**FLAT, "time": None})
    stream.push({"id": 1, "temp": 1}, "2024-05-01T10:00:00Z")
    with pytest.raises(EventError, match="has no time"):
        stream.push({"id": 1, "temp": 1})
    assert stream.events == 1


@pytest.mark.parametrize(
    "mapping", [5, "SELECT", {}, {"subject": "x"}, {"ready": "nothing"}, {**FLAT, "unit": "h"}, "CONSTRUCT {"]
)
def test_a_mapping_that_is_none(store: Any, mapping: Any) -> None:
    with pytest.raises((MappingError, TypeError)):
        store.stream(S, mapping=mapping)


def test_a_mapping_outlives_the_process(tmp_path: Path) -> None:
    with oxiseq.open(tmp_path / "store") as store:
        store.stream(S, mapping=FLAT).push(ROWS[0])
    with oxiseq.open(tmp_path / "store") as store:
        assert store.stream(S).mapping == oxiseq.StreamMapping(FLAT)
        store.stream(S).push(ROWS[1])
        assert store.stream(S).events == 2


BODIES: Final = {
    "application/json": json.dumps([*ROWS, {"id": 1, "temp": "warm", "ts": 9}]),
    "application/x-ndjson": "\n".join([*map(json.dumps, ROWS), "{"]),
    "application/jsonl": "\n".join([*map(json.dumps, ROWS), '{"id": 5}']),
    "text/csv": "id,temp,ts\na,1,1\na,2.5,2\nb,3,3\nb,3\n",
    "text/tab-separated-values": "id\ttemp\tts\na\t1\t1\na\t2.5\t2\nb\t3\t3\nb\t3\tsoon\n",
}
PLACES: Final = {"application/json": 4, "application/x-ndjson": 4, "application/jsonl": 4}


@pytest.mark.parametrize("kind", BODIES)
def test_rows_over_http(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path / "journal") as address:
        url = f"{address}/streams/http%3A%2F%2Fe%2FS"
        refused = httpx.post(url, content=BODIES[kind], headers={"content-type": kind})
        assert (refused.status_code, refused.json()["title"]) == (404, "not found")
        httpx.put(url)
        refused = httpx.post(url, content=BODIES[kind], headers={"content-type": kind})
        assert (refused.status_code, refused.json()["title"]) == (415, "the stream has no mapping")
        made = httpx.put(url, json={"mapping": FLAT})
        assert made.json()["mapping"]["subject"] == "http://e/{id}"
        told = httpx.post(url, content=BODIES[kind], headers={"content-type": kind, "idempotency-key": "k"}).json()
        assert (told["accepted"], told["rejected"]) == (3, 1)
        assert told["reasons"][0]["line"] == PLACES.get(kind, 5)
        again = httpx.post(url, content=BODIES[kind], headers={"content-type": kind, "idempotency-key": "k"}).json()
        assert again["duplicates"] and httpx.get(url).json()["next"] == 3
        bad = httpx.post(url, content="[5]", headers={"content-type": "application/json"})
        assert (bad.status_code, bad.json()["rejected"], bad.json()["reasons"][0]["line"]) == (400, 1, 1)
        assert httpx.post(url, content="", headers={"content-type": kind}).json()["accepted"] == 0
        assert httpx.patch(url, json={"mapping": None}).json().get("mapping") is None
        assert httpx.post(url, content="[]", headers={"content-type": "application/json"}).status_code == 415


def test_mappings_that_a_server_refuses(tmp_path: Path) -> None:
    doubled = "".join(f"BIND(CONCAT(?b{i}, ?b{i}) AS ?b{i + 1}) " for i in range(40))
    wrong: list[Any] = [
        5,
        [],
        {"construct": 5},
        "SELECT * {}",
        {**FLAT, "more": 1},
        {**FLAT, "predicates": {"no iri": "x"}},
        "CONSTRUCT { ?a <urn:p> ?b } WHERE { SERVICE <http://localhost/> { ?a ?p ?b } }",
        "CONSTRUCT { ?a <urn:p> ?b } FROM <file:///etc/passwd> WHERE { }",
        "CONSTRUCT { ?a <urn:p> ?b } WHERE { ?a ?p ?b }",
        "CONSTRUCT { ?a <urn:p> ?b } WHERE { { SELECT ?a { } } }",
        f"CONSTRUCT {{ <urn:s> <urn:p> ?b9 }} WHERE {{ BIND(STR(?id) AS ?b0) {doubled}}}",
        f"CONSTRUCT {{ <urn:s> <urn:p> ?a }} WHERE {{ VALUES ?a {{ {'1 ' * 100} }} VALUES ?b {{ {'1 ' * 100} }} }}",
        "CONSTRUCT { <urn:s> <urn:p> ?a } WHERE { " + "BIND(1 AS ?a) " + "# long\n" * 20_000 + "}",
        {"zone": "../../etc/passwd", **FLAT},
        {**FLAT, "subject": "{id"},
        {**FLAT, "predicates": []},
        {**FLAT, "predicates": {f"urn:p{i}": "x" for i in range(1001)}},
    ]
    with serving(tmp_path / "journal") as address:
        url = f"{address}/streams/http%3A%2F%2Fe%2FS"
        for mapping in wrong:
            answer = httpx.put(url, json={"mapping": mapping})
            assert (answer.status_code, answer.json()["title"]) == (400, "malformed mapping"), mapping
        assert httpx.get(url).status_code == 404
