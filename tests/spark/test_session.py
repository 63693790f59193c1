"""The session keeps to itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is but one process")
def test_tests_of_spark_share_a_worker(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@spark")


def test_the_active_session_is_taken_and_python_functions_run_in_this_python(spark: SparkSession) -> None:
    from oxiseq.kb_loader.session import spark_session  # noqa: PLC0415  pyspark may not be there

    assert spark_session("local[7]") is spark

    def programs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"program": [sys.executable]})

    rows = spark.range(0, 2, 1, 2).mapInArrow(programs, "program string").collect()
    assert {row["program"] for row in rows} == {sys.executable}


def test_it_listens_on_loopback_and_writes_into_its_own_folder(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert (conf.get("spark.driver.host"), conf.get("spark.driver.bindAddress")) == ("127.0.0.1", "127.0.0.1")
    assert conf.get("spark.ui.enabled") == "false"
    folder = conf.get("spark.local.dir")
    assert folder is not None and Path(folder).is_dir()
    assert str(conf.get("spark.sql.warehouse.dir")).removeprefix("file:").startswith(folder)
