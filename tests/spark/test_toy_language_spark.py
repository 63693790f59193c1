"""A language that a plug-in brings is partitioned as the SPAseq query that it is lowered to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import oxiseq
from oxiseq.grammar import languages

pytest.importorskip("pyspark")
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOY = Path(__file__).parents[1] / "languages" / "toy"
TEXT = "on <http://e/s> of <http://e/>: Low then High within 10s by company"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def test_the_toy_language_is_partitioned(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from oxiseq.spark import match  # noqa: PLC0415  pyspark may not be there

    monkeypatch.syspath_prepend(TOY)
    languages._points.cache_clear()
    kinds = ("Low", "High", "High")
    events = [
        (i * 1_000_000, f"<urn:q{i}> {TYPE} <http://e/{kinds[i % 3]}> ; <http://e/company> <urn:c{i % 2}> .")
        for i in range(20)
    ]
    wanted = [(m.at_us, m["company"].value) for m in oxiseq.run(TEXT, {"S": events}, language="then")]
    try:
        frame = spark.createDataFrame(events, "time bigint, graph string")
        rows = match(spark, TEXT, {"S": frame}, language="then", buckets=2).collect()
        assert sorted((int(row["at"].timestamp() * 1_000_000), row["company"]) for row in rows) == sorted(wanted)
        assert len(wanted) > 5
    finally:
        languages._points.cache_clear()
