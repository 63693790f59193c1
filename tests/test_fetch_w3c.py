"""The script that fetches the W3C's suites takes what is wanted out of an archive, and nothing outside its folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from fetch_w3c import unpack


def packed(**files: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as writing:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            writing.addfile(member, io.BytesIO(text.encode()))
    return archive.getvalue()


def test_suites_are_unpacked_and_old_files_go(tmp_path: Path) -> None:
    target = tmp_path / "w3c"
    (target / "sparql11").mkdir(parents=True)
    (target / "sparql11" / "old").write_text("old")
    archive = packed(
        **{
            "rdf-tests-main/sparql/sparql11/bind/manifest.ttl": "a",
            "rdf-tests-main/rdf/rdf11/rdf-trig/x.trig": "b",
            "rdf-tests-main/README.md": "c",
            "rdf-tests-main/sparql/sparql11/../../../../out": "d",
        }
    )
    assert unpack(archive, target) == 2
    there = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert there == {"w3c/sparql11/bind/manifest.ttl", "w3c/rdf11/rdf-trig/x.trig"}


def test_an_archive_without_suites_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(ValueError, match="no suite"):
        unpack(packed(**{"other/README.md": "c"}), tmp_path)
    assert (tmp_path / "kept").exists()
