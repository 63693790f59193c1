"""What `match` is given: DataFrames, events that something before it holds back or passes on, clocks without a zone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from pyspark.sql import functions as F
from slow_starts import started
from test_operator import Sink, micros

from oxiseq.spark import SparkError, match
from oxiseq.spark.upstream import is_behind_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = """PREFIX : <http://e/> SELECT ?v WITHIN 5 SECONDS SLIDING PARTITION BY ?v FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x :v ?v } }"""
BATCHES = [[100, 200], [150, 300], [250, 400], [500]]
"""Seconds; 150 and 250 come when the largest time of the batches before is 200 and 300."""


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """A file is a micro-batch."""
    folder.mkdir(exist_ok=True)
    for number, batch in enumerate(BATCHES):
        rows = [{"time": at * 1_000_000, "graph": f"_:e <http://e/v> {at} .", "k": 1} for at in batch]
        (folder / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    read = spark.readStream.schema("time bigint, graph string, k int").option("maxFilesPerTrigger", 1)
    return (
        read.json(f"{folder}/*.json").withColumn("time", F.timestamp_micros("time")).withWatermark("time", "0 seconds")
    )


def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "one"), (1, "one")], "k int, name string").distinct()


def other(frame: DataFrame) -> DataFrame:
    return frame.select(F.col("k"), F.col("time").alias("then"))


PASSED_ON: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "itself": lambda given, table: given,
    "a join with a table": lambda given, table: given.join(table, "k"),
    "an outer join with a table that is counted": lambda given, table: given.join(
        table.groupBy("k").count(), "k", "left"
    ),
    "a limit": lambda given, table: given.limit(1000),
    "distinct": lambda given, table: given.distinct(),
    "a deduplication": lambda given, table: given.dropDuplicates(["graph", "time"]),
    "a union": lambda given, table: given.union(given),
}
HELD_BACK: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "a join of streams": lambda given, table: given.join(other(given), "k"),
    "a count": lambda given, table: given.groupBy("time").count(),
    "a count of a join with a table": lambda given, table: given.join(table, "k").groupBy("time").count(),
    "a join with a table of a count": lambda given, table: given.groupBy("time", "k").count().join(table, "k"),
}


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFrame, DataFrame]:
    return stream(spark, tmp_path_factory.mktemp("given") / "in"), table(spark)


@pytest.mark.parametrize("what", PASSED_ON)
def test_what_passes_events_on_at_once_is_no_state_before_them(both: tuple[DataFrame, DataFrame], what: str) -> None:
    assert not is_behind_state(PASSED_ON[what](*both))


@pytest.mark.parametrize("what", HELD_BACK)
def test_what_holds_events_back_is(both: tuple[DataFrame, DataFrame], what: str) -> None:
    assert is_behind_state(HELD_BACK[what](*both))


@pytest.mark.parametrize("what", ["a join with a table", pytest.param("a limit", marks=pytest.mark.full)])
@pytest.mark.slow
def test_late_events_stay_late(spark: SparkSession, tmp_path: Path, what: str) -> None:
    given = PASSED_ON[what](stream(spark, tmp_path / "in"), table(spark))
    sink = Sink()
    found = match(spark, QUERY, {"S": given}, buckets=1, late=True)
    writing = found.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "c"))
    started(lambda: writing.trigger(availableNow=True).start().awaitTermination())
    rows = list(sink.rows())
    assert sorted(micros(row["late"]["time"]) // 1_000_000 for row in rows if row["late"]) == [150, 250]
    assert {row["v"] for row in rows if not row["late"]} >= {"100", "200", "300"}


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("new_york")
@pytest.mark.slow
def test_a_clock_without_a_zone_is_of_the_sessions(spark: SparkSession) -> None:
    given = spark.sql("SELECT timestamp_ntz'2024-05-01 06:00:00.5' AS time, '_:e <http://e/v> 1 .' AS graph")
    assert dict(given.dtypes)["time"] == "timestamp_ntz"
    (row,) = match(spark, QUERY, {"S": given}, buckets=1).select(F.unix_micros("at").alias("at")).collect()
    assert row["at"] == int(datetime.fromisoformat("2024-05-01T10:00:00+00:00").timestamp()) * 1_000_000 + 500_000


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        ({"S": [1]}, "stream 'S': list is given; a DataFrame"),
        ({"S": None}, "stream 'S': NoneType is given"),
        ({"S": "events.nq"}, "stream 'S': str is given"),
        ({1: None}, "stream 1: NoneType is given"),
        ([1], "streams is list"),
        (None, "streams is NoneType"),
    ],
)
def test_what_is_no_dataframe_is_said(spark: SparkSession, streams: Any, said: str) -> None:
    with pytest.raises(SparkError, match=said):
        match(spark, QUERY, streams, buckets=1)
