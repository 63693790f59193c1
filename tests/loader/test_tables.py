"""Tables through a CONSTRUCT query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dirty_files import EX
from pyoxigraph import Literal, NamedNode, Quad

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import STATISTICS, load, open_kb

MAPPING = """PREFIX : <http://example.org/#{>  # a brace {
CONSTRUCT { ?iri :name ?full_name ; :age ?age }
WHERE { BIND(IRI(CONCAT("http://example.org/", ?id)) AS ?iri) }
"""


def loaded(folder: Path, table: str, mapping: str = MAPPING) -> set[Quad]:
    (folder / "map.rq").write_text(mapping.replace("#{>", ">"))
    load(folder / table, folder / "kb", mapping=folder / "map.rq")
    return {q for q in open_kb(folder / "kb") if q.graph_name != STATISTICS}


def fact(subject: str, predicate: str, value: str | int | float | bool) -> Quad:
    return Quad(NamedNode(EX + subject), NamedNode(EX + predicate), Literal(value))


def test_csv_cells_are_strings_and_empty_ones_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,full name,age\n01,"Ann ""A"" {B}\nC",3\n02,Bob,\n')
    assert loaded(tmp_path, "t.csv") == {
        fact("01", "name", 'Ann "A" {B}\nC'),
        fact("01", "age", "3"),
        fact("02", "name", "Bob"),
    }


def test_a_csv_row_that_does_not_fit_goes_to_quarantine(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,full name,age\n1,Ann,3\n2,Bob\n3,Cleo,4\n")
    (tmp_path / "map.rq").write_text(MAPPING.replace("#{>", ">"))
    report = load(tmp_path / "t.csv", tmp_path / "kb", mapping=tmp_path / "map.rq")
    assert (report.read, report.quarantined) == (4, 1)
    assert report.faults == [f"{tmp_path / 't.csv'}:3: 2 columns, 3 expected"]
    assert '"2,Bob"' in next((tmp_path / "kb.quarantine").iterdir()).read_text()


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_parquet_and_json_values_have_their_types(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        table = pa.table({"id": ["a", "b"], "full name": ["Ann", None], "age": [3, 4]})
        pq.write_table(table, tmp_path / "t.parquet")
    else:
        (tmp_path / "t.jsonl").write_text('{"id":"a","full name":"Ann","age":3}\n{"id":"b","age":4}\n')
    assert loaded(tmp_path, f"t.{ending}") == {fact("a", "name", "Ann"), fact("a", "age", 3), fact("b", "age", 4)}


def test_blank_nodes_of_different_rows_and_batches_differ(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(12_000)))
    found = loaded(tmp_path, "t.csv", "CONSTRUCT { [] <http://example.org/id> ?id } WHERE {}")
    assert len({q.subject for q in found}) == 12_000


@pytest.mark.parametrize(
    ("mapping", "message"),
    [("SELECT * WHERE { ?a ?b ?c }", "CONSTRUCT"), ("CONSTRUCT { ?a } WHERE {}", "map.rq: "), ("ASK {}", "CONSTRUCT")],
)
def test_a_mapping_that_is_none_is_told(tmp_path: Path, mapping: str, message: str) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    with pytest.raises(KbError, match=message):
        loaded(tmp_path, "t.csv", mapping)


@pytest.mark.parametrize(
    "iri", ["http://www.w3.org/ns/r2rml#", "http://semweb.mmlab.be/ns/rml#", "http://w3id.org/rml/"]
)
def test_a_mapping_in_rml_is_told_what_to_do(tmp_path: Path, iri: str) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "m.ttl").write_text(f"@prefix m: <{iri}> . <#a> m:subjectMap [] .")
    with pytest.raises(KbError, match="is an RML or R2RML mapping; a mapping here is a SPARQL CONSTRUCT query"):
        load(tmp_path / "a.csv", tmp_path / "kb", mapping=tmp_path / "m.ttl")
    assert not (tmp_path / "kb").exists()


def test_a_query_may_make_mappings_in_rml(tmp_path: Path) -> None:
    text = "CONSTRUCT { [] <http://www.w3.org/ns/r2rml#tableName> ?id } WHERE {}"
    (tmp_path / "t.csv").write_text("id\n1\n")
    assert len(loaded(tmp_path, "t.csv", text)) == 1


def test_a_table_without_a_mapping_is_told_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    with pytest.raises(KbError, match="needs a mapping"):
        load(tmp_path / "t.csv", tmp_path / "kb")
    assert not (tmp_path / "kb").exists()


CASTS = """PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?iri :name ?name ; :age ?years }
WHERE { BIND(IRI(CONCAT("http://example.org/", ?id)) AS ?iri) BIND(xsd:integer(?age) AS ?years) }
"""


def test_a_row_with_a_text_that_a_cast_does_not_take_goes_to_quarantine(tmp_path: Path) -> None:
    """SPARQL would leave out its age, and load the rest."""
    (tmp_path / "t.csv").write_text("id,name,age\n1,Ann,3\n2,Bob,abc\n3,Cleo,\n4,Dora,999999999999999999999\n")
    (tmp_path / "map.rq").write_text(CASTS)
    report = load(tmp_path / "t.csv", tmp_path / "kb", mapping=tmp_path / "map.rq")
    assert report.quarantined == 2
    assert report.faults[0] == f"{tmp_path / 't.csv'}:3: ?age: 'abc' is no xsd:integer"
    found = {q for q in open_kb(tmp_path / "kb") if q.graph_name != STATISTICS}
    assert found == {fact("1", "name", "Ann"), fact("1", "age", 3), fact("3", "name", "Cleo")}


@pytest.mark.parametrize(
    "where",
    [
        "BIND(xsd:integer(?age) AS ?n) BIND(COALESCE(?n, 0) AS ?years)",
        "BIND(COALESCE(xsd:integer(?age), 0) AS ?years)",
        "OPTIONAL { BIND(xsd:integer(?age) AS ?years) }",
    ],
)
def test_a_mapping_that_says_what_to_do_then_is_left_alone(tmp_path: Path, where: str) -> None:
    (tmp_path / "t.csv").write_text("id,name,age\n2,Bob,abc\n")
    (tmp_path / "map.rq").write_text(CASTS.replace("BIND(xsd:integer(?age) AS ?years)", where))
    report = load(tmp_path / "t.csv", tmp_path / "kb", mapping=tmp_path / "map.rq")
    assert (report.quarantined, report.read >= 1) == (0, True)
