"""`oxiseq load --dry-run`: what a load will find, without a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oxiseq.cli.app import main
from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import load, plain, rehearse

ROW = '<http://e/{i}> <http://e/p> "{i}" .\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lines with a fault, Turtle, an empty file; what is temporary goes into tmp/."""
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "a.nt").write_text("".join(ROW.format(i=i) for i in range(1000)) + "no triple\n")
    (tmp_path / "dump" / "b.ttl").write_text("@prefix : <http://e/> . :b :p 1, 2 .")
    (tmp_path / "dump" / "c.nt").write_text("")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path


def cli(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["load", *map(str, arguments)])


def test_it_tells_what_the_load_then_tells_and_writes_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    found = rehearse(folder / "dump")
    assert sorted(folder.rglob("*")) == before
    report = load(folder / "dump", folder / "kb")
    assert found.whole and found.done == found.total
    assert (found.files, found.statements, found.quarantined) == (report.files, report.read, report.quarantined)
    assert (list(found.faults), list(found.without)) == (report.faults, report.without)
    assert found.expected_statements == 1002 and found.expected == found.seconds > 0


@pytest.mark.parametrize("ending", ["nt", "ttl", "csv"])
def test_what_does_not_end_in_time_is_reckoned_from_its_bytes(folder: Path, ending: str) -> None:
    rows = 60_000
    if ending == "csv":
        text = "i\n" + "".join(f"{i}\n" for i in range(rows))
    else:
        text = "".join(ROW.format(i=i) for i in range(rows))
    for copy in range(3):
        (folder / f"{copy}.{ending}").write_text(text)
    mapping = folder / "map.rq"
    mapping.write_text("CONSTRUCT { ?s <http://e/p> ?i } WHERE { BIND(IRI(CONCAT('http://e/', STR(?i))) AS ?s) }")
    found = rehearse(
        [folder / f"{copy}.{ending}" for copy in range(3)], seconds=0, mapping=mapping if ending == "csv" else None
    )
    assert not found.whole
    assert 0 < found.done < found.total and 0 < found.statements < 3 * rows
    assert found.expected > found.seconds
    assert 0.3 * rows < found.expected_statements < 30 * rows
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("fault", ["", "no triple\n"])
def test_blocks_that_threads_have_read_ahead_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(plain, "BIG_BLOCK", 1 << 16)  # blocks are read 64 KiB at a time
    rows = 40_000
    (folder / "a.nt").write_text(fault + "".join(ROW.format(i=i) for i in range(100_000, 100_000 + rows)))
    found = rehearse(folder / "a.nt", seconds=0)
    assert not found.whole and 0 < found.done < found.total
    assert 0.8 * rows < found.expected_statements < 1.2 * rows


def test_small_files_are_reckoned_by_their_bytes(folder: Path) -> None:
    for copy in range(4):
        (folder / f"{copy}.ttl").write_text("".join(ROW.format(i=i) for i in range(100)))
    found = rehearse([folder / f"{copy}.ttl" for copy in range(4)], seconds=0)
    assert (found.whole, found.statements, found.expected_statements) == (False, 100, 400)
    assert found.without == ()


def test_strict_raises_the_first_fault_and_leaves_nothing(folder: Path) -> None:
    with pytest.raises(KbError, match=r"a\.nt:1001: "):
        rehearse(folder / "dump", strict=True)
    assert list((folder / "tmp").iterdir()) == []


def test_the_command_tells_it(folder: Path) -> None:
    result = cli(folder / "dump", "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("3 files · 1,002 statements · 1 bad · ")
    assert f"bad: {folder / 'dump' / 'a.nt'}:1001: " in result.stdout
    assert f"no statement came of {folder / 'dump' / 'c.nt'}" in result.stdout
    assert "a load takes one process" in result.stdout


@pytest.mark.parametrize("more", ["--append", "--engine spark", "--restart", "--batch b", "--parts p"])
def test_what_only_a_load_does_is_refused(folder: Path, more: str) -> None:
    result = cli(folder / "dump", "--dry-run", *more.split())
    assert result.exit_code == 1
    assert more.split(maxsplit=1)[0] in result.stderr and "cannot go with --dry-run" in result.stderr


def test_a_load_needs_a_location(folder: Path) -> None:
    result = cli(folder / "dump")
    assert result.exit_code == 2
    assert "Missing option '--location'" in result.stderr


def test_sources_that_are_not_there(folder: Path) -> None:
    with pytest.raises(KbError):
        rehearse(folder / "nowhere.nt")
