"""The session keeps to itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from oxiseq.engine.kernels import archive
from oxiseq.engine.kernels.signatures import kernel_of, names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LISTENS = "0A"
"""In the list of sockets."""


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


def test_the_daemon_hands_its_workers_the_engine_with_kernels_that_it_has_not_compiled(spark: SparkSession) -> None:
    """conftest.py asks for the daemon."""

    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = "oxiseq.spark.steps" in sys.modules
        counts = [kernel_of(name)[0].stats for name in names()]
        found, compiled = (sum(bool(getattr(each, kind)) for each in counts) for kind in ("cache_hits", "cache_misses"))
        for _ in batches:
            yield pa.RecordBatch.from_pydict(
                {"read": [read], "archive": [archive.shipped() is not None], "found": [found], "compiled": [compiled]}
            )

    types = "read boolean, archive boolean, found long, compiled long"
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(loaded, types).collect()
    assert row["read"] and row["found"] > 10 and row["compiled"] == 0
    assert row["archive"] is (archive.shipped() is not None)


def test_it_listens_on_loopback_and_writes_into_its_own_folder(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert (conf.get("spark.driver.host"), conf.get("spark.driver.bindAddress")) == ("127.0.0.1", "127.0.0.1")
    folder = conf.get("spark.local.dir")
    assert folder is not None and Path(folder).is_dir()
    assert str(conf.get("spark.sql.warehouse.dir")).removeprefix("file:").startswith(folder)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the list of sockets is Linux's")
def test_its_web_ui_is_on_and_listens_on_loopback(spark: SparkSession) -> None:
    from oxiseq.kb_loader.session import ui_address  # noqa: PLC0415  pyspark may not be there

    address = ui_address(spark)
    assert address is not None
    port = f"{int(address.rpartition(':')[2]):04X}"
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    bound = {row[1].rpartition(":")[0] for row in rows if row[3] == LISTENS and row[1].endswith(f":{port}")}
    assert bound and bound <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_its_web_ui_is_off_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from oxiseq.kb_loader import session  # noqa: PLC0415  pyspark may not be there

    assert session._conf("local[1]", "1g", tmp_path, ui=False).get("spark.ui.enabled") == "false"
    for said, shown in ((None, True), ("off", False), ("0", False), ("on", True)):
        if said is None:
            monkeypatch.delenv("OXISEQ_SPARK_UI", raising=False)
        else:
            monkeypatch.setenv("OXISEQ_SPARK_UI", said)
        assert session._shows_ui(None) == shown
        assert not session._shows_ui(False)
