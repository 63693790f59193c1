"""How far Spark is, told while it works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from pyspark.sql import SparkSession

from oxiseq.kb_loader.report import Progress, Watch

_EVERY = 0.5
"""Seconds."""


@contextmanager
def watching(spark: SparkSession, watch: Watch, step: str, total: int, statements: int) -> Iterator[None]:
    """Within it `watch` is told how many of the running stages' tasks are done, as a share of `total`."""
    ended = Event()
    tracker = spark.sparkContext.statusTracker()

    def tell() -> None:
        while not ended.wait(_EVERY):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            tasks = sum(stage.numTasks for stage in stages if stage is not None)
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            if tasks:
                watch(Progress(step, total * done // tasks, total, statements))

    watch(Progress(step, 0, total, statements))
    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
