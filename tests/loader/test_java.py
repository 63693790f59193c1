"""Java is found, or it is said what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxiseq.kb_loader.java import Java, SparkMissing, find_java


def program(folder: Path, says: str) -> Path:
    """A `java` that says its version as the real one does, on stderr."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    return java


def test_java_home_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = program(tmp_path / "home", 'openjdk version "21.0.2" 2024-01-16\nOpenJDK Runtime Environment')
    path = program(tmp_path / "path", 'openjdk version "17" 2021-09-14')
    monkeypatch.setenv("PATH", f"{path.parent}:/bin:/usr/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == Java(home, 21)
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == Java(path, 17)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ('java version "1.8.0_352"', "is Java 8"),
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11"),
        ("hello", "does not say a version"),
    ],
)
def test_an_old_or_odd_java_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, told: str
) -> None:
    program(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkMissing, match=rf"{told}.*openjdk-17-jre-headless.*JAVA_HOME"):
        find_java()


def test_no_java_is_told_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkMissing, match=r"no Java: JAVA_HOME is not set.*openjdk-17-jre-headless"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(SparkMissing, match=r"gone, which holds no bin/java.*openjdk-17-jre-headless"):
        find_java()
