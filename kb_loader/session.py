"""A Spark session that keeps to itself: loopback only, quiet, all its files in one temporary folder.

pyspark is imported here and nowhere above: whoever imports this module uses Spark.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from oxiseq.kb_loader.java import SparkMissing, find_java
from oxiseq.kb_loader.temporary import new_temporary

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

_UI: Final = "OXISEQ_SPARK_UI"
_ADDRESS: Final = "SPARK_LOCAL_IP"
_LOGGING = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def spark_session(master: str = "local[*]", memory: str = "2g", *, ui: bool | None = None) -> SparkSession:
    """The session that is active, or a new one; end it with `stop_session`.

    `ui`: whether Spark's web UI shows jobs and stages while they run (default: unless OXISEQ_SPARK_UI is "off");
    `ui_address` says where. `memory` is the Java heap ("2g") of the driver, which a local master does all its work in,
    and of each executor of a cluster. With a local master it listens on the loopback address only; spilled data, logs
    and the warehouse are in a temporary folder (under TMPDIR) that goes away with the session. In a program that
    spark-submit runs, its settings hold and these do not. Raises SparkMissing.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.appName("oxiseq").getOrCreate()
    find_java()
    folder = new_temporary()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    conf = _conf(master, memory, folder, ui=_shows_ui(ui))
    try:
        with _listening_locally(master), (folder / "spark.log").open("wb") as log:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]  # it has none
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, OSError) as error:
        told = (folder / "spark.log").read_text(encoding="utf-8", errors="replace").strip()[-2_000:]
        raise SparkMissing(f"Spark does not start: {error}\n{told}".rstrip()) from error
    if master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # not the python3 that PATH has
    context.setLogLevel("ERROR")
    return SparkSession(context)


def stop_session(spark: SparkSession) -> None:
    """End the session and its Java process, so that a later one may have another master and other memory."""
    folder = spark.conf.get("spark.oxiseq.folder", None)
    spark.stop()
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:  # spark-submit's
        return
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    process.stdin.close()  # Java ends with it
    process.wait(60)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def ui_address(spark: SparkSession) -> str | None:
    """Where the session's web UI is; None without one."""
    return spark.sparkContext.uiWebUrl


def _shows_ui(wanted: bool | None) -> bool:
    return os.environ.get(_UI, "on").lower() not in ("off", "false", "0", "no") if wanted is None else wanted


@contextmanager
def _listening_locally(master: str) -> Iterator[None]:
    """Within it a Java process that is started with a local master has its web UI on the loopback address, too: Spark
    has no other setting for that."""
    if not master.startswith("local") or _ADDRESS in os.environ:
        yield
        return
    os.environ[_ADDRESS] = "127.0.0.1"
    try:
        yield
    finally:
        del os.environ[_ADDRESS]


def _conf(master: str, memory: str, folder: Path, *, ui: bool) -> SparkConf:
    (folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    logging = f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties"
    settings = {
        "spark.app.name": "oxiseq",
        "spark.master": master,
        "spark.ui.enabled": str(ui).lower(),
        "spark.port.maxRetries": "100",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.driver.extraJavaOptions": logging,
        "spark.oxiseq.folder": str(folder),
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))
