"""`benchmarks.against` finds the figures in what benchmarks print, and matches them by what the rows say."""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import calibrated
from benchmarks.against import Case, figures, interval, row_of, table
from benchmarks.calibrated import Clock

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


def test_tables_with_the_same_rows_have_titles_and_rates_may_have_no_unit() -> None:
    table = "| query | rows | new | again |\n|---|---:|---:|---:|\n| Q1 | 3 | 2,000 | |\n"
    found = figures(f"## Sliding\n\n{table}\n## Tumbling\n\n{table.replace('2,000', '4,000')}", ["new"])
    assert found == {"Q1, 3: new": pytest.approx(1 / 2000), "Tumbling, Q1, 3: new": pytest.approx(1 / 4000)}
    assert figures(table) == {}


def test_rows_whose_answers_differ_are_not_compared() -> None:
    case = Case(["counted"])
    case.add(figures(PRINTED), figures(PRINTED.replace("12.50", "25.0").replace("19.80", "9.90")))
    rows = list(table(case.rows(), ("old", "new")))[2:]
    assert [row.split(" | ")[3] for row in rows] == ["2.00", "0.50", "1.00", "1.00"]
    other = Case(["counted"])
    other.add(figures(PRINTED), figures(PRINTED.replace("65,535", "65,534")))
    assert other.alone(False) == ["list, 16, 65,535: ms"] and other.alone(True) == ["list, 16, 65,534: ms"]


def test_a_ratio_is_of_two_runs_in_a_row() -> None:
    """The machine becomes twice as slow; the figures' medians would say 1.0 or 4.0, the rounds all say 2."""
    row = row_of("x", [1.0, 1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 2.0, 4.0, 4.0])
    assert (row.ratio, row.low, row.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(("rounds", "cut"), [(1, 0), (4, 0), (7, 0), (8, 1), (12, 2), (20, 5)])
def test_an_interval_leaves_out_what_nine_of_ten_do_not_need(rounds: int, cut: int) -> None:
    low, high = interval([float(x) for x in reversed(range(rounds))])
    assert (low, high) == (cut, rounds - 1 - cut)


@pytest.mark.parametrize("rounds", [5, 8, 15])
def test_an_interval_holds_the_median_in_nine_of_ten(rounds: int) -> None:
    drawn = random.Random(1)
    held = 0
    for _ in range(5_000):
        low, high = interval([drawn.expovariate(1.0) for _ in range(rounds)])
        held += low <= math.log(2) <= high
    assert held > 4_500


def decided(ratios: list[float], **options: float) -> bool:
    case = Case(["counted"])
    for ratio in ratios:
        case.add({"x": 1.0}, {"x": ratio})
    return case.is_decided(argparse.Namespace(**{"at_most": None, "narrow": 0.05} | options))


def test_rounds_go_on_until_an_interval_is_narrow() -> None:
    assert decided([1.0, 1.04, 1.08, 1.02, 1.06])
    assert not decided([1.0, 1.04, 1.28, 1.02, 1.06])


def test_rounds_go_on_only_while_the_limit_is_within_an_interval() -> None:
    assert decided([1.2, 1.6, 1.4, 1.3, 1.5], at_most=1.1)
    assert decided([0.5, 0.9, 0.7, 1.0, 0.8], at_most=1.1)
    assert not decided([0.9, 1.3, 1.1, 1.0, 1.2], at_most=1.1)


class Machine:
    """A processor: `work` seconds of a fast one take `slow` times as long."""

    def __init__(self) -> None:
        self.time, self.slow = 0.0, 1.0

    def work(self, seconds: float) -> None:
        self.time += seconds * self.slow

    def calibrate(self) -> float:
        self.work(0.005)
        return self.slow

    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.calibrate)


def test_the_clock_counts_work() -> None:
    machine = Machine()
    machine.slow = 1.6
    clock = machine.clock()
    begun = clock()
    machine.work(2.0)
    assert clock() - begun == pytest.approx(2.0)
    machine.slow = 1.0
    machine.work(0.1)
    begun = clock()
    machine.work(3.0)
    assert clock() - begun == pytest.approx(3.0, rel=0.001)


def test_the_clock_takes_the_middle_where_the_speed_changes_meanwhile() -> None:
    machine = Machine()
    clock = machine.clock()
    begun = clock()
    machine.work(1.0)
    machine.slow = 1.5
    machine.work(1.0)
    assert clock() - begun == pytest.approx(2.0, rel=0.001)


def test_short_readings_are_not_calibrated_one_by_one() -> None:
    machine = Machine()
    clock = machine.clock()
    before = machine.time
    for _ in range(400):
        machine.work(0.001)
        clock()
    assert machine.time - before == pytest.approx(0.4 + 8 * 0.005, abs=0.006)


def test_the_clock_never_goes_back() -> None:
    machine, drawn = Machine(), random.Random(1)
    clock = machine.clock()
    readings = []
    for _ in range(1_000):
        machine.slow = drawn.choice([1.0, 1.6, 3.0])
        machine.work(drawn.choice([0.0, 0.001, 0.1]))
        readings.append(clock())
    assert readings == sorted(readings)


def test_a_module_runs_on_that_clock_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        "import sys, time\nclock = time.process_time\n"
        "print(__name__, sys.argv[1:], type(clock).__name__, time.process_time_ns() >= 0, time.thread_time() >= 0)"
    )
    command = [sys.executable, str(Path(calibrated.__file__)), "told", "--quick", "x"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "__main__ ['--quick', 'x'] Clock True True\n"
