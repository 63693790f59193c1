"""Mutation testing: `make mutation AREA=operators SAMPLE=60` (pip install --group mutation).

Cosmic Ray changes one operator or number of the sources at a time; the tests of the area should fail. A mutant that
they do not kill is printed with its change: either a test is missing, or the change makes no difference.

The work is done on a copy of the checkout. The sample is drawn with a seed, the same for all who run it. mutmut is no
choice here: it wraps functions, and Numba cannot compile what it makes. A changed kernel is compiled again, and those
that inline it, which takes a while: see engine/kernels/compiling/fingerprint.py.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem

HERE = Path(__file__).parents[1]
LEFT_OUT = ("core/RemoveDecorator", "core/Variable", "core/ExceptionReplacer")
"""Operators that change how code is compiled or declared, or that tests cannot be expected to see."""


@dataclass(frozen=True)
class Area:
    """What is changed (folders and files), and which tests should see it."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


FLOW = ("group", "best", "happening", "pairs", "reach", "driver", "follow", "events", "lowering_cases", "lowering")
AREAS = {
    "operators": Area(("engine/flow/nodes",), tuple(f"tests/flow/test_{name}.py" for name in FLOW)),
    "expressions": Area(
        ("engine/expressions",),
        (
            "tests/expressions",
            "tests/engine/test_ranked_matches.py",
            "tests/engine/test_stateful_exists.py",
            "tests/test_summaries_differential.py",
        ),
    ),
    "sequence": Area(
        ("engine/sequence", "engine/plan"),
        (
            "tests/test_corpus.py",
            "tests/engine/test_asked_filters.py",
            "tests/engine/test_families.py",
            "tests/engine/test_counted_matches.py",
            "tests/engine/test_held_matches.py",
            "tests/engine/test_capacities.py",
            "tests/ceql/test_ceql_graphs.py",
            "tests/snapshot/test_moved_runs.py",
        ),
    ),
    "cea": Area(("engine/cea",), ("tests/cea", "tests/ceql")),
    "kernels": Area(("engine/kernels/sequence",), ("tests/test_corpus.py", "tests/engine/test_strategies.py")),
}
"""The tests that answer soonest; what survives them may yet be killed by the whole suite."""


def main() -> int:
    """Run a sample of an area; 1 where mutants survive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--sample", type=int, default=60, help="how many mutants; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for the tests of one mutant")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="oxiseq-mutation-") as name:
        copy = copied(Path(name))
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy / "links")  # before the editable install of the checkout
        return run(AREAS[given.area], given.sample, given.seed, given.timeout)


def run(area: Area, size: int, seed: int, timeout: float) -> int:
    """Draw, execute, report; in the copy."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", *area.tests]
    if subprocess.run(command, check=False).returncode:
        print("the tests fail without a mutation", file=sys.stderr)
        return 2
    paths = [path for source in area.sources for path in sorted(Path(source).rglob("*.py"))]
    work = WorkDB("mutation.sqlite", WorkDB.Mode.create)
    init(paths, work, {})
    done, survived = 0, 0
    for item in chosen(work.work_items, size, random.Random(seed)):
        result = mutate_and_test(item.mutations, " ".join(command), timeout)
        done, survived = done + 1, survived + (result.test_outcome == TestOutcome.SURVIVED)
        place = item.mutations[0]
        print(
            f"{done}: {result.test_outcome}: {place.module_path}:{place.start_pos[0]} {place.operator_name}", flush=True
        )
        if result.test_outcome == TestOutcome.SURVIVED:
            print(result.diff, flush=True)
    print(f"{done} mutants, {survived} survived")
    return 1 if survived else 0


def chosen(items: Iterable[WorkItem], size: int, drawing: random.Random) -> list[WorkItem]:
    """A sample; annotations, which nothing evaluates, are never in it."""
    possible = [item for item in sorted(items, key=_place) if not _is_left_out(item.mutations[0])]
    drawn = drawing.sample(possible, min(size or len(possible), len(possible)))
    print(f"{len(drawn)} of {len(possible):,} mutants", flush=True)
    return drawn


def _place(item: WorkItem) -> tuple[str, str, int]:
    (mutation,) = item.mutations
    return str(mutation.module_path), mutation.operator_name, mutation.occurrence


def _is_left_out(mutation: MutationSpec) -> bool:
    if mutation.operator_name.startswith(LEFT_OUT):
        return True
    return any(begin <= mutation.start_pos < end for begin, end in _annotations(mutation.module_path))


@cache
def _annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where each begins and ends."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    found = (getattr(node, name, None) for node in nodes for name in ("annotation", "returns"))
    return [
        ((each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0))
        for each in found
        if isinstance(each, ast.expr)
    ]


def copied(folder: Path) -> Path:
    """The tracked files of the checkout and its compiled kernels, with a package `oxiseq` of links to its folders."""
    tracked = subprocess.run(["git", "ls-files"], cwd=HERE, check=True, capture_output=True, text=True).stdout.split()
    compiled = (path for ending in ("nbi", "nbc", "digest") for path in HERE.glob(f"engine/kernels/**/*.{ending}"))
    for name in [*tracked, *(str(path.relative_to(HERE)) for path in compiled)]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HERE / name, folder / name)  # with its time, by which Numba knows what is compiled
    package = folder / "links" / "oxiseq"
    package.mkdir(parents=True)
    for path in [*(folder / "plugin").iterdir(), *(folder / each for each in ("engine", "grammar", "kb_loader"))]:
        (package / path.name).symlink_to(path)
    return folder


if __name__ == "__main__":
    sys.exit(main())
