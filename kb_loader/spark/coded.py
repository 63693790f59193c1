"""The statements as Parquet with a coded term table: see `coded.py` above, which reads it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from oxiseq.kb_loader.spark.parts import read_parts
from oxiseq.kb_loader.spark.terms import with_terms


def write_coded(spark: SparkSession, folders: Sequence[Path], target: Path, parts: int) -> None:
    """Code the statements of part files: target/terms (id, text), target/quads (s, p, o, g).

    Ids are 0, 1, 2... in the order of the texts, "" (the default graph) being 0.
    """
    lines = reduce(DataFrame.unionAll, (read_parts(spark, folder) for folder in folders))
    facts = with_terms(lines).drop("line")
    every = reduce(DataFrame.unionAll, (facts.select(f.col(name).alias("text")) for name in "spog"))
    every = every.unionAll(spark.range(1).select(f.lit("").alias("text")))
    raw = target / "raw"
    sorted_ = every.distinct().repartitionByRange(parts, "text").sortWithinPartitions("text")
    # Spark numbers rows by partition: partition << 33 | row
    sorted_.select(f.monotonically_increasing_id().alias("id"), "text").write.parquet(raw.as_uri())
    numbered = spark.read.parquet(raw.as_uri())
    partition = f.shiftright("id", 33)
    counts = {row["part"]: row["count"] for row in numbered.groupBy(partition.alias("part")).count().collect()}
    first = [sum(counts.get(before, 0) for before in range(part)) for part in range(max(counts) + 1)]
    dense = f.element_at(f.array(*map(f.lit, first)), partition.cast("int") + 1) + f.col("id").bitwiseAND((1 << 33) - 1)
    terms = numbered.select(dense.cast("long").alias("id"), "text")
    terms.repartitionByRange(parts, "id").sortWithinPartitions("id").write.parquet((target / "terms").as_uri())
    coded = facts
    for name in "spog":
        code = terms.select(f.col("id").alias(f"{name}_id"), f.col("text").alias(name))
        coded = coded.join(code, name).drop(name)
    ids = coded.select(*(f.col(f"{name}_id").alias(name) for name in "spog"))
    ids.repartitionByRange(parts, *"spog").sortWithinPartitions(*"spog").write.parquet((target / "quads").as_uri())
