"""A standalone cluster of two workers, one of which is killed while a streaming query runs: the sink holds every match
once. docs/cluster.md says the same for people.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

import pyspark
from test_spark_kills import in_sink, wait_for_a_batch, wanted, write_events

FILES = 6
SPARK = Path(pyspark.__file__).parent
ADDRESS = re.compile(r"spark://127\.0\.0\.1:[0-9]+")


@contextmanager
def started(folder: Path, name: str, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a process group of its own, its log in `folder`/`name`.log."""
    options = {
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / name),
        "PYSPARK_PYTHON": sys.executable,
        "TMPDIR": str(folder),
    }
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **options}, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def waited_for(folder: Path, name: str, pattern: str) -> str:
    """What a log has that matches."""
    deadline = time.monotonic() + 900
    while (found := re.search(pattern, (folder / f"{name}.log").read_text(errors="replace"))) is None:
        assert time.monotonic() < deadline, (folder / f"{name}.log").read_text(errors="replace")[-2_000:]
        time.sleep(0.2)
    return found[0]


@pytest.mark.full
@pytest.mark.slow
def test_a_worker_is_killed(tmp_path: Path) -> None:
    write_events(tmp_path / "in", random.Random(7), FILES)
    spark_class = [str(SPARK / "bin" / "spark-class")]
    of = "org.apache.spark.deploy"
    with ExitStack() as cluster:
        command = [*spark_class, f"{of}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        cluster.enter_context(started(tmp_path, "master", command))
        address = waited_for(tmp_path, "master", ADDRESS.pattern)
        workers = []
        for name in ("one", "two"):
            command = [*spark_class, f"{of}.worker.Worker", "-c", "1", "-m", "1g", "--webui-port", "0", address]
            workers.append(cluster.enter_context(started(tmp_path, name, command)))
        for name in ("one", "two"):
            waited_for(tmp_path, name, "Successfully registered with master")
        program = str(Path(__file__).with_name("killed_query.py"))
        with started(tmp_path, "query", [sys.executable, "-W", "ignore", program, str(tmp_path), address]) as query:
            wait_for_a_batch(tmp_path, query)
            kill(workers[0])
            assert query.wait(900) == 0, (tmp_path / "query.log").read_text()[-2_000:]
    assert in_sink(tmp_path) == wanted(tmp_path)
