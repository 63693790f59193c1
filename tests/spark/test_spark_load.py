"""The load on Spark gives the store, the quarantine and the report that the load in one process gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_files import contents, quarantine, write_all

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import LoadReport, load, open_kb
from oxiseq.kb_loader.spark import pieces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def counts(report: LoadReport) -> dict[str, object]:
    return {name: getattr(report, name) for name in
            ("files", "read", "stored", "duplicates", "quarantined", "faults", "inferred", "statistics")}  # fmt: skip


@pytest.mark.parametrize(("reasoning", "graph", "skolemise"), [("rdfs", None, False), (None, "http://e.org/all", True)])
def test_dirty_sources_give_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    reasoning: str | None, graph: str | None, skolemise: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(pieces.tasks, "__defaults__", (5_000,))  # several pieces of a file
    given = write_all(tmp_path / "in")
    reports = {
        engine: load(given, tmp_path / engine, engine=engine, reasoning=reasoning, mapping=given / "mapping.rq",
                     graph=graph, skolemise=skolemise)
        for engine in ("plain", "spark")
    }  # fmt: skip
    assert counts(reports["spark"]) == counts(reports["plain"])
    assert reports["plain"].quarantined > 20
    assert reports["plain"].duplicates > 100
    assert contents(open_kb(tmp_path / "spark")) == contents(open_kb(tmp_path / "plain"))
    assert quarantine(tmp_path / "spark.quarantine") == quarantine(tmp_path / "plain.quarantine")
    assert not (tmp_path / "spark.parts").exists()
