"""What a request does wrong is answered with 4xx and what to write, never with 500, and never passed over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import endpoint, get, send
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.kb_loader.files import load_file
from oxiseq.sparql import Request

MARK = b"\xef\xbb\xbf"
E = "http://e/"
HEAD = f"PREFIX : <{E}> SELECT ?a WITHIN 1 MINUTES FROM STREAM S <{E}s>"
QUERY = HEAD + " WHERE { SEQ(A) DEFINE GPM A ON S { ?t :v ?a } }"
UPDATE, ASKED = "application/sparql-update", "application/sparql-query"


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[httpx.Client]:
    """The routes of a store in a folder."""
    with oxiseq.open(tmp_path / "folder") as store:
        yield store._backend.wire._client


def problem(response: Any) -> tuple[int, str]:
    body = response.body if hasattr(response, "body") else response.content
    return getattr(response, "status", 0) or response.status_code, json.loads(body)["detail"]


# --- SPARQL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["SELECT (<e:f>(1) AS ?x) {}", "SELECT * { ?s ?p ?o FILTER(<e:f>(?o)) }"])
def test_an_unknown_function(query: str) -> None:
    status, told = problem(get(endpoint(), "/query", [("query", query)]))
    assert status == 400 and told.startswith("there is no function <e:f>")
    update = "INSERT { <a:b> <a:b> ?x } WHERE { BIND(<e:f>(1) AS ?x) }"
    assert problem(send(endpoint(), "/update", update, UPDATE))[0] == 400


@pytest.mark.parametrize("update", ["DROP GRAPH <e:g>", "CLEAR GRAPH <e:g>"])
def test_a_graph_that_is_missing(update: str) -> None:
    status, told = problem(send(endpoint(), "/update", update, UPDATE))
    assert status == 404 and "there is no graph <e:g>: with SILENT" in told
    silent = update.replace(" GRAPH", " SILENT GRAPH", 1)
    assert send(endpoint(), "/update", silent, UPDATE).status == 204


def test_a_graph_that_is_there() -> None:
    status, told = problem(send(endpoint(), "/update", f"CREATE GRAPH <{E}g>", UPDATE))
    assert status == 409 and "with SILENT" in told


def test_json_ld_of_triple_terms() -> None:
    to = endpoint(data="INSERT DATA { <a:b> <a:b> <<( <a:b> <a:b> 1 )>> }")
    for path, asked in (("/store", [("default", "")]), ("/query", [("query", "CONSTRUCT WHERE { ?s ?p ?o }")])):
        status, told = problem(get(to, path, asked, "application/ld+json"))
        assert status == 406 and "text/turtle" in told
        assert get(to, path, asked, "text/turtle").status == 200


@pytest.mark.parametrize(
    ("text", "title", "language"),
    [
        (QUERY, "SPAseq", "spaseq"),
        (f"VOCAB <{E}> SELECT * FROM S WHERE A", "CEQL", "ceql"),
        (f"SELECT ?a FROM STREAM <{E}s> [RANGE 3 SLIDE 1] WHERE {{ ?t ?v ?a }}", "continuous SPARQL", "rspql"),
    ],
)
def test_a_query_over_streams_at_the_store(text: str, title: str, language: str) -> None:
    for path, kind in (("/query", ASKED), ("/update", UPDATE)):
        status, told = problem(send(endpoint(), path, text, kind))
        assert status == 400 and told.startswith(f"this is {title}, a query over streams")
        assert f"POST /queries with Content-Type application/{language}-query" in told


# --- queries ----------------------------------------------------------------------------------------


def test_a_name_in_the_address_beside_a_body_of_json(doors: httpx.Client) -> None:
    made = doors.post("/queries?name=x&lateness=5s", json={"text": QUERY}).json()
    assert made["name"] == "x" and made["lateness"] == "5s"
    status, told = problem(doors.post("/queries?name=y", json={"text": QUERY, "name": "z"}))
    assert status == 400 and "'y' in the address, 'z' in the body" in told


def test_an_unknown_parameter(doors: httpx.Client) -> None:
    assert problem(doors.get("/queries?limt=1")) == (400, "limt; did you mean limit?")
    assert problem(doors.get("/queries/x?a=1"))[0] == 400


def test_lists_by_pages(doors: httpx.Client) -> None:
    for name in "cab":
        assert doors.put(f"/queries/{name}", json={"text": QUERY.replace("/s>", f"/{name}>")}).is_success
    names, address = [], "/queries?limit=2"
    while address:
        page = doors.get(address)
        names.append([each["name"] for each in page.json()["queries"]])
        address = page.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert names == [["a", "b"], ["c"]]
    assert len(doors.get("/queries").json()["queries"]) == 3
    assert [each["iri"] for each in doors.get("/streams?limit=1").json()["streams"]] == [f"{E}a"]


def test_changes_from_the_beginning(doors: httpx.Client) -> None:
    assert doors.post("/queries?name=st", content="SELECT * { ?s ?p ?o }", headers={"content-type": ASKED}).is_success
    assert doors.get("/queries/st/changes?after=0").json() == {"changes": [], "last": 1}


# --- byte order marks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("text/turtle", b"<a:b> <a:b> 2 ."),
        ("application/n-triples", b'<a:b> <a:b> "2" .'),
        ("application/n-quads", b'<a:b> <a:b> "2" .'),
        ("application/trig", b"<a:b> <a:b> 2 ."),
        ("text/n3", b"<a:b> <a:b> 2 ."),
        ("application/ld+json", b'{"@id": "a:b", "a:b": 2}'),
        ("application/rdf+xml", b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'),
        (UPDATE, b"INSERT DATA { <a:b> <a:b> 2 }"),
        (ASKED, b"SELECT * {}"),
    ],
)
def test_bodies_with_a_mark(media_type: str, text: bytes) -> None:
    path = {UPDATE: "/update", ASKED: "/query"}.get(media_type, "/store")
    parameters = [("default", "")] if path == "/store" else None
    assert send(endpoint(), path, MARK + text, media_type, parameters).status in (200, 204)


def test_a_body_that_is_no_text_keeps_its_first_bytes() -> None:
    assert Request("POST", "/", headers=(("content-type", "application/x-jelly-rdf"),), body=MARK).body == MARK


def test_queries_and_rows_with_a_mark(doors: httpx.Client) -> None:
    text = {"content-type": "application/spaseq-query"}
    assert doors.post("/queries", content=MARK + QUERY.encode(), headers=text).is_success
    json_type = {"content-type": "application/json"}
    assert doors.post("/queries", content=MARK + json.dumps({"text": QUERY}).encode(), headers=json_type).is_success
    mapping = {"mapping": {"subject": E + "{id}", "predicates": {f"{E}v": "v"}, "time": "ts"}}
    assert doors.put("/streams/e%3Am", content=MARK + json.dumps(mapping).encode(), headers=json_type).is_success
    for kind, rows in {
        "application/json": b'[{"id": 1, "v": 2, "ts": 5}]',
        "application/x-ndjson": b'{"id": 1, "v": 2, "ts": 5}',
        "text/csv": b"id,v,ts\n1,2,5\n",
    }.items():
        answer = doors.post("/streams/e%3Am", content=MARK + rows, headers={"content-type": kind})
        assert answer.json()["accepted"] == 1


def test_files_and_texts_with_a_mark(tmp_path: Path) -> None:
    assert oxiseq.Query("\ufeff" + QUERY).check() == ()
    (tmp_path / "q.spaseq").write_bytes(MARK + QUERY.encode())
    assert oxiseq.Query(tmp_path / "q.spaseq").text == QUERY
    with (tmp_path / "q.spaseq").open("rb") as file:
        assert oxiseq.Query(file).text == QUERY
    (tmp_path / "e.nq").write_bytes(
        MARK
        + f'<{E}x> <{E}v> "1" <{E}1> .\n<{E}1> <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:00Z"'
        "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n".encode()
    )
    (tmp_path / "t.csv").write_bytes(MARK + b"time,v\n1,5\n")
    for name in ("e.nq", "t.csv"):
        assert len(oxiseq.run(tmp_path / "q.spaseq", {"S": tmp_path / name})) == 1
        run = CliRunner().invoke(main, ["check", str(tmp_path / "q.spaseq")])
        assert run.exit_code == 0, run.output
    kbs = {"kb.ttl": b"<a:b> <a:b> 1 .", "kb.nq": b'<a:b> <a:b> "1" .', "kb.jsonld": b'{"@id": "a:b", "a:b": 1}'}
    for name, text in kbs.items():
        (tmp_path / name).write_bytes(MARK + text)
        store = oxiseq.Store()
        load_file(store.inner, tmp_path / name)
        assert len(store) == 1
    with oxiseq.open() as store:
        stream = store.stream(f"{E}s")
        stream.push("\ufeff<a:b> <a:b> 1 .", 1)
        assert stream.events == 1
