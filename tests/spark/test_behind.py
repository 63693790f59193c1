"""What may stand behind `match` in one streaming query: windows, deduplication, joins, another `match`.

Each has a chain of watermarks of its own, and costs seconds.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import oxiseq
from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from pyspark.sql import functions as F
from slow_starts import started
from test_operator import PREFIX, SECOND, START, Sink, events, micros, row_of, rows_of

from oxiseq.spark import SparkError, match

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RISE = (
    PREFIX
    + """SELECT ?k ?a ?b WITHIN 20 SECONDS SLIDING FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b > ?a) } }"""
)
LONELY = (
    PREFIX
    + """SELECT ?k ?a WITHIN 9 SECONDS SLIDING FROM STREAM S <http://e/s> WHERE { SEQ(A; B!)
  DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b > ?a) } }"""
)
LONELY_OF_SOME = LONELY.replace("WITHIN 9 SECONDS SLIDING", "WITHIN 9 EVENTS SLIDING PARTITION BY ?k")
GRAPHS = (
    PREFIX
    + """CONSTRUCT { ?k :to ?b } WITHIN 20 SECONDS SLIDING FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b > ?a) } }"""
)
TWICE = (
    PREFIX
    + """SELECT ?k ?b ?c WITHIN 20 SECONDS SLIDING FROM STREAM R <http://e/r> WHERE { SEQ(A; B)
  DEFINE GPM A ON R { ?k :to ?b } DEFINE GPM B ON R { ?k :to ?c FILTER(?c > ?b) } }"""
)
COUNT = 120
NUMBER = "<http://www.w3.org/2001/XMLSchema#integer>"
END = START + SECOND * 10_000
GIVEN = events(COUNT, 5)


@pytest.fixture(autouse=True)
def one_partition(spark: SparkSession) -> Iterator[None]:
    """Each operator of a chain has stores in each partition; that there may be several, test_operator.py shows."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def source(spark: SparkSession, folder: Path, given: list[tuple[int, str]] = GIVEN) -> DataFrame:
    """Files of 60 events, a micro-batch each, in disorder; then two that only move the watermark."""
    folder.mkdir()
    parts = [given[low : low + 60] for low in range(0, len(given), 60)]
    for number, part in enumerate([*parts, [(END, "")], [(END + 60 * SECOND, "")]]):
        random.Random(number).shuffle(part)
        rows = [json.dumps({"time": time, "graph": graph}) for time, graph in part]
        (folder / f"{number}.json").write_text("\n".join(rows))
    return (
        spark.readStream.schema("time bigint, graph string")
        .option("maxFilesPerTrigger", 1)
        .json(f"{folder}/*.json")
        .withColumn("time", F.timestamp_micros("time"))
    )


def graph(key: int, value: int) -> str:
    return f'_:e <http://e/k> <http://e/k{key}> .\n_:e <http://e/v> "{value}"^^{NUMBER} .\n'


def run(frame: DataFrame, checkpoint: Path) -> list[dict[str, Any]]:
    sink = Sink()
    writing = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    started(lambda: writing.trigger(availableNow=True).start().awaitTermination())
    return list(sink.rows())


def expected(query: str, given: list[tuple[int, str]] = GIVEN) -> Counter[tuple[Any, ...]]:
    return rows_of(oxiseq.run(query, {"S": given}))


