"""Each name of a chart is one file; charts of one title are one panel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from benchmarks.charts import FLINK, OXISEQ, TEXTBOOK, Chart, Histogram, Line, Point
from benchmarks.pictures import draw_all
from benchmarks.report import Result

LINES = (
    Line(OXISEQ, "few", (Point(10, 1e6), Point(100, 9e5))),
    Line(TEXTBOOK, "few", (Point(10, 1e5), Point(100, 1e3, whole=False))),
)


def test_pictures_are_small_files_with_their_labels(tmp_path: Path) -> None:
    times = np.random.default_rng(1).lognormal(3, 1, 1_000)
    results = [
        Result("a", "A", "", (), (), (Chart("window", "One `;`", "window (s)", LINES),)),
        Result("b", "B", "", (), (), (Histogram("push", "Pushes", {OXISEQ: times, TEXTBOOK: 3 * times}),)),
        Result(
            "c",
            "C",
            "",
            (),
            (),
            (Chart("window", "One `;`", "window (s)", (LINES[0], Line(FLINK, "few", (Point(10, 1e4),)))),),
        ),
    ]
    files = draw_all(results, tmp_path / "new")
    assert [file.name for file in files] == ["push.svg", "window.svg"]
    push, window = (file.read_text(encoding="utf-8") for file in files)
    assert max(len(push), len(window)) < 100_000
    for text in (OXISEQ, TEXTBOOK, FLINK, "window (s)", "events per second", "stopped early", "One “;”"):
        assert text in window
    assert window.count("window (s)") == window.count("stopped early") == 1
    assert "CPU time of a push" in push and "median" in push


def test_the_same_results_are_the_same_file(tmp_path: Path) -> None:
    result = Result("a", "A", "", (), (), (Chart("window", "One", "window (s)", LINES),))
    (first,), (second,) = draw_all([result], tmp_path / "a"), draw_all([result], tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
