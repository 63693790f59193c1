"""The VoID description counts what a SPARQL query counts."""

from __future__ import annotations

from pathlib import Path

from pyoxigraph import Literal, QuerySolutions

from oxiseq.kb_loader import load, open_kb

TEXT = """@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:B rdfs:subClassOf :A . :x a :B ; :p 1, 2 . :y a :B, :A ; :p 1 .
"""
ASKED = """PREFIX void: <http://rdfs.org/ns/void#>
SELECT ?n WHERE { GRAPH <urn:oxiseq:statistics> { %s } }"""


def test_counts_are_of_the_asserted_data(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TEXT)
    report = load(tmp_path / "a.ttl", tmp_path / "kb", reasoning="rdfs")
    store = open_kb(tmp_path / "kb")

    def count(pattern: str) -> list[int]:
        answer = store.query(ASKED % pattern)
        assert isinstance(answer, QuerySolutions)
        return [int(row["n"].value) for row in answer if isinstance(row["n"], Literal)]

    assert count("<urn:oxiseq:dataset> void:triples ?n") == [7]
    assert count("<urn:oxiseq:dataset> void:distinctSubjects ?n") == [3]
    assert count("<urn:oxiseq:dataset> void:distinctObjects ?n") == [4]
    assert count("<urn:oxiseq:dataset> void:properties ?n") == [3]
    assert count("<urn:oxiseq:dataset> void:classes ?n") == [2]
    assert count("?x void:property <http://example.org/p> ; void:triples ?n") == [3]
    assert count("?x void:class <http://example.org/B> ; void:entities ?n") == [2]
    assert count("<urn:oxiseq:inferred> void:triples ?n") == [report.inferred]
    assert report.inferred == 3  # x and y are of A; B below A
