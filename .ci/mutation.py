"""Mutation testing: what the tests do not see. `make mutation` repeats the mutants of `mutants.json`.

    python .ci/mutation.py                 all that have no outcome yet, at most an hour
    python .ci/mutation.py --sample 3      of each area the first 3
    python .ci/mutation.py --report        what is known, beside what was known of other commits

A mutant changes one operator or number. The list names file, function, line and changed line, so that later runs
repeat the same ones wherever the function stands in its file. Each runs the tests that are near its file (near.py),
those first whose module takes little time; those of kernels run as plain Python, the corpus and what is quick, so that
nothing is compiled. Outcomes are appended to `seen/`, one file a commit: a run that was stopped goes on behind the last
one. Areas take turns, and mutants without an outcome of any commit begin.

- killed: a test failed; stopped: tests took four times as much CPU time as without a change, or never ended
- survived: either a test is missing, or the change makes no difference
- gone: no such line is in that function

The work is done on a copy of the checkout. `draw_mutants.py` makes the list.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import Phase, settings
from near import CORPUS, commit, near

HERE = Path(__file__).parents[1]
LIST, SEEN = HERE / ".ci" / "mutants.json", HERE / ".ci" / "seen"
AREAS: Final = {
    "sequence": "engine/sequence",
    "kernels": "engine/kernels",
    "operators": "engine/flow/operators",
    "cea": "engine/cea",
    "journal": "plugin/journal",
    "live": "plugin/live",
}
EACH: Final = 20
BUILD: Final = HERE / "build" / "mutation"
"""Where is kept how long tests take; deleted, it is measured again."""
DIRECT: Final = {
    "engine/kernels/events": ("events/test_nquads_reader.py::test_a_label_is_one_node_of_its_event",),
    "engine/kernels/expressions": ("expressions/test_facts.py", "expressions/test_machine.py"),
    "engine/kernels/flow": ("flow/test_best.py", "flow/test_follow.py", "flow/test_group.py", "flow/test_reach.py"),
    "engine/kernels/matches": ("engine/test_sums.py", "engine/test_weighed_matches.py"),
    "engine/kernels/sequence": ("engine/test_sequence_kernels.py", "test_differential.py"),
}
"""Beside the corpus, tests of kernels that take less than a minute as plain Python."""


class Mutant(NamedTuple):
    """A changed line. `nth`: of the lines of the function that read like it, which one, from 0."""

    area: str
    file: str
    function: str
    line: str
    nth: int
    changed: str


@cache
def functions(source: str) -> list[tuple[str, int, int]]:
    """Returns the qualified name of each function and its lines, from 0, the last one excluded; inner ones first."""

    def inside(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from inside(each, f"{prefix}{each.name}.")
                if not isinstance(each, ast.ClassDef):
                    yield f"{prefix}{each.name}", each.lineno - 1, each.end_lineno or 0
            else:
                yield from inside(each, prefix)

    return list(inside(ast.parse(source), ""))


# --- running ------------------------------------------------------------------------------------------


def applied(mutant: Mutant, source: str) -> str | None:
    """Returns the source with the change, None where the line is gone."""
    lines = source.splitlines(keepends=True)
    for name, first, last in functions(source):
        alike = [at for at in range(first, last) if lines[at].strip() == mutant.line] if name == mutant.function else []
        if len(alike) > mutant.nth:
            at = alike[mutant.nth]
            lines[at] = lines[at].replace(mutant.line, mutant.changed)
            return "".join(lines)
    return None


class Tests:
    """Runs the tests near a file in the copy, and knows how much CPU time they take without a change."""

    def __init__(self, copy: Path, longest: float) -> None:
        self._copy = copy
        self._longest = longest
        self._log = copy / "mutation.log"
        BUILD.mkdir(parents=True, exist_ok=True)
        self._took, self._known = BUILD / "took.json", BUILD / "seconds.json"
        self._seconds: dict[str, float] = json.loads(self._known.read_text("utf-8")) if self._known.exists() else {}

    def outcome(self, file: str) -> str:
        """Returns the outcome for what is written in the copy now."""
        return self._run(file, self._seconds[" ".join(self._near(file))] * 4 + 30)

    def prepare(self, file: str) -> None:
        """Runs the tests without a change, once. Raises SystemExit where they fail."""
        tests, before = " ".join(self._near(file)), _cpu_seconds()
        if tests not in self._seconds:
            if (outcome := self._run(file, self._longest)) != "survived":
                raise SystemExit(f"{self._log.read_text('utf-8')[-5_000:]}\n{outcome} without a mutant: {tests}")
            self._seconds[tests] = _cpu_seconds() - before
            self._known.write_text(json.dumps(self._seconds), "utf-8")

    def _near(self, file: str) -> tuple[str, ...]:
        if not _is_kernel(file):
            return tuple(near(file))
        direct = next((tests for folder, tests in DIRECT.items() if file.startswith(folder)), ())
        return tuple(f"tests/{each}" for each in ("engine/as_python_checks.py", *CORPUS, *direct))

    def _run(self, file: str, seconds: float) -> str:
        """Runs tests until one fails; what they have started ends with them. `seconds`: of CPU time."""
        paths = os.pathsep.join([str(self._copy / "links"), str(HERE / ".ci")])
        environment = {**os.environ, "PYTHONPATH": paths, "OXISEQ_TOOK": str(self._took)}
        if _is_kernel(file):
            environment["NUMBA_DISABLE_JIT"] = "1"
        options = ["-p", "mutation", "-n", "0", "-x", "-m", "not slow and not full"]
        command = [sys.executable, "-m", "pytest", *options, *self._near(file)]
        over = time.monotonic() + self._longest + 10 * seconds
        with (  # a group, no session: Linux may share processors by session, whatever is nice
            self._log.open("wb") as log,
            subprocess.Popen(
                command, cwd=self._copy, env=environment, stdout=log, stderr=log, process_group=0
            ) as running,
        ):
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        return "killed" if running.wait(1) else "survived"
                    if time.monotonic() > over or sum(_started(paths).values()) > seconds:
                        return "stopped"
            finally:
                with suppress(ProcessLookupError):  # all of them have ended
                    os.killpg(running.pid, signal.SIGKILL)
                for process in _started(paths):
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)


def _started(paths: str) -> dict[int, float]:
    """Returns the processes that run with this PYTHONPATH, and the CPU seconds of each with those that it has waited
    for. Servers that tests start are there, too: in a group of their own, which no limit of their parent counts."""
    found, ticks = dict[int, float](), os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if f"PYTHONPATH={paths}\0".encode() in (folder / "environ").read_bytes():
                behind_name = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
                found[int(folder.name)] = sum(map(int, behind_name[11:15])) / ticks
    return found


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _is_kernel(file: str) -> bool:
    return file.startswith(AREAS["kernels"])


def run(mutants: list[Mutant], known: Path, minutes: float, longest: float) -> None:
    """Tries those without an outcome, and appends each outcome as it is known."""
    end, done = time.monotonic() + minutes * 60, {tuple(row[:-2]) for row in _rows(known)}
    with tempfile.TemporaryDirectory(prefix="oxiseq-mutation-") as name:
        copy = _copied(Path(name))
        tests = Tests(copy, longest)
        for number, mutant in enumerate(mutants, 1):
            if tuple(mutant) in done:
                continue
            if time.monotonic() > end:
                print(f"{minutes:g} minutes are over; run it again, and it goes on", flush=True)
                return
            outcome, seconds = _outcome(mutant, copy, tests)
            with known.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*mutant, outcome, round(seconds)], ensure_ascii=False) + "\n")
            print(
                f"{number}: {outcome}: {mutant.file} {mutant.function}\n- {mutant.line}\n+ {mutant.changed}", flush=True
            )


def _outcome(mutant: Mutant, copy: Path, tests: Tests) -> tuple[str, float]:
    """Returns the outcome, and the seconds that the tests took."""
    original, file = HERE / mutant.file, copy / mutant.file
    source = original.read_text("utf-8") if original.exists() else ""
    changed = applied(mutant, source)
    if changed is None:
        return "gone", 0
    tests.prepare(mutant.file)
    file.write_text(changed, "utf-8")
    began = time.monotonic()
    try:
        return tests.outcome(mutant.file), time.monotonic() - began
    finally:
        shutil.copy2(original, file)  # with its time, by which Python knows what it has compiled


def _copied(folder: Path) -> Path:
    """Copies the tracked files and the compiled kernels, with a package `oxiseq` of links to its folders."""
    tracked = subprocess.run(["git", "ls-files"], cwd=HERE, check=True, capture_output=True, text=True).stdout.split()
    made = [path for pattern in ("engine/kernels/compiled/*", "grammar/parsing/*.lalr") for path in HERE.glob(pattern)]
    for name in [*tracked, *(str(path.relative_to(HERE)) for path in made)]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HERE / name, folder / name)
    package = folder / "links" / "oxiseq"
    package.mkdir(parents=True)
    for path in [*(folder / "plugin").iterdir(), *(folder / each for each in ("engine", "grammar", "kb_loader"))]:
        (package / path.name).symlink_to(path)
    return folder


# --- within pytest: modules of tests that take little time run first, and no failing example is shrunk --

_seconds: Counter[str] = Counter()


@pytest.hookimpl(trylast=True)  # behind the profile of the tests
def pytest_configure() -> None:
    """Drops the phases that come after a failure."""
    settings.register_profile("mutation", settings(), phases=[Phase.explicit, Phase.generate, Phase.target])
    settings.load_profile("mutation")


def pytest_runtest_logreport(report: Any) -> None:
    """Adds what a test took to its module."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(exitstatus: int) -> None:
    """Keeps what modules took where all of their tests passed."""
    if exitstatus == 0:
        took = Path(os.environ["OXISEQ_TOOK"])
        took.write_text(json.dumps({**_took(), **_seconds}), "utf-8")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Sorts tests by what their modules took, and leaves them in order within."""
    took = _took()
    items.sort(key=lambda item: took.get(item.nodeid.partition("::")[0], 0))


def _took() -> dict[str, float]:
    took = Path(os.environ["OXISEQ_TOOK"])
    return json.loads(took.read_text("utf-8")) if took.exists() else {}


# --- reporting ----------------------------------------------------------------------------------------


def _rows(known: Path) -> list[list[Any]]:
    return [json.loads(line) for line in known.read_text("utf-8").splitlines()] if known.exists() else []


def _when(known: Path) -> int:
    """Returns the time of the commit, 0 of one that is not in this repository."""
    command = ["git", "show", "-s", "--format=%ct", known.stem.split("-")[1]]
    return int(subprocess.run(command, capture_output=True, text=True, check=False).stdout or 0)


def report() -> None:
    """Prints outcomes by area for each commit, and which mutants have others now than in the commit before."""
    before: dict[tuple[Any, ...], str] = {}
    for known in sorted(SEEN.glob("mutants-*.jsonl"), key=_when):
        now = {tuple(row[:-2]): row[-2] for row in _rows(known)}
        print(f"{known.stem.removeprefix('mutants-')}: {len(now)} mutants, {sum(r[-1] for r in _rows(known))} s")
        for area in AREAS:
            print(f"  {area:10}", dict(Counter(outcome for mutant, outcome in now.items() if mutant[0] == area)))
        for mutant in now.keys() & before.keys():
            if now[mutant] != before[mutant]:
                print(f"  {before[mutant]}, now {now[mutant]}:", *mutant[1:])
        before = now


def main() -> None:
    """Draw, report or run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--report", action="store_true", help="print what is known")
    parser.add_argument("--area", choices=AREAS, help="only this one")
    parser.add_argument("--sample", type=int, default=EACH, help="how many of each area")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("OXISEQ_MINUTES", 60)))
    parser.add_argument("--longest", type=float, default=600, help="seconds that tests may take without a mutant")
    given = parser.parse_args()
    os.chdir(HERE)
    if given.report:
        report()
        return
    listed = [Mutant(*each) for each in json.loads(LIST.read_text("utf-8"))]
    areas = [given.area] if given.area else list(AREAS)
    drawn = [[each for each in listed if each.area == area][: given.sample] for area in areas]
    mutants = [each for turn in zip_longest(*drawn) for each in turn if each is not None]
    tried = {tuple(row[:-2]) for known in SEEN.glob("mutants-*.jsonl") for row in _rows(known)}
    mutants.sort(key=lambda each: tuple(each) in tried)
    SEEN.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what runs ends with this, and the copy is deleted
    run(mutants, SEEN / f"mutants-{commit()}.jsonl", given.minutes, given.longest)


if __name__ == "__main__":
    main()
