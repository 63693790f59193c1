"""Run by a Python that has `apache-flink`, not by oxiseq's: one JVM that answers the V-shape as often as asked.

    python flink_job.py < requests > answers

A request is a line of JSON, {"path": events as CSV, "seconds": window}; the answer is another, with the number of
matches, seconds of wall time and of CPU time of the JVM and of this process. An event: milliseconds, company, cents.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]  # of another interpreter

SOURCE = """CREATE TEMPORARY TABLE quotes (ms BIGINT, company INT, price INT, ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""
SINK = """CREATE TEMPORARY TABLE found (company INT, p1 INT, p2 INT, p3 INT)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""
V_SHAPE = """INSERT INTO found SELECT company, p1, p2, p3 FROM quotes MATCH_RECOGNIZE (
  PARTITION BY company ORDER BY ts
  MEASURES A.price AS p1, B.price AS p2, C.price AS p3
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X*? B Y*? C) WITHIN INTERVAL '{seconds}' SECOND(6)
  DEFINE X AS X.price >= A.price, B AS B.price < A.price, Y AS Y.price <= B.price, C AS C.price > B.price)"""


def main() -> None:
    """Answer each request."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set("table.local-time-zone", "UTC")
    answers = sys.stdout
    sys.stdout = sys.stderr  # Flink's own words are no answers
    for line in sys.stdin:
        print(json.dumps(answer(environment, **json.loads(line))), file=answers, flush=True)


def answer(environment: TableEnvironment, path: str, seconds: int) -> dict[str, float]:
    """Run the query over the file. Flink's WITHIN leaves out a match that spans it exactly: hence one more."""
    with TemporaryDirectory() as folder:
        for name, statement, where in (("quotes", SOURCE, path), ("found", SINK, folder)):
            environment.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
            environment.execute_sql(statement.format(path=Path(where).as_uri()))
        wall, cpu = perf_counter(), _cpu()
        environment.execute_sql(V_SHAPE.format(seconds=seconds + 1)).wait()
        wall, cpu = perf_counter() - wall, _cpu() - cpu
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        matches = sum(file.read_bytes().count(b"\n") for file in files)
    return {"matches": matches, "wall": wall, "cpu": cpu}


def _cpu() -> float:
    """Seconds of CPU time of this process and those below it, the JVM, so far."""
    below, ticks = {os.getpid()}, 0
    processes = sorted(_processes())
    for pid, parent, spent in processes:
        if pid in below or parent in below:
            below.add(pid)
            ticks += spent
    return ticks / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, int, int]]:
    """Of every process: its id, its parent's, ticks of CPU time."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        yield int(stat.parent.name), int(fields[1]), int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    main()
