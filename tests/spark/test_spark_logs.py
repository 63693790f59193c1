"""`oxiseq import` in Spark's tasks writes the folder that one process writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import pack_events
from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import arrange
from oxiseq.logs.reading import Meaning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPING = """CONSTRUCT { ?house <http://e/watts> ?watts ; <http://e/near> [ <http://e/name> ?name ] }
WHERE { BIND(IRI(CONCAT("http://e/", ?name)) AS ?house) }"""


def write_logs(folder: Path) -> None:
    """Three files of three days, each with a row without time."""
    folder.mkdir()
    for number in range(3):
        rows = [
            f"2026-11-{day}T{(7 * i + number) % 9:02}:00:{i:02}Z,h{i % 4},{i}"
            for day in (20, 21, 22)
            for i in range(30)
        ]
        (folder / f"{number}.csv").write_text("\n".join(["time,name,watts", *rows, ",ann,1"]) + "\n")


def written(folder: Path) -> dict[str, bytes]:
    """Of each file its events, as bytes that equal events give."""
    found = {}
    for file in sorted(folder.iterdir()):
        terms = TermDictionary()
        found[file.name] = b"".join(pack_events(batch, terms) for batch in open_events(file, terms))
    return found


@pytest.mark.slow
def test_spark_writes_what_one_process_writes(spark: SparkSession, tmp_path: Path) -> None:
    write_logs(tmp_path / "logs")
    (tmp_path / "logs" / "rowless.csv").write_text("time,name,watts\n")
    meaning = Meaning(mapping=Mapping(MAPPING))
    plain = arrange(tmp_path / "logs", tmp_path / "plain", meaning=meaning)
    shared = arrange(tmp_path / "logs", tmp_path / "spark", meaning=meaning, engine="spark")
    assert (shared.events, shared.files, shared.late, shared.bad) == (plain.events, plain.files, plain.late, plain.bad)
    assert (plain.events, plain.bad) == (270, 3)
    assert shared.without == plain.without == (tmp_path / "logs" / "rowless.csv",)
    assert written(tmp_path / "spark") == written(tmp_path / "plain")
    assert plain.files > 24
