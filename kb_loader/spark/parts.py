"""Lines sorted, each once, in part files of N-Quads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyoxigraph import NamedNode
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from oxiseq.kb_loader.spark.terms import in_named

PART = 1 << 27
"""Bytes of a part, about."""


def write_parts(lines: DataFrame, folder: Path, parts: int, leave_out: Sequence[NamedNode] = ()) -> int:
    """Write the column `line`, each line once and sorted (those with blank nodes last), as folder/part-*.nq.

    Lines of the graphs `leave_out` are counted but not written. Returns how many different lines there are.
    Spark sorts outside of memory where need be.
    """
    counted = Observation()
    blank = f.instr("line", "_:") > 0
    once = (
        lines.select(blank.alias("blank"), "line")
        .repartitionByRange(parts, "blank", "line")
        .distinct()
        .observe(counted, f.count(f.lit(1)).alias("count"))
    )
    for graph in leave_out:
        once = once.where(~in_named(graph))
    once.sortWithinPartitions("blank", "line").select("line").write.mode("overwrite").text(folder.as_uri())
    for sum_ in [*folder.glob(".*.crc"), *folder.glob("_SUCCESS")]:
        sum_.unlink()
    for number, part in enumerate(sorted(folder.glob("part-*"))):
        part.rename(folder / f"part-{number:05}.nq")
    return int(counted.get["count"])


def read_parts(spark: SparkSession, folder: Path) -> DataFrame:
    """The column `line` of part files."""
    return spark.read.text(folder.as_uri(), lineSep="\n").withColumnRenamed("value", "line")
