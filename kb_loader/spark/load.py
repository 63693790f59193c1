"""A load on Spark, from the files to the store."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any

from pyoxigraph import Store as RdfStore
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from oxiseq.engine.errors import KbError
from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.choice import unpacked
from oxiseq.kb_loader.graphs import INFERRED, STATISTICS
from oxiseq.kb_loader.job import Job
from oxiseq.kb_loader.lines import line_ends
from oxiseq.kb_loader.parts import load_parts
from oxiseq.kb_loader.quarantine import Fault
from oxiseq.kb_loader.report import LoadReport, Progress
from oxiseq.kb_loader.session import spark_session, stop_session, ui_address
from oxiseq.kb_loader.spark.asked import Asking, resolved
from oxiseq.kb_loader.spark.cleaning import CLEAN, Cleaner, Cleaning
from oxiseq.kb_loader.spark.coded import write_coded
from oxiseq.kb_loader.spark.counting import counted_on_spark
from oxiseq.kb_loader.spark.parts import PART, read_parts, write_parts
from oxiseq.kb_loader.spark.pieces import Piece, lines_of, tasks
from oxiseq.kb_loader.spark.reasoning import reason_on_spark
from oxiseq.kb_loader.spark.watching import described, watching
from oxiseq.kb_loader.staging import new_staging, remove_staging
from oxiseq.kb_loader.void import write as write_statistics

_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt): ")
"""A line that names a Python exception."""
_UNPACKED = 4
"""How many times as big lines are as their Parquet file, about."""


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Where Spark works: see `spark_session`. `parts`: the folder for its files; kept if `keep`."""

    master: str
    memory: str
    parts: Path
    keep: bool


def load_on_spark(job: Job, how: OnSpark, begin: Callable[[], RdfStore], report: LoadReport) -> None:
    """Do the job. `begin` gives the store, when Spark is there. Raises KbError, at the first fault if the quarantine
    is strict, and SparkMissing."""
    active = SparkSession.getActiveSession() or next(
        (s.frame.given.sparkSession for s in job.sources if s.frame is not None and s.frame.of_spark), None
    )
    spark = active or spark_session(how.master, how.memory)
    staging: Path | None = None
    try:
        with described(spark.sparkContext, "oxiseq load", "oxiseq load: looking for sources"):
            askings = resolved(spark, job)
        files = [source for source in job.sources if source.frame is None]
        job = replace(job, sources=[*files, *(source for asking in askings for source in asking.sources)])
        report.files = len(job.sources)
        store = begin()
        if active is None and (address := ui_address(spark)) is not None:
            job.watch(Progress("reading", 0, 0, 0, f"Spark shows its work at {address}"))
        staging = new_staging(how.parts, keep=how.keep)
        work = _SparkLoad(spark, job, askings, staging, keep=how.keep)
        if active is None:
            spark.conf.set("spark.sql.shuffle.partitions", work.parts)
        work.into(store, report)
        store.flush()
    except PySparkException as error:
        raise KbError(f"Spark failed: {_told(error)}") from error
    finally:
        if staging is not None and not how.keep:
            remove_staging(staging)
        if active is None:
            stop_session(spark)


