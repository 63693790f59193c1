"""`oxiseq translate`."""

from __future__ import annotations

from pathlib import Path

from cli_files import oxiseq, write


def test_the_text_is_a_query_of_the_other_language(tmp_path: Path) -> None:
    file = write(tmp_path, "ab.ceql", "VOCAB <http://e/> SELECT * FROM S WHERE A; B WITHIN 5 SECONDS")
    shown = oxiseq("translate", file, "--to", "spaseq")
    assert shown.exit_code == 0
    assert "SEQ(A : B)" in shown.stdout
    assert oxiseq("check", write(tmp_path, "ab.spaseq", shown.stdout)).exit_code == 0


def test_what_cannot_be_said_is_shown(tmp_path: Path) -> None:
    file = write(tmp_path, "ab.ceql", "VOCAB <http://e/> SELECT *\nFROM S WHERE A; B\nWITHIN 5 [t]")
    refused = oxiseq("translate", file, "--to", "spaseq")
    assert refused.exit_code == 1
    assert "line 3, column 1" in refused.stderr
    assert "^^^^^" in refused.stderr
