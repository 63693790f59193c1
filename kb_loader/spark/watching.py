"""Progress of Spark's jobs, reported while they run; and names for its web UI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from pyspark import SparkContext
from pyspark.sql import SparkSession

from oxiseq.kb_loader.report import Progress, Watch

_DESCRIBED = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_EVERY = 0.5
"""Seconds."""


@contextmanager
def watching(spark: SparkSession, watch: Watch, step: str, total: int, statements: int) -> Iterator[None]:
    """Within it `watch` gets how many of the running stages' tasks are done, as a share of `total`; Spark's jobs are
    of the group `oxiseq load`, and are described by the step."""
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
        with described(spark.sparkContext, "oxiseq load", f"oxiseq load: {step}"):
            yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def described(context: SparkContext, group: str, text: str) -> Iterator[None]:
    """Within it Spark's jobs of this thread are of the group and have the description; then as before."""
    before = {name: context.getLocalProperty(name) for name in _DESCRIBED}
    context.setJobGroup(group, text)
    try:
        yield
    finally:
        for name, value in before.items():
            context._jsc.setLocalProperty(name, value)
