"""Raw logs → event tables → a streaming query on Spark → its sink, as on a cluster, here on this machine.

pip install '.[spark]'
python examples/13-spark/run.py
"""

from __future__ import annotations

import random
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import Arranged, arrange
from oxiseq.logs.reading import Meaning

HERE = Path(__file__).parent
START = datetime(2026, 11, 20, 9, tzinfo=UTC)
KB = "".join(
    f'<http://example.org/co{i}> <http://example.org/sector> "{sector}" <http://example.org/sectors> .\n'
    for i, sector in enumerate(("steel", "glass", "paper", "cloth"))
)


def write_logs(folder: Path) -> None:
    """Two logs of ten minutes, each of two companies, a row a second; one V is planted, one row is broken."""
    dice = random.Random(12)
    for log in range(2):
        lines = ["time,name,price"]
        for second in range(600):
            price = dice.choice(["99.5", "100", "100.5"])
            if log == 1 and 100 <= second < 104:  # co2, co3 by turns: 100, ..., 80, ..., 120 of co2
                price = {100: "100", 102: "80"}.get(second, price)
            if log == 1 and second == 104:
                price = "120"
            at = START + timedelta(seconds=second)
            lines.append(f"{at:%FT%T}Z,co{2 * log + second % 2},{price}")
        lines.append("yesterday,co1,1")
        (folder / f"log{log}.csv").write_text("\n".join(lines) + "\n")


def main() -> tuple[Arranged, list[tuple[str, ...]]]:
    """What became of the logs, and the rows of the sink."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    from oxiseq.kb_loader.session import spark_session  # noqa: PLC0415  pyspark may not be there
    from oxiseq.spark import EventSource, explain, match  # noqa: PLC0415  as above

    with TemporaryDirectory() as folder_:
        folder = Path(folder_)
        (folder / "logs").mkdir()
        write_logs(folder / "logs")
        meaning = Meaning(mapping=Mapping.of_file(HERE / "quote.rq"))
        arranged = arrange(folder / "logs", folder / "events", every=timedelta(minutes=5), meaning=meaning)
        print(f"{arranged.events} events in {arranged.files} files, {arranged.bad} bad rows")

        spark = spark_session("local[2]", "1g")
        spark.conf.set("spark.sql.shuffle.partitions", 2)  # before a query's first start: its tasks
        spark.dataSource.register(EventSource)
        query = (HERE / "query.spaseq").read_text()
        print(explain(query))
        events = spark.readStream.format("oxiseq").option("maxFilesPerTrigger", 1).load(str(folder / "events"))
        running = (
            match(spark, query, {"Quotes": events}, kb=KB, lateness=timedelta(seconds=5))
            .writeStream.format("parquet")
            .option("path", str(folder / "found"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)  # what is there now; leave it out to go on for ever
            .start()
        )
        running.awaitTermination()
        found = spark.read.parquet(str(folder / "found")).orderBy("at").collect()
    rows = [(f"{row.at:%T}", row.company, row.sector, row.p1, row.p2, row.p3) for row in found]
    for row in rows:
        print(*row)
    return arranged, rows


if __name__ == "__main__":
    main()
