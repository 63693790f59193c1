"""The measurement of loads, at a tiny size."""

from __future__ import annotations

import pytest

from benchmarks.loading import main


def test_the_table_has_a_row_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plain", "--triples", "1000"])
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith("| plain | 1,000 | ")
    assert "counting" in row
