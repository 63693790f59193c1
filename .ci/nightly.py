"""Explores for so many minutes: `OXISEQ_MINUTES=60 make nightly`. What fails is kept as a seed in tests/seeds.txt.

    python .ci/nightly.py           rounds of the tests with other random examples, until the time is over
    python .ci/nightly.py --again   what failed once, with the seeds that it failed with: `make full` does so

Every second round runs what is no property, with as many kills as `OXISEQ_PROFILE=nightly` wants. A round has the
gate's number of examples of each property, so that none of them takes all the time.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
SEEDS = HERE / "tests" / "seeds.txt"
"""Lines of a test and the seed of its examples. Who mends the fault may write a test of it, and delete the line."""
ENVIRONMENT = {"OXISEQ_PROFILE": "nightly", "OXISEQ_EXAMPLES": "40"}


def pytest_runtest_logreport(report: Any) -> None:
    """Keeps what fails, at once: this module is a plug-in of pytest in a round."""
    if report.failed and "OXISEQ_SEED" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        test: str = report.nodeid
        if (at := test.rfind("@")) > test.rfind("]"):  # the group that xdist adds
            test = test[:at]
        with SEEDS.open("a", encoding="utf-8") as file:
            file.write(f"{os.environ['OXISEQ_SEED']} {test}\n")


def run(seed: int, *arguments: str, seconds: float | None = None, keep: bool = True) -> int:
    """Runs pytest with examples of a seed, at most so long; returns its status."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(HERE / ".ci")}
    if keep:
        environment["OXISEQ_SEED"] = str(seed)
    command = [sys.executable, "-m", "pytest", "-p", "nightly", f"--hypothesis-seed={seed}", *arguments]
    with subprocess.Popen(command, cwd=HERE, env=environment) as running:
        try:
            return running.wait(seconds)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)  # pytest ends its workers, and says what failed
            return running.wait()


def explore(minutes: float, tests: list[str]) -> int:
    """Runs rounds; 1 where something was kept."""
    end, before = time.monotonic() + minutes * 60, kept()
    for turn in count(1):
        if (left := end - time.monotonic()) <= 0:
            break
        print(f"round {turn}, {left / 60:.1f} minutes are left", flush=True)
        which = "hypothesis" if turn % 2 else "not hypothesis"
        run(random.randrange(2**32), "-n", "auto", "-m", which, *tests, seconds=left)
    print(*kept()[len(before) :], sep="\n")
    return int(kept() != before)


def again() -> int:
    """Runs what is kept; 1 where something still fails."""
    rows = [line.partition(" ") for line in dict.fromkeys(kept())]
    return int(sum(run(int(seed), "-n", "0", "-m", "", test, keep=False) != 0 for seed, _, test in rows) > 0)


def kept() -> list[str]:
    """Returns the lines of the file."""
    return SEEDS.read_text("utf-8").splitlines() if SEEDS.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tests", nargs="*", help="default: all")
    parser.add_argument("--again", action="store_true", help="run what failed once")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("OXISEQ_MINUTES", 60)))
    given = parser.parse_args()
    sys.exit(again() if given.again else explore(given.minutes, given.tests))