@pytest.mark.parametrize("query", [pytest.param(RISE, marks=pytest.mark.full), LONELY], ids=["end", "negation"])
@pytest.mark.slow
def test_windows_count_every_match_once(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Behind a trailing negation, at the time when it has passed."""
    rows = match(spark, query, {"S": source(spark, tmp_path / "in")}, buckets=2)
    counted = rows.groupBy(F.window("time", "7 seconds"), "k").count()
    found = {(micros(row["window"]["start"]), row["k"]): row["count"] for row in run(counted, tmp_path / "c")}
    wanted: Counter[tuple[int, str]] = Counter()
    for row, count in expected(query).items():
        wanted[row[0] // (7 * SECOND) * 7 * SECOND, row[1]] += count
    assert found == wanted
    assert sum(wanted.values()) > 40


@pytest.mark.full
def test_windows_count_every_match_that_a_window_of_events_decides(spark: SparkSession, tmp_path: Path) -> None:
    """Ten more events of each key decide all that ended before them."""
    more = [(START + SECOND * (COUNT + i), graph(i % 6, -1)) for i in range(60)]
    rows = match(spark, LONELY_OF_SOME, {"S": source(spark, tmp_path / "in", GIVEN + more)}, buckets=2)
    rows = rows.where(F.col("end") < F.timestamp_micros(F.lit(more[0][0])))
    found = run(rows.groupBy(F.window("time", "7 seconds"), "k").count(), tmp_path / "c")
    wanted = sum(count for row, count in expected(LONELY_OF_SOME, GIVEN + more).items() if row[-1] < more[0][0])
    assert sum(row["count"] for row in found) == wanted > 15


@pytest.mark.full
def test_matches_are_deduplicated_within_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    rows = match(spark, RISE, {"S": source(spark, tmp_path / "in")}, buckets=2)
    found = run(rows.dropDuplicatesWithinWatermark(["time", "k", "a"]).select("time", "k", "a"), tmp_path / "c")
    wanted = {(row[0], row[1], row[2]) for row in expected(RISE)}
    assert sorted((micros(row["time"]), row["k"], row["a"]) for row in found) == sorted(wanted)


@pytest.mark.full
@pytest.mark.slow
def test_matches_are_joined_with_matches(spark: SparkSession, tmp_path: Path) -> None:
    """Each side reads files of its own and waits for its own matches."""
    first = match(spark, RISE, {"S": source(spark, tmp_path / "first")}, buckets=2).alias("one")
    second = match(spark, LONELY, {"S": source(spark, tmp_path / "second")}, buckets=2, name="lonely").alias("two")
    near = F.expr("one.k = two.k AND two.time BETWEEN one.time AND one.time + INTERVAL 3 SECONDS")
    rows = first.join(second, near, "leftOuter").selectExpr("one.time AS at", "one.k", "two.time AS until", "two.a")
    found = Counter(
        (micros(row["at"]), row["k"], row["until"] and micros(row["until"]), row["a"])
        for row in run(rows, tmp_path / "c")
    )
    wanted: Counter[tuple[Any, ...]] = Counter()
    left, right = list(expected(RISE).elements()), list(expected(LONELY).elements())
    joined = set()
    for one, two in product(left, right):
        if one[1] == two[1] and one[0] <= two[0] <= one[0] + 3 * SECOND:
            wanted[one[0], one[1], two[0], two[2]] += 1
            joined.add(one)
    wanted.update((one[0], one[1], None, None) for one in left if one not in joined)
    assert found == wanted
    assert len({row[2] is None for row in wanted}) == 2


@pytest.mark.full
@pytest.mark.slow
def test_a_query_reads_what_another_one_derives(spark: SparkSession, tmp_path: Path) -> None:
    """`graph` of CONSTRUCT and `time` are events."""
    derived = match(spark, GRAPHS, {"S": source(spark, tmp_path / "in")}, buckets=2)
    with pytest.raises(SparkError, match="another match with the name 'oxiseq': give name="):
        match(spark, TWICE, {"R": derived})
    rows = match(spark, TWICE, {"R": derived}, buckets=3, name="twice")
    found = Counter(row_of(row) for row in run(rows, tmp_path / "c"))
    graphs: dict[int, set[str]] = {}
    for m in oxiseq.run(GRAPHS, {"S": GIVEN}):
        assert m.graph is not None
        graphs.setdefault(m.at_us, set()).add("".join(f"{t} .\n" for t in m.graph))
    wanted = rows_of(oxiseq.run(TWICE, {"R": [(at, "".join(each)) for at, each in sorted(graphs.items())]}))
    assert found == wanted
    assert len(wanted) > 10


@pytest.mark.full
def test_a_stream_keeps_the_watermark_that_it_has(spark: SparkSession, tmp_path: Path) -> None:
    given = source(spark, tmp_path / "in").withWatermark("time", "5 seconds")
    with pytest.raises(SparkError, match="have watermarks of their own, which decide lateness: leave lateness out"):
        match(spark, RISE, {"S": given}, lateness="1s")
    found = run(match(spark, RISE, {"S": given}, buckets=2), tmp_path / "c")
    assert Counter(row_of(row) for row in found) == expected(RISE)
