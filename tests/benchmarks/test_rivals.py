"""What stands beside oxiseq in other cases: SPARQL over a KB, another process, the command's options."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import flink, knowledge
from benchmarks.__main__ import main
from benchmarks.flink import FlinkJob
from benchmarks.measure import Clocked, measure
from benchmarks.report import Size

ANSWERING = "import sys\nfor line in sys.stdin: print('{}', flush=True)\n"


def test_sparql_finds_what_oxiseq_finds_with_a_kb() -> None:
    for case in knowledge.prepare(8_000, Size(2_060, 1, (8_000,), 200, 1_000, 1_000)):
        case.check()
        assert case.few == 50 and case.asking().answer


def test_a_task_may_bring_its_own_seconds() -> None:
    measured = measure({"a": lambda: Clocked(5, 1.25)}, 3)["a"]
    assert measured.seconds == (1.25,) * 3 and measured.answer == 5


def test_flink_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with FlinkJob(sys.executable, tmp_path / "log") as job, pytest.raises(ChildProcessError, match="pyflink"):
        job.matches(tmp_path / "none.csv", 10)


def test_flink_with_other_matches_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.dumps({"matches": -1, "wall": 1.0, "cpu": 2.0})
    script = tmp_path / "flink_job.py"
    script.write_text(ANSWERING.format(answer), encoding="utf-8")
    monkeypatch.setattr(flink, "__file__", str(tmp_path / "flink.py"))
    with pytest.raises(AssertionError, match="-1 by Flink"):
        flink.run(Size(3_000, 1, (), 0, 1_000, 0), sys.executable)


def test_flink_is_left_out_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--only", "flink"]) == 0
    assert "flink is left out" in capsys.readouterr().err
