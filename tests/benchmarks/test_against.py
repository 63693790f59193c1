"""`benchmarks.against` finds the figures in what benchmarks print, and matches them by what the rows say."""

from __future__ import annotations

import pytest

from benchmarks.against import figures, table

PRINTED = """AMD; 2 cores; Python 3.11.7

| query | B's | rows | ms | ratio |
|---|---:|---:|---:|---:|
| list | 16 | 65,535 | 12.50 | 3.1 |

S12     1 rows    19.80 µs a row, NumPy   7.323:   2.7 times

| | | ns per event | events/s |
|---|---|---:|---:|
| oxiseq | N-Quads | **1,200** | 800,000 |
"""


def test_figures_are_what_has_a_unit() -> None:
    assert figures(PRINTED) == {
        "list, 16, 65,535: ms": pytest.approx(0.0125),
        "S12 1 rows a row, NumPy :": pytest.approx(19.8e-6),
        "oxiseq, N-Quads: ns per event": pytest.approx(1.2e-6),
        "oxiseq, N-Quads: events/s": pytest.approx(1.25e-6),
    }


def test_rows_whose_answers_differ_are_not_compared() -> None:
    changed = PRINTED.replace("12.50", "25.0").replace("19.80", "9.90")
    rows = list(table(figures(PRINTED), figures(changed), ("old", "new")))
    assert [row.split(" | ")[-1] for row in rows[2:]] == ["2.00 |", "0.50 |", "1.00 |", "1.00 |"]
    other = list(table(figures(PRINTED), figures(PRINTED.replace("65,535", "65,534")), ("old", "new")))
    assert "\nonly at old: list, 16, 65,535: ms" in other and "\nonly at new: list, 16, 65,534: ms" in other
