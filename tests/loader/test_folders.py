"""What a load writes to is never taken for a source, and what is not a load's own is never taken away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad

from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import STATISTICS, load, open_kb
from oxiseq.kb_loader.sources import PARTS, find_sources
from oxiseq.kb_loader.spark.pieces import tasks
from oxiseq.kb_loader.staging import check_staging, new_staging, remove_left
from oxiseq.kb_loader.temporary import new_temporary

LINE = "<a:a> <a:b> <a:c> .\n"


def test_a_folder_with_its_own_store_in_it_can_be_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINE + "oops\n")
    for restart in (False, True):
        report = load(tmp_path, tmp_path / "kb", restart=restart)
        assert (report.files, report.stored, report.quarantined) == (1, 1, 1)
    assert load(str(tmp_path / "**"), tmp_path / "kb", restart=True).files == 1
    with pytest.raises(KbError, match=r"kb\.quarantine.* is in .*, which will be written to"):
        load(next((tmp_path / "kb.quarantine").iterdir()), tmp_path / "kb", restart=True)


def test_refusing_a_load_leaves_the_last_ones_quarantine(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINE + "oops\n")
    load(tmp_path / "a.nt", tmp_path / "kb")
    with pytest.raises(KbError, match="--restart"):
        load(tmp_path / "a.nt", tmp_path / "kb")
    assert len(list((tmp_path / "kb.quarantine").iterdir())) == 1


def test_other_peoples_files_are_not_a_quarantine(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINE)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "rows.jsonl").write_text("{}\n")
    for folder in ("tables", "a.nt"):
        with pytest.raises(KbError, match="is not a quarantine's"):
            load(tmp_path / "a.nt", tmp_path / "kb", quarantine=tmp_path / folder)
    assert (tmp_path / "tables" / "rows.jsonl").exists()
    for option in ("quarantine", "parts"):
        place = tmp_path / "kb" / "x"
        with pytest.raises(KbError, match=rf"kb/x: is in the store's folder: .* for the {option}"):
            if option == "parts":
                pytest.importorskip("pyspark")
                load(tmp_path / "a.nt", tmp_path / "kb", engine="spark", parts=place)
            else:
                load(tmp_path / "a.nt", tmp_path / "kb", quarantine=place)
    assert not (tmp_path / "kb").exists()


def test_what_cannot_be_is_told_before_a_whole_store_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINE)
    load(tmp_path / "a.nt", tmp_path / "kb")
    with pytest.raises(KbError, match="'no iri' is no IRI"):
        load(tmp_path / "a.nt", tmp_path / "kb", graph="no iri", restart=True)
    with pytest.raises(KbError, match="is not a quarantine's"):
        load(tmp_path / "a.nt", tmp_path / "kb", quarantine=tmp_path, restart=True)
    (tmp_path / "b.nt").mkdir()
    with pytest.raises(KbError, match="holds no RDF file"):
        load(tmp_path / "b.nt", tmp_path / "kb", restart=True)
    assert len(open_kb(tmp_path / "kb")) > 1


def test_a_byte_order_mark_is_no_part_of_the_first_statement(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(b"\xef\xbb\xbf" + LINE.encode())
    (tmp_path / "b.ttl").write_bytes(b"\xef\xbb\xbf@prefix b: <b:> . b:a b:b b:c .")
    (tmp_path / "c.nt").write_bytes(b"\xef\xbb\xbf")
    packed = [tmp_path / f"d.nt.{packing}" for packing in ("bz2", "gz", "xz", "zst")]
    for file in packed:
        file.write_bytes(b"\xef\xbb\xbf, not packed")
    report = load(tmp_path, tmp_path / "kb")
    assert (report.stored, [fault.split(": ", 1)[0] for fault in report.faults]) == (2, [str(file) for file in packed])
    subjects = {q.subject for q in open_kb(tmp_path / "kb") if isinstance(q, Quad) and q.graph_name != STATISTICS}
    assert subjects == {NamedNode("a:a"), NamedNode("b:a")}


def test_parts_that_a_killed_load_has_left_are_taken_away_unless_kept(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINE)
    for keep in (False, True):
        parts = new_staging(tmp_path / "kb.parts", keep=keep)
        (parts / "data").mkdir()
        (parts / "data" / "part-0.nq").write_text(LINE)
        assert load(tmp_path, tmp_path / "kb", restart=True, engine="plain").files == 1
        assert parts.exists() == keep
    with pytest.raises(KbError, match=r"holds the parts of a load; what can be loaded of them is .*coded"):
        load(parts, tmp_path / "again")
    other = tmp_path / "other"
    (other / "data").mkdir(parents=True)
    remove_left(other)
    with pytest.raises(KbError, match="holds data, which no load wrote"):
        check_staging(other)


def test_emptying_parts_may_be_interrupted_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = new_staging(tmp_path / "parts")
    for name in ("data", "inferred", "stop"):
        (parts / name).mkdir()

    def killed(path: Path) -> None:
        Path(path).rmdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                new_staging(tmp_path / "parts")
            check_staging(parts)
    assert [entry.name for entry in new_staging(tmp_path / "parts").iterdir()] == [PARTS]


def test_a_killed_process_temporary_folder_goes_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os; from oxiseq.kb_loader.temporary import new_temporary; print(new_temporary()); os.abort()"
    told = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    left = Path((told.stdout or "").strip() or next(tmp_path.iterdir()))
    assert left.parent == tmp_path
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "oxiseq-spark-made").mkdir()  # another process is about to lock it
    mine = new_temporary()
    other = new_temporary()
    assert not left.exists()
    assert mine.exists() and other.exists() and (tmp_path / "oxiseq-spark-made").exists()


def test_empty_files_are_tasks_too(tmp_path: Path) -> None:
    for name in ("a.nt.gz", "b.ttl", "c.nt"):
        (tmp_path / name).write_bytes(b"")
    assert [piece.source for task in tasks(find_sources([tmp_path])) for piece in task] == [0, 1]
