"""SHACL shapes judge what has been loaded."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from pyoxigraph import Store

pytest.importorskip("pyshacl")

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import load
from oxiseq.kb_loader.marker import half_loaded

SHAPES = """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <http://e/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Person a sh:NodeShape ; sh:targetClass :Person ;
  sh:property [ sh:path :age ; sh:datatype xsd:integer ; sh:maxCount 1 ; sh:message "an age is one integer" ] ;
  sh:property [ sh:path :name ; sh:minCount 1 ; sh:severity sh:Warning ; sh:message "no name" ] ;
  sh:sparql [ sh:message "older than its child" ; sh:select
    "SELECT $this { $this <http://e/child> ?c ; <http://e/age> ?a . ?c <http://e/age> ?b FILTER(?b >= ?a) }" ] .
"""
DATA = """<http://e/ann> <http://e/wrote> "x" ; <http://e/age> 30 ; <http://e/name> "Ann"@en ;
  <http://e/child> <http://e/bob> .
<http://e/bob> a <http://e/Person> ; <http://e/age> 31 .
<http://e/cy> a <http://e/Person> ; <http://e/age> "old", 7 ; <http://e/name> "Cy" .
<http://e/wrote> <http://www.w3.org/2000/01/rdf-schema#domain> <http://e/Person> .
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "shapes.ttl").write_text(SHAPES)
    (tmp_path / "data.ttl").write_text(DATA)
    (tmp_path / "more.nq").write_text('<http://e/bob> <http://e/name> "Bob" <http://e/g> .\n<http://e/x> oops .\n')
    return tmp_path


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("reasoning", [None, "rdfs"])
def test_violations_are_told_and_stay_in_the_store(files: Path, reasoning: str | None, named: bool) -> None:
    given = [files / "data.ttl", *[files / "more.nq"] * named]
    report = load(given, files / "kb", shapes=files / "shapes.ttl", reasoning=reasoning)  # type: ignore[arg-type]
    age = "SHACL violation: an age is one integer (<http://e/cy>, <http://e/age>)"
    wanted = [age, age]
    if reasoning:  # Ann is a person by inference
        wanted.append("SHACL violation: older than its child (<http://e/ann>)")
    if not named:  # Bob's name is in another graph
        wanted.append("SHACL warning: no name (<http://e/bob>, <http://e/name>)")
    assert report.violations == wanted
    assert report.quarantined == named
    records = [json.loads(line) for file in sorted((files / "kb.quarantine").iterdir()) for line in file.open()]
    told = [record for record in records if record["reason"].startswith("SHACL")]
    assert [record["reason"] for record in told] == wanted
    assert {record["text"] for record in told} >= {'"old"', None}
    assert len(Store.read_only(str(files / "kb"))) > report.stored
    assert report.stored == 11 + named


def test_the_store_is_closed_at_once(files: Path) -> None:
    gc.disable()  # pyshacl leaves cycles behind; none of them may wait for the collector with the store open
    try:
        load(files / "data.ttl", files / "kb", shapes=files / "shapes.ttl")
        Store(str(files / "kb"))  # takes the lock of a store that nobody has open
    finally:
        gc.enable()


def test_a_store_that_conforms_has_nothing_told(files: Path) -> None:
    (files / "data.ttl").write_text('<http://e/x> a <http://e/Person> ; <http://e/age> 3 ; <http://e/name> "X" .')
    report = load(files / "data.ttl", files / "kb", shapes=files / "shapes.ttl")
    assert (report.violations, report.quarantine) == ([], None)


def test_strict_fails_at_a_violation(files: Path) -> None:
    with pytest.raises(KbError, match=r"shapes.ttl: SHACL violation: an age is one integer \(<http://e/cy>"):
        load(files / "data.ttl", files / "kb", shapes=files / "shapes.ttl", strict=True)
    assert half_loaded(files / "kb")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@prefix : <oops", "cannot be read as shapes"),
        (SHAPES.replace("SELECT $this", "SELECT oops"), "shapes.ttl: "),
    ],
)
def test_shapes_that_are_wrong_are_refused(files: Path, text: str, message: str) -> None:
    (files / "shapes.ttl").write_text(text)
    with pytest.raises(KbError, match=message):
        load(files / "data.ttl", files / "kb", shapes=files / "shapes.ttl")


def test_shapes_that_are_none_are_refused_before_anything_is_loaded(files: Path) -> None:
    (files / "table.csv").write_text("a\n1\n")
    wrong = {"none.ttl": "cannot be read as shapes", "table.csv": "shapes are RDF", "x.abc": "unknown ending"}
    for name, message in wrong.items():
        with pytest.raises(KbError, match=message):
            load(files / "data.ttl", files / "kb", shapes=files / name)
    assert not (files / "kb").exists()
