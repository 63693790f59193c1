"""DataFrames as sources of a load in one process; what only Spark reads is refused there (spark/test_asked.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from dirty_files import EX
from pyoxigraph import Literal, NamedNode, Quad

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import STATISTICS, append, load, open_kb, rehearse
from oxiseq.kb_loader.tables import Mapping

MAPPING = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :age ?age }} WHERE {{ BIND(IRI(CONCAT(STR(:), ?id)) AS ?s) }}"
ONE = {"id": ["a"], "age": [1]}
ROWS = {"id": ["a", "b"], "age": [3, None], "more": [{"x": 1}, {"x": 2}]}


def ages(kb: Path) -> set[tuple[str, str]]:
    quads = [q for q in open_kb(kb) if isinstance(q, Quad) and q.graph_name != STATISTICS]
    return {(q.subject.value.removeprefix(EX), str(q.object)) for q in quads if isinstance(q.subject, NamedNode)}


@pytest.mark.parametrize("kind", ["arrow", "reader", "pandas"])
def test_a_frame_is_loaded_and_read_once(tmp_path: Path, kind: str) -> None:
    table = pa.table(ROWS)
    frame: Any = {"arrow": table, "reader": table.to_reader(), "pandas": pd.DataFrame({"id": ["a"], "age": [3]})}[kind]
    report = load(frame, tmp_path / "kb", mapping=MAPPING)
    assert (report.engine, report.files, report.read, report.quarantined) == ("plain", 1, 1, 0)
    assert ages(tmp_path / "kb") == {("a", str(Literal(3)))}


def test_frames_stand_among_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,age\nc,4\n")
    table = pa.table(ROWS)
    report = load([table, tmp_path / "t.csv", table.slice(0, 0)], tmp_path / "kb", mapping=Mapping(MAPPING))
    assert (report.files, report.without) == (3, ["DataFrame 2"])
    assert ages(tmp_path / "kb") == {("a", str(Literal(3))), ("c", str(Literal("4")))}


def test_members_of_structs_and_many_rows(tmp_path: Path) -> None:
    mapping = f"PREFIX : <{EX}> CONSTRUCT {{ [] :x ?more_x }} WHERE {{}}"
    table = pa.table({"more": [{"x": n} for n in range(5_001)]})
    assert load(table, tmp_path / "kb", mapping=mapping).stored == 5_001


def test_a_frame_is_appended_by_the_id_of_its_batch(tmp_path: Path) -> None:
    load(pa.table(ROWS), tmp_path / "kb", mapping=MAPPING)
    more = pa.table({"id": ["z"], "age": [9]})
    with pytest.raises(KbError, match=r"DataFrame: has no path and no time .* give batch="):
        append(more, tmp_path / "kb", mapping=MAPPING)
    assert [append(more, tmp_path / "kb", mapping=MAPPING, batch="b").known for _ in range(2)] == [False, True]
    assert ages(tmp_path / "kb") == {("a", str(Literal(3))), ("z", str(Literal(9)))}


@pytest.mark.parametrize(
    ("source", "mapping", "reason"),
    [
        (pa.table(ROWS), None, "DataFrame: a table needs a mapping"),
        (pa.table({"ID": ["a"]}), MAPPING, "[?]age is no column of the tables"),
        (pa.table({**ONE, "a b": [1], "a_b": [1]}), MAPPING, "DataFrame: mapping: columns 'a b', 'a_b'"),
        (7, MAPPING, "a source is a path or a DataFrame, not int"),
        (b"a.nt", None, "a source is a path or a DataFrame, not bytes"),
        ("table: ", MAPPING, "the name of a table is missing"),
        ("https://example.org/x.nt", None, "download the file"),
        ([3.5], MAPPING, "a source is a path or a DataFrame, not float"),
        ([], MAPPING, "nothing to load"),
        ("table:people", MAPPING, "table:people: only `load` on Spark reads this"),
        ("s3a://bucket/x.nt", None, "s3a://bucket/x.nt: only `load` on Spark reads this"),
    ],
)
def test_what_cannot_be_loaded_is_told_before_anything_is_written(
    tmp_path: Path, source: Any, mapping: str | None, reason: str
) -> None:
    with pytest.raises(KbError, match=reason):
        load(source, tmp_path / "kb", mapping=mapping, engine="plain")
    assert "columns 'a b'" in reason or not (tmp_path / "kb").exists()


def test_what_cannot_be_read_on_fails_the_load(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.string(), "age": pa.int64()})

    def broken() -> Any:
        yield pa.record_batch({"id": ["a"], "age": [1]}, schema=schema)
        raise ValueError("the connection is gone")

    with pytest.raises(KbError, match=r"DataFrame: .*the connection is gone"):
        load(pa.RecordBatchReader.from_batches(schema, broken()), tmp_path / "kb", mapping=MAPPING)
    with pytest.raises(KbError, match="half loaded"):
        open_kb(tmp_path / "kb")


def test_where_one_process_reads_what_only_spark_reads_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    for text in ("table:people", "hdfs://host/x.nt"):
        with pytest.raises(KbError, match="only `load` on Spark reads this"):
            append(text, tmp_path / "kb", batch="1")
        with pytest.raises(KbError, match="only `load` on Spark reads this"):
            rehearse(text)
    with pytest.raises(KbError, match="how much it holds is not known"):
        rehearse(pa.table(ROWS), mapping=MAPPING)
