"""Run as a program, to be killed: a streaming query over the folder FOLDER/in whose sink keeps a file for each batch.

python killed_query.py FOLDER [MASTER]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """PREFIX : <http://e/>
SELECT ?k ?a ?b WITHIN 30 SECONDS SLIDING FROM STREAM S <http://e/s> WHERE {
  SEQ(A; B; N!; C)
  DEFINE GPM A ON S { ?x :k ?k ; :a ?a }
  DEFINE GPM B ON S { ?y :k ?k ; :b ?b FILTER(?b > ?a) }
  DEFINE GPM N ON S { ?n :k ?k ; :stop true }
  DEFINE GPM C ON S { ?z :k ?k ; :a ?c FILTER(?c < ?b) }
}"""


def main(folder: Path, master: str = "local[1]") -> None:
    """A session of its own."""
    from oxiseq.kb_loader.session import spark_session  # noqa: PLC0415  this file is imported by tests without Java

    spark = spark_session(master, "512m")
    spark.conf.set("spark.sql.shuffle.partitions", 1 if master.startswith("local") else 2)
    work_through(spark, folder)


def work_through(spark: SparkSession, folder: Path) -> None:
    """Work through all files that are there, from where the checkpoint says."""
    from oxiseq.spark import EventSource, match  # noqa: PLC0415  as above

    spark.dataSource.register(EventSource)
    events = spark.readStream.format("oxiseq").option("maxFilesPerTrigger", 1).load(str(folder / "in"))
    out = folder / "out"
    out.mkdir(exist_ok=True)

    def keep(rows, number):  # type: ignore[no-untyped-def]
        lines = [
            json.dumps([row.at.timestamp(), row.k, row.a, row.b, [t.timestamp() for t in row.events_B]])
            for row in rows.collect()
        ]
        part = out / f".{number}"
        part.write_text("\n".join(lines))
        os.replace(part, out / f"{number}.jsonl")

    running = (
        match(spark, QUERY, {"S": events}, buckets=2)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
