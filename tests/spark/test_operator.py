"""`oxiseq.spark.match` finds what `oxiseq.run` finds. Few jobs: each costs seconds (tests/buckets has many cases)."""

from __future__ import annotations

import random
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from profiles import in_the_gate

import oxiseq
from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from slow_starts import started

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.open import ENDINGS
from oxiseq.spark import EventSource, OnePartitionWarning, SparkError, explain, match
from oxiseq.spark.balance import spark_hash
from oxiseq.spark.errors import CheckpointError
from oxiseq.spark.kept import Snapshot
from oxiseq.spark.order import Order
from oxiseq.spark.processor import Buckets
from oxiseq.spark.source import _ENDINGS
from oxiseq.spark.steps import step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

START = 1_700_000_000_000_000
SECOND = 1_000_000
PREFIX = "PREFIX : <http://e/>\n"
RISE = """FROM STREAM S <http://e/s> WHERE { SEQ(A%sB)
  DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b > ?a) } }"""
KB = "".join(f'<http://e/k{i}> <http://e/name> "name {i}" <http://e/names> .\n' for i in range(0, 6, 2))
QUERIES = {
    "by the next": "SELECT ?k ?a ?b " + RISE % "; ",
    "contiguous": "SELECT ?k ?a " + RISE % ", ",
    "tumbling": "SELECT ?k ?b WITHIN 20 SECONDS PARTITION BY ?k " + RISE % ", ",
    "events": "SELECT ?k WITHIN 7 EVENTS SLIDING " + RISE % ": ",
    "groups": """SELECT ?k ?a FROM STREAM S <http://e/s> WHERE { SEQ(A; (B; C)! WITHIN 20 SECONDS)
      DEFINE GPM A ON S { ?x :k ?k ; :v ?a FILTER(?a > 6) } DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b < 4) }
      DEFINE GPM C ON S { ?z :k ?k ; :v ?c FILTER(?c > ?a) } }""",
    "graph": "CONSTRUCT { ?k :rose ?b } WITHIN 9 SECONDS SLIDING " + RISE % "; ",
    "none": "ASK " + RISE % "; ",
    "uncorrelated": """SELECT ?a ?b FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
      DEFINE GPM A ON S { ?x :k :k1 ; :v ?a } DEFINE GPM B ON S { ?y :k :k2 ; :v ?b } }""",
    "known": """SELECT ?k ?name FROM STREAM S <http://e/s> WHERE { SEQ(A; N!; B)
      DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM N ON S { ?n :v 3 }
      DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b < ?a) GRAPH :names { ?k :name ?name } } }""",
    "until": """SELECT ?k ?a ?b FROM STREAM S <http://e/s> WHERE { SEQ(A; B;+) UNTIL U
      DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM B ON S { ?y :k ?k ; :v ?b FILTER(?b < ?a) }
      DEFINE GPM U ON S { ?u :v 3 } }""",
}
IN_THE_GATE = frozenset({"graph", "known"})
"""Graphs, and rows with the knowledge base; tests/buckets runs the others without Spark."""


def events(count: int, seed: int = 1) -> list[tuple[int, str]]:
    dice = random.Random(seed)
    return [
        (
            START + SECOND * i,
            f"_:e <http://e/k> <http://e/k{dice.randint(0, 5)}> .\n"
            f'_:e <http://e/v> "{dice.randint(0, 9)}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
        )
        for i in range(count)
    ]


