"""The example of streams on Spark and its notebook: what was planted is found, the broken rows are left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from example_loading import EXAMPLES, cells_run, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.full
@pytest.mark.slow
def test_the_planted_v_is_found(spark: SparkSession) -> None:
    from slow_starts import started  # noqa: PLC0415  pyspark may not be there

    arranged, rows = started(load("13-spark").main)
    assert (arranged.events, arranged.bad) == (1200, 2)
    found = {(*row[:3], *row[4:]) for row in rows}  # each quote before the fall begins one
    assert found == {("09:01:44", "http://example.org/co2", "paper", "80", "120")}


@pytest.mark.full
def test_the_notebook_plots_the_planted_v(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(EXAMPLES / "13-spark")
    monkeypatch.syspath_prepend(".")
    logs, _, partitioned, (types, table), (_, figure) = cells_run(EXAMPLES / "13-spark" / "spark.ipynb")
    assert logs[0].startswith("time,name,price\n") and partitioned[0] == "partitioned by ?company\n"
    assert "p1: double" in types and "sector: string" in types
    assert {(row.company, row.sector, row.p2, row.p3) for row in table.itertuples()} == {
        ("http://example.org/co2", "paper", 80.0, 120.0)
    }
    (axes,) = figure.axes
    assert len(axes.lines) == 1 + len(table)
    assert all(list(line.get_ydata())[1:] == [80.0, 120.0] for line in axes.lines[1:])
