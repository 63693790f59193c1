"""Bodies and files that are one very long line: told as what they are, a fault of the text."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kb_doors import STREAM, ask, server
from profiles import crossed
from pyoxigraph import RdfFormat

import oxiseq
from oxiseq.engine.errors import EventError
from oxiseq.engine.rdf import TOO_LONG
from oxiseq.kb_loader import load as load_kb

LONG = 17 << 20
"""Beyond Oxigraph's 16 MiB."""
LINES = {
    "letters": b"a" * LONG,
    "an IRI that does not end": b"<http://e/" + b"a" * LONG,
    "a literal that does not end": b'<http://e/a> <http://e/b> "' + b"a" * LONG,
    "a literal": b'<http://e/a> <http://e/b> "' + b"a" * LONG + b'" .',
    "escapes": b'<http://e/a> <http://e/b> "' + b'\\"' * (LONG // 2) + b'" .',
    "a language": b'<http://e/a> <http://e/b> "a"@' + b"a" * LONG + b" .",
    "white space": b"<http://e/a>" + b" " * LONG + b"<http://e/b> .",
}
TEXTS = ("text/turtle", "application/n-triples", "application/n-quads", "application/trig", "text/n3")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("live")) as given:
        yield given


@pytest.mark.parametrize(("name", "kind"), crossed([*LINES], TEXTS))
def test_graphs(address: str, name: str, kind: str) -> None:
    answer = ask(address, "PUT", "/store?default", [("Content-Type", kind)], LINES[name])
    assert answer.status == 400
    assert json.loads(answer.body)["title"] == "malformed RDF"


@pytest.mark.parametrize(("name", "kind"), crossed([*LINES], TEXTS[:-1]))
def test_events(address: str, name: str, kind: str) -> None:
    target = f"{STREAM}?time=1" if kind in TEXTS[:2] else STREAM
    answer = ask(address, "POST", target, [("Content-Type", kind)], LINES[name])
    assert answer.status == 400
    assert json.loads(answer.body)["rejected"] == 1


def test_one_of_the_largest_bodies(address: str) -> None:
    begun = time.monotonic()
    answer = ask(address, "POST", STREAM, [("Content-Type", "application/n-quads")], b"a" * (120 << 20))
    assert answer.status == 400
    assert TOO_LONG in answer.body.decode()
    assert time.monotonic() - begun < 20


def test_queries_and_updates(address: str) -> None:
    """Oxigraph has no bound there; ours is that of a query's length."""
    text = b"SELECT * { ?s ?p " + b"a" * LONG
    assert ask(address, "POST", "/query", [("Content-Type", "application/sparql-query")], text).status == 413
    text = b"INSERT DATA { <a:a> <a:b> <" + b"a" * LONG
    assert ask(address, "POST", "/update", [("Content-Type", "application/sparql-update")], text).status == 400


def test_events_of_files_and_of_python(tmp_path: Path) -> None:
    """Of a file of TriG Oxigraph finds it after a minute: it looks again after every few kilobytes, up to 16 MiB."""
    file = tmp_path / "a.nq"
    file.write_bytes(LINES["letters"])
    query = "SELECT ?a FROM STREAM S <http://e/S> WHERE { SEQ(A) DEFINE GPM A ON S { ?a ?p ?b } }"
    with pytest.raises(EventError, match=TOO_LONG):
        oxiseq.run(query, {"S": file})
    assert oxiseq.run(query, {"S": file}, on_error="skip").events == 0
    with pytest.raises(EventError, match=TOO_LONG):
        oxiseq.run(query, {"S": [(1, LINES["letters"])]})


def test_a_kb_of_python() -> None:
    with pytest.raises(SyntaxError, match=TOO_LONG):
        oxiseq.Store().load(LINES["letters"], RdfFormat.TURTLE)
    with pytest.raises(SyntaxError):
        oxiseq.Store().bulk_load(LINES["letters"], RdfFormat.N_QUADS)


@pytest.mark.parametrize("ending", ["nq", "rdf"])
def test_files_of_a_kb(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{ending}"
    file.write_bytes(LINES["letters"])
    report = load_kb(file, tmp_path / "kb")
    assert (report.stored, report.quarantined) == (0, 1)
