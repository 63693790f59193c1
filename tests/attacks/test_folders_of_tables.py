"""Folders of tables as other programs write them: marks are not data, folders' names are columns, lakes are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyoxigraph import NamedNode, Quad

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.errors import EventError, KbError
from oxiseq.kb_loader import STATISTICS, load, open_kb
from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import arrange
from oxiseq.logs.reading import Meaning

MAPPING = """PREFIX : <http://e/> CONSTRUCT { ?s :country ?country ; :n ?n }
  WHERE { BIND(IRI(CONCAT(STR(:), ?id)) AS ?s) }"""
QUERY = """PREFIX : <http://e/> SELECT ?c FROM STREAM S <http://e/s> WHERE { SEQ(A)
  DEFINE GPM A ON S { ?s :country ?c } }"""


def write(folder: Path) -> Path:
    """Four tables by country, and what Spark and editors leave beside them."""
    for country, rows in [
        ("country=DE", "a,1"),
        ("country=C%C3%B4te%20d'Ivoire", "b,2"),
        ("country=__HIVE_DEFAULT_PARTITION__", "c,3"),
    ]:
        (folder / country).mkdir(parents=True)
        (folder / country / "part-0.csv").write_text(f"id,n,time\n{rows},2026-11-20T10:00:00Z\n")
        (folder / country / "_part-1.csv").write_text("id,n,time\nhidden,1,2026-11-20T10:00:00Z\n")
        (folder / country / ".part-0.csv.json").write_text("no JSON")
    (folder / "_temporary" / "0").mkdir(parents=True)
    (folder / "_temporary" / "0" / "half.csv").write_text("id,n,time\nhalf,1,2026-11-20T10:00:00Z\n")
    (folder / "country=AT").mkdir()
    table = pa.table({"id": ["d"], "country": ["XX"], "n": [4], "time": [1_763_632_860_000_000]})
    pq.write_table(table, folder / "country=AT" / "part-0.parquet")
    (folder / "mapping.rq").write_text(MAPPING)
    return folder


def data(kb: Path) -> set[tuple[str, str]]:
    """(subject, country), of all that have an :n; country "" where there is none."""
    quads = [q for q in open_kb(kb) if isinstance(q, Quad) and q.graph_name != STATISTICS]
    countries = {q.subject: q.object.value for q in quads if q.predicate == NamedNode("http://e/country")}  # type: ignore[union-attr]
    return {(str(q.subject), countries.get(q.subject, "")) for q in quads if q.predicate == NamedNode("http://e/n")}


FOUND = {("<http://e/a>", "DE"), ("<http://e/b>", "Côte d'Ivoire"), ("<http://e/c>", ""), ("<http://e/d>", "AT")}


def test_folders_names_are_columns_and_marks_are_not_data(tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    tables = FOUND - {("<http://e/d>", "AT")}
    for given, expected in [([folder], FOUND), ([f"{folder}/*/*"], FOUND), ([f"{folder}/**/*.csv"], tables)]:
        report = load(given, tmp_path / "kb", mapping=folder / "mapping.rq", restart=True)
        assert report.quarantined == 0
        assert data(tmp_path / "kb") == expected


def test_what_is_hidden_can_be_asked_for_by_its_name(tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    for given in (folder / "country=DE" / "_part-1.csv", f"{folder}/country=DE/_*.csv"):
        load(given, tmp_path / "kb", mapping=folder / "mapping.rq", restart=True)
        assert data(tmp_path / "kb") == {("<http://e/hidden>", "DE")}
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "_x.csv").write_text("id\n1\n")
    with pytest.raises(KbError, match=r"names that begin with _ or [.] are not read"):
        load(tmp_path / "only", tmp_path / "kb", restart=True)


def test_event_tables_of_a_partitioned_log(tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    done = arrange(folder, tmp_path / "out", meaning=Meaning(mapping=Mapping(MAPPING)))
    assert (done.events, done.bad) == (4, 0)
    assert sorted(m["c"].value for m in oxiseq.run(QUERY, {"S": tmp_path / "out"})) == ["AT", "Côte d'Ivoire", "DE"]
    for name in ("_unfinished.parquet", ".part.parquet"):
        (tmp_path / "out" / name).write_bytes(b"no table")
    assert len(oxiseq.run(QUERY, {"S": tmp_path / "out"})) == 3
    more = arrange(folder, tmp_path / "out", meaning=Meaning(mapping=Mapping(MAPPING)))
    assert (more.events, more.late) == (0, 4)


@pytest.mark.parametrize(
    ("log", "name"),
    [
        ("_delta_log/00000000000000000000.json", "a Delta table"),
        ("metadata/v1.metadata.json", "an Iceberg table"),
        (".hoodie/hoodie.properties", "a Hudi table"),
    ],
)
def test_lakes_are_refused_by_name(log: str, name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "in" / "lake")
    (folder / log).parent.mkdir()
    (folder / log).write_text(json.dumps({}))
    for given in (folder, tmp_path / "in", f"{folder}/*/*.csv", folder / "country=DE"):
        with pytest.raises(KbError, match=rf"lake: is {name}: .* write its rows to another folder"):
            # Spark is asked for a table's own folder: spark/test_asked.py
            load(given, tmp_path / "kb", mapping=folder / "mapping.rq", engine="plain" if given == folder else "auto")
        with pytest.raises(KbError, match=name):
            arrange(given, tmp_path / "out", meaning=Meaning(mapping=Mapping(MAPPING)))
    with pytest.raises(EventError, match=name):
        oxiseq.run(QUERY, {"S": folder})
    query = tmp_path / "q.spaseq"
    query.write_text(QUERY)
    told = CliRunner().invoke(main, ["run", str(query), "-s", f"S={folder}"])
    assert told.exit_code == 1 and name in told.output


def test_a_folder_of_folders_is_no_folder_of_event_tables(tmp_path: Path) -> None:
    with pytest.raises(EventError, match=r"country=AT, are not looked into"):
        oxiseq.run(QUERY, {"S": write(tmp_path / "in")})
