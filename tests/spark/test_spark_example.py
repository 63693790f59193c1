"""The example of streams on Spark: what was planted is found, the broken rows are left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from example_loading import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_the_planted_v_is_found(spark: SparkSession) -> None:
    arranged, rows = load("13-spark").main()
    assert (arranged.events, arranged.bad) == (1200, 2)
    found = {(*row[:3], *row[4:]) for row in rows}  # each quote before the fall begins one
    assert found == {("09:01:44", "http://example.org/co2", "paper", "80", "120")}
