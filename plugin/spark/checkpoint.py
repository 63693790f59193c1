"""Whether a query can continue from a checkpoint: decided by the states that are there, before the query starts.

In the flow: `match(checkpoint=)` → **checkpoint** → CheckpointError. Spark reads its own state stores; a state is
then restored as a worker would do it in the first micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from oxiseq.kb_loader.spark.asked import exists, literal
from oxiseq.spark.errors import CheckpointError, check_buckets
from oxiseq.spark.kept import Snapshot, take
from oxiseq.spark.processor import STATE
from oxiseq.spark.work import Work

_OPERATOR: Final = "transformWithStateInPandasExec"
"""What Spark calls ours in a checkpoint."""


def check_checkpoint(spark: SparkSession, location: str, at_work: Work) -> None:
    """Nothing if the query is new there, or can continue. A checkpoint may hold several operators: one must fit.

    Raises CheckpointError.
    """
    try:
        begun = exists(spark, f"{literal(location)}/commits/[0-9]*")
    except Py4JJavaError as error:
        raise CheckpointError(f"{location}: Spark cannot read there: {error.java_exception}") from error
    if not begun:
        return
    refused = []
    for buckets, data in _states(spark, location):
        try:
            check_buckets(buckets, at_work.order.buckets)
            take(at_work, 0, Snapshot(data))
            return
        except CheckpointError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _states(spark: SparkSession, location: str) -> Iterator[tuple[int, bytes]]:
    """(number of buckets, a bucket's state) of each operator of ours that has one."""
    try:
        operators = spark.read.format("state-metadata").load(location).where(F.col("operatorName") == _OPERATOR)
        numbers = [row[0] for row in operators.select("operatorId").distinct().orderBy("operatorId").collect()]
        for number in numbers:
            state = _state(spark, location, number)
            if state is not None:
                yield int(state["buckets"]), bytes(state["data"])
    except (PySparkException, Py4JJavaError) as error:
        raise CheckpointError(
            f"{location}: Spark cannot read the states of this checkpoint: {error}. Give a new checkpointLocation: the "
            "query then begins with the source's first events"
        ) from error
    if not numbers:
        raise CheckpointError(
            f"{location} is the checkpoint of a streaming query without `match`. Give another checkpointLocation"
        )


def _state(spark: SparkSession, location: str, operator: int) -> Any:
    read = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", STATE)
    return read.load(location).select("value.data", "value.buckets").first()
