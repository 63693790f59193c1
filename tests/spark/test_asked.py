"""What only Spark reads gives the store that files of this machine give: DataFrames, tables, addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyoxigraph import Quad

from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import STATISTICS, LoadReport, append, load, open_kb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPING = """PREFIX : <http://e/> CONSTRUCT { ?s :n ?n ; :of ?country ; :x [ :y ?n ] }
  WHERE { BIND(IRI(CONCAT(STR(:), STR(?id))) AS ?s) }"""


def data(kb: Path) -> set[tuple[str, ...]]:
    """The store's statements, blank nodes without their labels."""
    quads = [q for q in open_kb(kb) if isinstance(q, Quad) and q.graph_name != STATISTICS]
    return {tuple("_" if str(term).startswith("_:") else str(term) for term in quad) for quad in quads}


def counts(report: LoadReport) -> tuple[int, ...]:
    return report.files, report.read, report.stored, report.quarantined, len(report.without)


def faults(quarantine: Path) -> set[tuple[Any, ...]]:
    """Line, reason and text of each, and the name of its file."""
    lines = [json.loads(line) for file in quarantine.iterdir() for line in file.read_text().splitlines()]
    return {(Path(line["file"]).name, line["line"], line["reason"], line["text"]) for line in lines}


def write(folder: Path) -> Path:
    """Files of each kind, hidden ones, partitions, names with signs of patterns, a fault in each."""
    table = folder / "country=C%C3%B4te" / "more"
    table.mkdir(parents=True)
    (folder / "_temporary").mkdir()
    (folder / "a b").mkdir()
    lines = [f"<http://e/a> <http://e/p> _:b{n % 7} .\n" if n != 77 else "oops\n" for n in range(200)]
    (folder / "a b" / "[1].nt").write_text("\ufeff" + "".join(lines))
    for hidden in (folder / "_temporary" / "x.nt", folder / ".x.nt"):
        hidden.write_text("<http://e/hidden> <http://e/p> <http://e/o> .\n")
    (folder / "a.ttl").write_text("@prefix : <http://e/> .\n:b :p :c :d .\n:e :f [ :g 1 ] .")
    (folder / "b.rdf").write_text("<a>\n<b></a>")
    (table / "rows.csv").write_text("id,n\n1,2\n3\n")
    pq.write_table(pa.table({"id": list(range(40)), "n": [None, 2.5] * 20}), table / "rows.parquet", row_group_size=8)
    return folder


def test_an_address_gives_what_its_files_give(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "3000")  # several stretches of a file
    try:
        asked = load(f"file://{folder}", tmp_path / "asked", mapping=MAPPING)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    plain = load(folder, tmp_path / "plain", mapping=MAPPING, engine="plain")
    assert (asked.engine, plain.engine) == ("spark", "plain")
    assert counts(asked) == counts(plain)
    assert data(tmp_path / "asked") == data(tmp_path / "plain")
    assert faults(tmp_path / "asked.quarantine") == faults(tmp_path / "plain.quarantine")


def test_frames_and_tables_of_spark_stand_among_files(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 9, 1, 3).selectExpr("id", "cast(id * 2 AS double) AS n", "'DE' AS country")
    rows.createOrReplaceTempView("people")
    table = pa.table({"id": [20], "n": [1.5], "country": ["AT"]})
    (tmp_path / "t.csv").write_text("id,n,country\n30,x,FR\n")
    sources = [rows, "table:people WHERE id < 3", table, tmp_path / "t.csv"]
    report = load(sources, tmp_path / "kb", mapping=MAPPING)
    assert (report.engine, *counts(report)[:2]) == ("spark", 4, 4 * (9 + 3 + 1 + 1))
    load([rows.toArrow(), table, tmp_path / "t.csv"], tmp_path / "plain", mapping=MAPPING)
    assert data(tmp_path / "kb") == data(tmp_path / "plain")
    more = spark.createDataFrame([(99, 1.0, "DE")], "id int, n double, country string")
    assert append(more, tmp_path / "plain", mapping=MAPPING, batch="1").stored == 4


def test_what_spark_does_not_find_is_told_before_the_store_is_begun(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lakes" / "lake" / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "lakes" / "lake" / "a.parquet")
    (tmp_path / "none").mkdir()
    wrong: list[tuple[Any, str]] = [
        ("table:no.such", "TABLE_OR_VIEW_NOT_FOUND"),
        ("table:x; DROP TABLE y", "PARSE_SYNTAX_ERROR"),
        ("table:(SELECT 1 AS id)", "[?]country is no column of the tables|[?]n is no column of the tables"),
        (f"file://{tmp_path}/nothing", "PATH_NOT_FOUND"),
        (f"file://{tmp_path}/none", "holds no RDF file and no table"),
        (f"file://{tmp_path}/lakes", "lake: is a Delta table: .* or give the table's own folder"),
        (f"file://{tmp_path}/lakes/lake", "data source: delta.* SPARK_CONF_DIR"),
        (tmp_path / "lakes" / "lake", "data source: delta.* SPARK_CONF_DIR"),
        ("nofs://host/a.nt", "nofs.* SPARK_CONF_DIR"),
        (spark.readStream.format("rate").load(), "a streaming DataFrame has no end"),
    ]
    for source, reason in wrong:
        with pytest.raises(KbError, match=reason):
            load(source, tmp_path / "kb", mapping=MAPPING)
    with pytest.raises(KbError, match="a table needs a mapping"):
        load(spark.range(1), tmp_path / "kb")
    assert not (tmp_path / "kb").exists()


def test_strict_stops_at_a_fault_of_an_address(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<http://e/a> <http://e/p> 1 .\n")
    with pytest.raises(KbError, match=r"a\.nt:1: "):
        load(f"file://{tmp_path}/a.nt", tmp_path / "kb", strict=True)