def rows_of(found: Any) -> Counter[tuple[Any, ...]]:
    """Of `oxiseq.run`: `at`, values, events, and `end`."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for m in found:
        values = tuple(getattr(m.get(v), "value", None) for v in found.variables) if not m.graph else (text(m.graph),)
        events = tuple(sorted((n, tuple(t for _, t in ts)) for n, ts in m.events.items()))
        rows[m.at_us, *values, events, m.end_us] += 1
    return rows


def text(graph: Any) -> str:
    return "".join(f"{t} .\n" for t in graph)


def rows_in(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """Of a DataFrame of matches."""
    return Counter(row_of(row.asDict()) for row in frame.collect())


def row_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """As `rows_of` has it; without a column `end` nothing is decided later than it ends."""
    gpms = {n[7:]: tuple(map(micros, ts)) for n, ts in row.items() if n.startswith("events_")}
    values = [v for n, v in row.items() if not n.startswith("events_") and n not in ("at", "end", "time", "late")]
    return micros(row["at"]), *values, tuple(sorted(gpms.items())), micros(row.get("end", row["at"]))


def micros(time: Any) -> int:
    return round(time.timestamp() * 1e6)


@pytest.mark.parametrize("name", in_the_gate(IN_THE_GATE, QUERIES))
def test_over_tables_that_end_it_is_run(spark: SparkSession, name: str) -> None:
    query, given = PREFIX + QUERIES[name], events(300)
    kb = KB if name == "known" else None
    start = START - 3 * SECOND if name == "tumbling" else None
    frame = spark.createDataFrame(given, "time bigint, graph string")
    if name == "contiguous":
        frame = frame.selectExpr("timestamp_micros(time) AS time", "CAST(graph AS binary) AS graph")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", OnePartitionWarning)
        found = rows_in(match(spark, query, {"S": frame}, kb, origin=start, buckets=3))
    assert sum(w.category is OnePartitionWarning for w in told) == (name == "uncorrelated")
    expected = rows_of(oxiseq.run(query, {"S": given}, kb, origin=start))
    assert found == expected
    assert len(expected) >= 10


def quads(given: list[tuple[int, str]], name: str) -> str:
    lines = []
    for i, (time, graph) in enumerate(given):
        at = f"<urn:{name}:{i}>"
        lines.append(graph.replace(" .\n", f" {at} .\n"))
        lines.append(
            f'{at} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        )
    return "".join(lines)


class Sink:
    """Keeps the rows of each micro-batch, by its number."""

    def __init__(self) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = [row.asDict(recursive=True) for row in frame.collect()]

    def rows(self) -> Iterator[dict[str, Any]]:
        for number in sorted(self.batches):
            yield from self.batches[number]


TWO = (
    PREFIX
    + """SELECT ?k ?a ?b WITHIN 60 SECONDS SLIDING FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>
WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x :k ?k ; :v ?a } DEFINE GPM B ON T { ?y :k ?k ; :v ?b FILTER(?b > ?a) } }"""
)


LATENESS = 10 * SECOND


@pytest.mark.slow
def test_streams_give_the_same_and_late_events_besides(spark: SparkSession, tmp_path: Path) -> None:
    """Two folders, disorder within the lateness, late events. Restarts: test_spark_kills."""
    spark.dataSource.register(EventSource)
    first, second = tmp_path / "s", tmp_path / "t"
    given = {"S": events(180, 2), "T": events(180, 3)}
    late = [(START + SECOND * 5, given["S"][5][1]), (START + SECOND * 6, given["S"][6][1])]
    for folder, name in ((first, "S"), (second, "T")):
        folder.mkdir()
        parts = [given[name][low : low + 60] for low in range(0, 180, 60)]
        parts[0][56:], parts[1][:4] = parts[1][:4], parts[0][56:]  # four come too soon, four too late
        if name == "S":
            parts[2] += late
        for number, part in enumerate(parts):
            random.Random(number).shuffle(part)
            (folder / f"{number}.nq").write_text(quads(part, f"{name}{number}"))
        end = [(START + SECOND * 10_000, given["S"][0][1])]
        (folder / "9.nq").write_text(quads(end, f"end{name}"))
    sink = Sink()

    streams = {
        name: spark.readStream.format("oxiseq").option("maxFilesPerTrigger", 1).load(str(folder))
        for name, folder in (("S", first), ("T", second))
    }
    writing = (
        match(spark, TWO, streams, lateness=f"{LATENESS}us", buckets=3, late=True)
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    runs: list[StreamingQuery] = []

    def run() -> None:
        runs.append(writing.start())
        runs[-1].awaitTermination()

    started(run)
    found = list(sink.rows())
    told = sorted((row["late"]["stream"], micros(row["late"]["time"])) for row in found if row["late"])
    assert told == [("http://e/s", time) for time, _ in late]
    assert sum(step["observedMetrics"]["oxiseq"]["late"] for each in runs for step in each.recentProgress) == len(late)
    assert "<http://e/v>" in next(row["late"]["graph"] for row in found if row["late"])
    expected = rows_of(oxiseq.run(TWO, given))
    assert Counter(row_of(row) for row in found if not row["late"]) == expected
    assert len(expected) > 50
    checkpoint_is_looked_at(spark, streams, tmp_path)


def checkpoint_is_looked_at(spark: SparkSession, streams: dict[str, DataFrame], folder: Path) -> None:
    """Before the query starts."""
    checkpoint = folder / "checkpoint"
    match(spark, TWO, streams, buckets=3, checkpoint=checkpoint)
    match(spark, TWO, streams, buckets=2, checkpoint=folder / "none")
    with pytest.raises(CheckpointError, match=r"nothing://here: Spark cannot read there: .*nothing"):
        match(spark, TWO, streams, buckets=3, checkpoint="nothing://here")
    with pytest.raises(CheckpointError, match="the checkpoint is of 3 buckets, not 2: pass buckets=3"):
        match(spark, TWO, streams, buckets=2, checkpoint=checkpoint)
    with pytest.raises(CheckpointError, match=r"cannot go on with this query: .*give a new checkpointLocation"):
        match(spark, TWO.replace("?b > ?a", "?b < ?a"), streams, buckets=3, checkpoint=checkpoint)
    for partition in (checkpoint / "state" / "0").glob("[0-9]*"):
        shutil.rmtree(partition)
    with pytest.raises(CheckpointError, match="Spark cannot read the states of this checkpoint"):
        match(spark, TWO, streams, buckets=3, checkpoint=checkpoint)
    shutil.rmtree(checkpoint / "state")
    with pytest.raises(CheckpointError, match="is the checkpoint of a streaming query without `match`"):
        match(spark, TWO, streams, buckets=3, checkpoint=checkpoint)


class Stored:
    """A state of Spark's."""

    def get(self) -> tuple[bytes, int]:
        return b"state", 3


