"""Checkpoints of Spark that commit 666c5b34 has written go on, or say that they cannot and what to do, as
docs/upgrading.md promises: Spark keeps no log from which a state could be made again.

`tests/baseline/spark-666c5b34.tar.xz` is made by checkpoint_steps.py, run with that commit.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from checkpoint_steps import PLACE, QUERIES, E, events, move, work_through, write
from profiles import in_the_gate

import oxiseq
from oxiseq.kb_loader.java import spark_missing

if spark_missing() is not None:
    pytest.skip(spark_missing() or "", allow_module_level=True)

from oxiseq.spark import EventSource, match
from oxiseq.spark.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURE = Path(__file__).parents[1] / "baseline" / "spark-666c5b34.tar.xz"
REFUSED = frozenset(QUERIES)
"""Whose states have another form since."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    with tarfile.open(FIXTURE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since 3.11.4
        archive.extractall(folder)
    move(folder, PLACE, str(folder))
    write(folder, 1)
    return folder


def expected(name: str) -> list[tuple[Any, ...]]:
    """By one engine over both halves, as far as the last event's time."""
    language, text, names = QUERIES[name]
    given = events(0) + events(1)
    found = oxiseq.run(text, {f"{E}S" if names else "S": given}, language=language, end="open")  # type: ignore[call-overload]
    if names:
        return sorted((m.at_us, *(m[v].value for v in names)) for m in found)
    return sorted((m.at_us, *(" ".join(str(at) for _, at in m.events[v]) for v in "xy")) for m in found)


@pytest.mark.parametrize("name", in_the_gate({"sequence", "complex"}, QUERIES))
def test_goes_on_or_says_that_it_cannot(spark: SparkSession, made: Path, name: str) -> None:
    before = [tuple(row) for row in json.loads((made / "found.json").read_text())[name]]
    if name in REFUSED:
        spark.dataSource.register(EventSource)
        stream = spark.readStream.format("oxiseq").load(str(made / "in"))
        language, text, names = QUERIES[name]
        streams = {f"{E}S" if names else "S": stream}
        with pytest.raises(CheckpointError, match=r"cannot go on with this query: .*give a new checkpointLocation"):
            match(spark, text, streams, buckets=2, language=language, checkpoint=made / name)  # type: ignore[arg-type]
    else:
        assert sorted(before + work_through(spark, made, name)) == expected(name)
