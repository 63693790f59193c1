"""CEQL by PARTITION BY and windows by a key give what `oxiseq.run` gives, in one streaming query.

tests/buckets/test_keyed_languages.py has many cases without Java."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_operator import Sink, micros, quads

import oxiseq
from oxiseq.grammar import QueryError
from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from pyspark.sql import functions as F
from slow_starts import started

from oxiseq.spark import EventSource, SparkError, explain, match

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_700_000_000_000_000
SECOND = 1_000_000
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
COMPLEX = """VOCAB <http://e/> SELECT x, y FROM S WHERE A AS x : B AS y FILTER y[v > 3]
WITHIN 20 SECONDS PARTITION BY [k]"""
WINDOWS = """PREFIX : <http://e/> SELECT ?s (MAX(?v) AS ?most) (COUNT(*) AS ?n)
FROM STREAM <http://e/S> [RANGE PT20S SLIDE PT1S] WHERE { ?s :v ?v FILTER(?v > 2) } GROUP BY ?s"""


def readings(count: int) -> list[tuple[int, str]]:
    """Some come at one time, in the order of their file."""
    dice = random.Random(5)
    found, time = [], START
    for _ in range(count):
        time += dice.choice([0, 1, 1, 2]) * SECOND
        who = dice.randint(0, 4)
        number = f'"{dice.randint(0, 9)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        subject = f"<http://e/s{who}>"
        kind = dice.choice("AB")
        lines = (f"{TYPE} <http://e/{kind}>", f'<http://e/k> "{who % 3}"', f"<http://e/v> {number}")
        found.append((time, "".join(f"{subject} {line} .\n" for line in lines)))
    return found


def test_complex_events_and_windows_are_those_of_one_engine(spark: SparkSession, tmp_path: Path) -> None:
    given = readings(120)
    for number, low in enumerate((0, 60)):
        (tmp_path / f"{number}.nq").write_text(quads(given[low : low + 60], f"a{number}"))
    (tmp_path / "9.nq").write_text(quads([(START + SECOND * 9_000, given[0][1])], "end"))
    spark.dataSource.register(EventSource)
    stream = spark.readStream.format("oxiseq").load(str(tmp_path))
    found = match(spark, COMPLEX, {"S": stream}, buckets=3, language="ceql", types="terms")
    rows = match(
        spark, WINDOWS, {"http://e/S": stream}, buckets=3, language="rspql", name="windows", types={"n": "bigint"}
    )
    assert dict(rows.dtypes)["n"] == "bigint"
    times = "concat_ws(' ', transform(concat(events_x, events_y), e -> concat(e.stream, '@', unix_micros(e.time))))"
    told = [
        found.select("at", F.expr(times).alias("what")),
        rows.select("at", F.concat_ws(" ", "s", "most", "n").alias("what")),
    ]
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 1)  # fewer workers, of which each loads these languages' kernels
    sink = Sink()
    writing = told[0].unionAll(told[1]).writeStream.foreachBatch(sink).trigger(availableNow=True)
    writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
    started(lambda: writing.start().awaitTermination())
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    expected = Counter[tuple[int, str]]()
    for m in oxiseq.run(COMPLEX, {"S": given}, language="ceql"):
        events = [*m.events["x"], *m.events["y"]]
        expected[m.at_us, " ".join(f"{iri}@{time}" for iri, time in events)] += 1
    assert len(expected) > 10
    for m in oxiseq.run(WINDOWS, {"http://e/S": given}, language="rspql"):
        expected[m.at_us, " ".join(m[name].value for name in ("s", "most", "n"))] += 1
    assert len(expected) > 60
    assert Counter((micros(row["at"]), row["what"]) for row in sink.rows()) == expected


def test_what_needs_all_events_in_one_place_is_refused_with_its_place(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "")], "time bigint, graph string")
    with pytest.raises(QueryError, match="in ceql cannot be partitioned: its complex events have positions") as told:
        match(spark, "VOCAB <http://e/> SELECT * FROM S WHERE A", {"S": frame}, language="ceql")
    assert "hint: oxiseq.run takes it" in str(told.value)
    path = "PREFIX : <http://e/> SELECT * FROM STREAM :s [RANGE 10 SLIDE 1] WHERE { ?a :p+ ?c }"
    with pytest.raises(QueryError, match="in spectra cannot be partitioned: a path goes through") as told:
        match(spark, path, {"http://e/s": frame}, language="spectra")
    assert (told.value.line, told.value.column) == (1, path.index("?a") + 1)
    with pytest.raises(QueryError, match="in epsparql cannot be partitioned: its rules and filters look at all"):
        match(spark, "SELECT * FROM STREAM <http://e/s> WHERE { ?a ?b ?c }", {"s": frame}, language="epsparql")
    with pytest.raises(SparkError, match="reads no stream 'T'; it declares S <http://e/S>"):
        match(spark, COMPLEX, {"T": frame}, language="ceql")
    assert explain(COMPLEX, "ceql") == "partitioned by ?k"
    assert explain(WINDOWS, "rspql") == "partitioned by ?s; every partition reads the times of all events"