def test_a_checkpoint_belongs_to_its_number_of_buckets() -> None:
    for buckets in (3, 2):
        processor = Buckets(Order("", None, None, (), buckets), (1, 2), "text", False)
        processor._state = Stored()
        if buckets == 3:
            assert processor.snapshot() == b"state"
            continue
        with pytest.raises(CheckpointError, match="the checkpoint is of 3 buckets, not 2: pass buckets=3"):
            processor.snapshot()


def test_a_checkpoint_of_another_query_says_what_to_do() -> None:
    """And one that is damaged."""
    orders = [Order(PREFIX + QUERIES[name], None, None, ("http://e/s",), 1) for name in ("none", "graph")]
    state = step(orders[0], 0, Snapshot(), iter(()), 0, "text", False).change.snapshot
    assert state is not None
    assert step(orders[0], 0, Snapshot(state), iter(()), 0, "text", False).frames == []
    for order, saved in ((orders[1], state), (orders[0], state[: len(state) // 2]), (orders[0], b"")):
        with pytest.raises(CheckpointError, match=r"cannot go on with this query: .*give a new checkpointLocation"):
            step(order, 0, Snapshot(saved), iter(()), 0, "text", False)


def test_spark_hashes_as_we_do(spark: SparkSession) -> None:
    key = "CAST(id * 12345 AS INT)"
    rows = spark.range(50).selectExpr(f"{key} AS key", f"hash({key}) AS hash").collect()
    assert spark_hash(np.array([row["key"] for row in rows])).tolist() == [row["hash"] for row in rows]


def test_what_cannot_be_done_is_said(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "")], "time bigint, graph string")
    tumbling = PREFIX + QUERIES["tumbling"]
    with pytest.raises(SparkError, match="give origin="):
        match(spark, tumbling, {"S": frame})
    windows = "SELECT * FROM STREAM <http://e/s> [RANGE 10 SLIDE 1] WHERE { ?a ?b ?c }"
    with pytest.raises(OxiseqError, match="sql"):
        match(spark, windows, {"S": frame}, language="sql")
    with pytest.raises(SparkError, match="reads no stream 'T'; it declares S <http://e/s>"):
        match(spark, tumbling, {"T": frame}, origin=0)
    with pytest.raises(SparkError, match="`events`, or `time` and `graph`"):
        match(spark, tumbling, {"S": frame.drop("time")}, origin=0)
    with pytest.raises(SparkError, match="time is string; timestamp or"):
        match(spark, tumbling, {"S": frame.selectExpr("CAST(time AS string) AS time", "graph")}, origin=0)
    with pytest.raises(SparkError, match="types is text, ntriples, terms, infer, or the type of each column by name"):
        match(spark, tumbling, {"S": frame}, origin=0, types="turtle")  # type: ignore[arg-type]
    timed = PREFIX + "SELECT ?At FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :at ?At } }"
    with pytest.raises(SparkError, match=r"\?At has the name of another column \(at, time, events_A\): SELECT"):
        match(spark, timed, {"S": frame})
    with pytest.raises(SparkError, match="cannot share a Store"):
        match(spark, tumbling, {"S": frame}, oxiseq.Store(), origin=0)  # type: ignore[arg-type]
    with pytest.raises(SparkError, match="no stream is given"):
        match(spark, tumbling, {}, origin=0)
    assert explain(tumbling) == "partitioned by ?k"
    assert explain(PREFIX + QUERIES["known"]) == "partitioned by ?k; events of N go to every partition"
    assert "no variable joins" in explain(PREFIX + QUERIES["uncorrelated"])


def test_the_data_source_knows_the_endings_of_event_files() -> None:
    assert set(_ENDINGS) == set(ENDINGS) - {".nt", ".ttl"}, "which are mostly no events"