def _told(error: PySparkException) -> str:
    """What has happened, without stack traces: of a Python worker's the last line says it."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    return (raised or lines)[0]


class _SparkLoad:
    def __init__(self, spark: SparkSession, job: Job, askings: Sequence[Asking], staging: Path, *, keep: bool) -> None:
        self._spark = spark
        self._job = job
        self._askings = askings
        self._staging = staging
        self._keep = keep
        self._total = sum(source.size for source in job.sources)
        self._tasks = tasks(job.sources)
        self.parts = max(spark.sparkContext.defaultParallelism, unpacked(job.sources) // PART)
        """How many parts the lines are sorted into."""

    def into(self, store: RdfStore, report: LoadReport) -> None:
        clean, data, inferred = (self._staging / name for name in ("clean", "data", "inferred"))
        with report.timed("reading"):
            with self._watching("reading", report):
                self._clean(clean)
            read = self._judge(clean)
            report.read = sum(read.values())
            report.without = [s.name or s.path for n, s in enumerate(self._job.sources) if not read.get(n)]
            if self._askings:  # whose size was not known
                self.parts = max(self.parts, _UNPACKED * _size(clean) // PART)
        reasoning = self._job.reasoning
        with report.timed("sorting"), self._watching("sorting", report):
            lines = self._spark.read.parquet(clean.as_uri()).where(f.col("line").isNotNull()).select("line")
            left_out = [STATISTICS, *[INFERRED] * reasoning]
            report.stored = write_parts(lines, data, self.parts, left_out)
        shutil.rmtree(clean)
        known = read_parts(self._spark, data)
        if reasoning:
            with report.timed("reasoning"), self._watching("reasoning", report):
                report.inferred = reason_on_spark(self._spark, known, inferred, self.parts)
        with report.timed("counting"), self._watching("counting", report):
            counts = counted_on_spark(known, report.inferred if reasoning else None)
        if self._keep:
            with report.timed("coding"), self._watching("coding", report):
                write_coded(self._spark, [data, *[inferred] * reasoning], self._staging / "coded", self.parts)
        with report.timed("loading"):
            self._load([*sorted(data.glob("*.nq")), *sorted(inferred.glob("*.nq"))], store, report)
            report.statistics = write_statistics(store, counts)

    def _watching(self, step: str, report: LoadReport) -> Any:
        return watching(self._spark, self._job.watch, step, self._total, report.read)

    def _clean(self, folder: Path) -> None:
        graph = self._job.graph.value if self._job.graph is not None else None
        stop = str(self._staging / "stop") if self._job.quarantine.strict else None
        cleaner = Cleaner(self._job.mapping, graph, self._job.skolemise, stop)
        numbers = {source.name: number for number, source in enumerate(self._job.sources) if source.name}
        rows = [asking.rows(numbers, cleaner) for asking in self._askings]
        if (count := len(self._tasks)) or not rows:
            given = self._spark.range(0, count, 1, max(1, count))
            rows.append(given.mapInArrow(Cleaning(self._tasks, cleaner).rows, CLEAN))
        (
            reduce(DataFrame.unionAll, rows)
            .write.option("parquet.enable.dictionary", "false")
            .option("parquet.block.size", 1 << 25)
            .parquet(folder.as_uri())
        )

    def _judge(self, clean: Path) -> Counter[int]:
        """The notes: faults to the quarantine; returns how many statements were read, by source. Raises KbError if
        strict."""
        read = Counter[int]()
        for number, rows in groupby(self._notes(clean), lambda row: int(row["source"])):
            source = self._job.sources[number]
            faults = []
            before = lines = 0
            for row in rows:
                note = json.loads(row["note"])
                if row["number"] == 0:
                    before += lines
                    lines = note["lines"]
                    read[number] += note["read"]
                    continue
                if self._job.quarantine.strict:  # tasks have been stopped: their counts are short
                    before = 0 if source.name else self._lines_before(number, row["start"])
                    if source.name and row["start"]:
                        note |= {"line": None, "last": None}
                fault = Fault(_moved(note["line"], before), _moved(note["last"], before), note["reason"], note["text"])
                self._job.quarantine.judge(source, fault)
                faults.append(fault)
            self._job.quarantine.write(source, faults)
        return read

    def _notes(self, clean: Path) -> Iterator[Row]:
        rows: DataFrame = self._spark.read.parquet(clean.as_uri()).where(f.col("source").isNotNull())
        return rows.drop("line").orderBy("source", "start", "number").toLocalIterator()

    def _lines_before(self, source: int, start: int) -> int:
        pieces: list[Piece] = [p for task in self._tasks for p in task if p.source == source and p.start < start]
        return sum(line_ends(block) for piece in pieces for block in lines_of(piece))

    def _load(self, files: list[Path], store: RdfStore, report: LoadReport) -> None:
        total = sum(file.stat().st_size for file in files)

        def done(size: int) -> None:
            self._job.watch(Progress("loading", size, total, report.stored * size // max(total, 1)))

        load_parts(store, files, done)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _moved(line: int | None, before: int) -> int | None:
    return None if line is None else line + before
