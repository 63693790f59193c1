"""Interrupted loads: the store says so, and loading again starts over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyoxigraph import Store

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.errors import KbError
from oxiseq.kb_loader import load, open_kb
from oxiseq.kb_loader.marker import MARKER

KILLED = """
import os, signal, sys
from oxiseq.kb_loader import load
def watch(at):
    if at.step == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
load(sys.argv[1], sys.argv[2], watch=watch)
"""


def sources(folder: Path) -> Path:
    (folder / "in").mkdir()
    for name in ("a", "b"):
        lines = (f"<http://example.org/{name}{i}> <http://example.org/p> _:x{i} .\n" for i in range(3_000))
        (folder / "in" / f"{name}.nt").write_text("".join(lines))
    return folder / "in"


@pytest.mark.parametrize("step", ["loading", "counting"])
def test_a_killed_load_is_refused_then_started_over(tmp_path: Path, step: str) -> None:
    given, kb = sources(tmp_path), tmp_path / "kb"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(given), str(kb), step], env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (kb / MARKER).exists()
    with pytest.raises(KbError, match="half loaded"):
        open_kb(kb)
    with pytest.raises(KbError, match="half loaded"):
        oxiseq.Store(str(kb))
    (kb / "bulk-746624820214573913745801866394292101.sst").write_bytes(b"")  # as a kill within a bulk load leaves it
    text = "SELECT ?x WITHIN 1 HOUR FROM STREAM S <http://e.org/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x ?y ?z } }"
    with pytest.raises(KbError, match="half loaded"):
        oxiseq.run(text, streams={}, kb=kb)
    assert load(given, kb).stored == 6_000
    again = tmp_path / "again"
    load(given, again)
    assert {str(q) for q in open_kb(kb) if "oxiseq" not in str(q)} == {
        str(q) for q in open_kb(again) if "oxiseq" not in str(q)
    }


def test_a_whole_store_is_replaced_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<a:a> <a:b> <a:c> .\n")
    (tmp_path / "b.nt").write_text("<a:d> <a:e> <a:f> .\n")
    load(tmp_path / "a.nt", tmp_path / "kb")
    with pytest.raises(KbError, match="--restart"):
        load(tmp_path / "b.nt", tmp_path / "kb")
    load(tmp_path / "b.nt", tmp_path / "kb", restart=True)
    assert "a:a" not in {getattr(q.subject, "value", "") for q in open_kb(tmp_path / "kb")}


def test_other_peoples_files_are_not_touched(tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    kb.mkdir()
    (kb / "a.nt").write_text("<a:a> <a:b> <a:c> .\n")
    (tmp_path / "b.nt").write_text("<a:a> <a:b> <a:c> .\n")
    with pytest.raises(KbError, match=r"a\.nt, which is not a store's"):
        load(tmp_path / "b.nt", kb, restart=True)
    with pytest.raises(KbError, match=r"a\.nt: is in .*/kb, which will be written to"):
        load(kb / "a.nt", kb, restart=True)
    assert (kb / "a.nt").exists()


def test_a_store_in_use_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<a:a> <a:b> <a:c> .\n")
    load(tmp_path / "a.nt", tmp_path / "kb")
    held = Store(str(tmp_path / "kb"))
    with pytest.raises(KbError, match="another process has the store open"):
        load(tmp_path / "a.nt", tmp_path / "kb", restart=True)
    assert len(held) > 0


def test_the_command_says_that_a_store_is_left_half_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("oops\n")
    arguments = ["load", str(tmp_path / "a.nt"), "--location", str(tmp_path / "kb"), "--strict"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "kb is half loaded now: loading again starts over" in result.stderr
    assert CliRunner().invoke(main, arguments[:-1]).exit_code == 0
