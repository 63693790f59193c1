"""One process or Spark: from the sources' size and the memory, told with the reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import choice, load
from oxiseq.kb_loader.choice import choose, unpacked
from oxiseq.kb_loader.java import SparkMissing
from oxiseq.kb_loader.sources import Source, find_sources


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    """Of 1,000 bytes plain and 100 packed: about 2,000; Spark is there."""
    (tmp_path / "a.nt").write_bytes(b"#" * 1_000)
    (tmp_path / "b.nt.gz").write_bytes(b"#" * 100)
    monkeypatch.setattr(choice, "spark_missing", lambda: None)
    return find_sources([tmp_path])


def test_packed_sources_count_unpacked(sources: list[Source]) -> None:
    assert unpacked(sources) == 2_000


def test_what_exceeds_half_of_the_memory_takes_spark(sources: list[Source], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "machine_memory", lambda: 4_000)
    assert choose("auto", sources).engine == "plain"
    monkeypatch.setattr(choice, "machine_memory", lambda: 3_998)
    taken = choose("auto", sources)
    assert taken.engine == "spark"
    assert "is more than" in taken.why and "half of the memory" in taken.why
    monkeypatch.setattr(choice, "spark_missing", lambda: "there is no Java")
    taken = choose("auto", sources)
    assert taken.engine == "plain"
    assert taken.why.endswith("Spark cannot be used: there is no Java")


def test_what_is_asked_holds_or_is_refused(sources: list[Source], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "machine_memory", lambda: 1)
    assert choose("plain", sources).engine == "plain"
    monkeypatch.setattr(choice, "machine_memory", lambda: 1 << 40)
    assert choose("spark", sources).engine == "spark"
    assert choose("auto", sources, "parts").engine == "spark"
    with pytest.raises(KbError, match="parts is Spark's"):
        choose("plain", sources, "parts")
    with pytest.raises(KbError, match="unknown engine"):
        choose("fast", sources)  # type: ignore[arg-type]
    monkeypatch.setattr(choice, "spark_missing", lambda: "there is no Java")
    with pytest.raises(SparkMissing, match="there is no Java"):
        choose("spark", sources)


def test_without_java_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.nt").write_text("<a:a> <a:b> <a:c> .\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkMissing):
        load(tmp_path / "a.nt", tmp_path / "kb", engine="spark")
    assert not (tmp_path / "kb").exists()


def test_the_plain_load_does_not_import_pyspark(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<a:a> <a:b> <a:c> .\n")
    code = "import sys; from oxiseq.kb_loader import load; load(*sys.argv[1:]); assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, tmp_path / "a.nt", tmp_path / "kb"], check=True)
