"""One Spark session for all tests of this folder, in one worker. Without Java they are left out, with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oxiseq.kb_loader.java import spark_missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = f"{Path(__file__).parent}{os.sep}"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java that is soon up, for work that is soon done."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))


SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Java is not compiled for, and plans are not made again, for a few rows."""
DAEMON = "spark.python.daemon.module oxiseq.spark.daemon\n"
"""Workers need not read the engine."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[2]; what uses Spark finds it as the active session."""
    missing = spark_missing()
    if missing is not None:
        pytest.skip(missing)
    from oxiseq.kb_loader.session import spark_session, stop_session  # noqa: PLC0415  pyspark may not be there

    conf = tmp_path_factory.mktemp("conf")
    (conf / "spark-defaults.conf").write_text(DAEMON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", QUICK_START)
        with pytest.MonkeyPatch.context() as starting:  # not for programs that tests start, and kill
            starting.setenv("SPARK_CONF_DIR", str(conf))
            session = spark_session("local[2]", "1g")
        for name, value in SMALL.items():
            session.conf.set(name, value)
        yield session
        stop_session(session)
