"""The example of a load on Spark."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).parents[2] / "examples" / "10-big-kb" / "on_spark.py"


def test_only_the_machine_matches(spark: SparkSession) -> None:
    spec = spec_from_file_location("on_spark", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    report, lines, matches = module.main()
    assert (report.engine, report.stored, report.quarantined) == ("spark", 9, 1)
    assert lines == sorted(lines)
    assert [(match["device"].value[-2:], match["hall"].value) for match in matches] == [("m1", "North")]
