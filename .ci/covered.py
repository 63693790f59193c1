"""Lines and branches that the tests reach, by room of the architecture: `make coverage` (pip install --group coverage).

    python .ci/covered.py                the tests of the gate, folder by folder, at most an hour
    python .ci/covered.py --full         those of `make full`
    python .ci/covered.py tests/cea      only these
    python .ci/covered.py --report       the table of what has run; `coverage html` for its lines

Processes that tests start are measured, too: servers, the command line, Spark's drivers, and kernels as plain Python
(tests/engine/test_kernels_as_python.py). Not measured: what compiled kernels do, and what a process did before SIGKILL.
Data of a folder is kept in `build/coverage/`, one folder a commit: a run that was stopped goes on with the next one.
The table is kept in `seen/`. Needs an installation that runs the checkout (pip install -e).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from near import commit
from weight import ROOMS, room_of

HERE = Path(__file__).parents[1]
SEEN = HERE / ".ci" / "seen"
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def coverage(*arguments: str) -> int:
    """Runs the command of that name, and returns its status."""
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], check=False).returncode


def steps() -> list[str]:
    """Returns the folders of tests, and the modules beside them."""
    return sorted(
        {str(each.parent if each.parent.name != "tests" else each) for each in Path("tests").rglob("test_*.py")}
    )


def measure(tests: list[str], data: Path, full: bool, minutes: float) -> None:
    """Runs the steps that have no data yet."""
    end = time.monotonic() + minutes * 60
    for step in tests:
        name = step.replace("/", "-").replace("::", "-")
        done, parts = data / f"{name}.data", data / name
        if done.exists():
            continue
        if time.monotonic() > end:
            print(f"{minutes:g} minutes are over; run it again, and it goes on")
            return
        shutil.rmtree(parts, ignore_errors=True)
        parts.mkdir(parents=True)
        began = time.monotonic()
        marks = ["-m", ""] if full else []
        failed = coverage("run", f"--data-file={parts / 'data'}", "-m", "pytest", "-n", "auto", *marks, step)
        print(f"{step}: {time.monotonic() - began:.0f} s{', TESTS FAILED' if failed else ''}", flush=True)
        coverage("combine", "-q", f"--data-file={done}", *map(str, parts.iterdir()))


def report(data: Path) -> None:
    """Prints the table, and keeps it."""
    coverage("combine", "-q", "--keep", "--data-file=.coverage", *map(str, sorted(data.glob("*.data"))))
    coverage("json", "-q", "-o", str(data / "coverage.json"))
    rooms = {room: dict.fromkeys(COUNTS, 0) for room in ROOMS}
    for name, file in json.loads((data / "coverage.json").read_text("utf-8"))["files"].items():
        kernels = "engine/kernels" if name.startswith("engine/kernels/") else room_of(Path(name))
        for room in {kernels, room_of(Path(name))}:
            of_room = rooms.setdefault(room, dict.fromkeys(COUNTS, 0))
            for count in COUNTS:
                of_room[count] += file["summary"][count]
    lines = [f"{'':24}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}"]
    for room, counts in rooms.items():
        all_lines, reached, branches, taken = (counts[count] for count in COUNTS)
        shares = f"{all_lines:8,}{_share(reached, all_lines):>9}{branches:10,}{_share(taken, branches):>9}"
        lines.append(f"{room:24}{shares}")
    lines += ["", "measured: " + " ".join(path.stem for path in sorted(data.glob("*.data")))]
    print("\n".join(lines))
    SEEN.mkdir(exist_ok=True)
    (SEEN / f"coverage-{data.name}.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def main() -> None:
    """Measure, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tests", nargs="*", help="default: all folders")
    parser.add_argument("--full", action="store_true", help="the tests of `make full`")
    parser.add_argument("--report", action="store_true", help="only the table")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("OXISEQ_MINUTES", 60)))
    given = parser.parse_args()
    os.chdir(HERE)
    data = Path("build/coverage") / f"{commit()}{'-full' if given.full else ''}"
    if not given.report:
        measure(given.tests or steps(), data, given.full, given.minutes)
    report(data)


if __name__ == "__main__":
    main()
