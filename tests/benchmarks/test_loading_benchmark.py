"""The measurement of loads, at a tiny size."""

from __future__ import annotations

import pytest

from benchmarks.loading import main


def test_the_table_has_a_row_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plain", "--triples", "1000", "--unusual", "none,fault,blank"])
    rows = capsys.readouterr().out.splitlines()[-3:]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| plain", "1,000", "none"],
        ["| plain", "999", "fault"],
        ["| plain", "1,000", "blank"],
    ]
    assert all("counting" in row for row in rows)
