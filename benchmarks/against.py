"""A benchmark of this commit beside the same one of another commit, row by row.

    python -m benchmarks.against 666c5b34 counted --rounds 5 -- --only best
    python -m benchmarks.against 666c5b34 core --at-most 1.1
    python -m benchmarks.against 666c5b34 alone --ours --rounds 5 --at-most 1.1

Each commit has an environment of its own (kept in the user's cache folder and used again), and runs its own benchmark
code, so that options and functions may have other names; rows are matched by what they say. `--ours`: the other commit
runs this one's code, of benchmarks that it does not have or that measure something else there. `alone` is several
benchmarks, those of one SPAseq query or of CORE's, each small. Runs take turns. A figure
is the median of the rounds; its ratio says how many times as much this commit takes: above 1 it is slower, or larger.
What only one of the two prints is listed behind the table. `--at-most` ends with status 1 where a ratio is above it.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import venv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.machine import machine

ROOT: Final = Path(__file__).parents[1]
UNITS: Final = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
ALONE: Final = (
    ("benchmarks", "--quick", "--only", "push"),
    ("benchmarks", "--quick", "--only", "sequences"),
    ("benchmarks", "--quick", "--only", "kleene"),
    ("benchmarks.core", "--quick", "--memory", "0"),
    ("benchmarks.ranked", "--loops", "16", "30"),
    ("benchmarks.counted", "--events", "5000", "--rounds", "3"),
    ("benchmarks.partitions",),
    ("benchmarks.negated",),
    ("benchmarks.strategies",),
)
"""Modules with their options."""
_NUMBER: Final = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_WITH_UNIT: Final = re.compile(rf"({_NUMBER})\s?()(\w+/s|ns|µs|us|ms|s|kB|MB|GB)\b")
_UNIT: Final = re.compile(r"(?<![\w/'])(ns|µs|us|ms|s|seconds|kB|MB|GB)(?!\w)|\w+/s|per (?:CPU )?second")
_RATIO: Final = re.compile(r"ratio|times|beside|spread|asked|measured|load", re.IGNORECASE)

Figures = dict[str, float]
"""By what a row and its column say: a figure that is better when smaller (rates are turned around)."""


def main(arguments: list[str] | None = None) -> int:
    """Run both in turns and print the table."""
    own, theirs = _split(sys.argv[1:] if arguments is None else arguments)
    options = _options().parse_args(own)
    old, new = (_commit(name) for name in (options.commit, options.this))
    pythons = {commit: _environment(commit, options.cache) for commit in dict.fromkeys((old, new))}
    commands = ALONE if options.name == "alone" else [(_module(options.name), *theirs)]
    seen: dict[str, dict[str, list[float]]] = {old: defaultdict(list), new: defaultdict(list)}
    for number in range(options.rounds):
        for commit in (old, new) if number % 2 == 0 else (new, old):
            print(f"round {number + 1}, {commit[:8]}...", file=sys.stderr, flush=True)
            checkout = options.cache / (new if options.ours else commit)
            for command in commands:
                of = f"{command[0].rpartition('.')[2]} {command[-1]}: " if len(commands) > 1 else ""
                for what, value in figures(_run(pythons[commit], checkout, ["-m", *command])).items():
                    seen[commit][of + what].append(value)
    medians = [{what: statistics.median(values) for what, values in seen[commit].items()} for commit in (old, new)]
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; medians of {options.rounds} rounds in turns\n")
    print("\n".join(table(*medians, (old[:8], new[:8]))))
    worst = max(_ratios(*medians).values(), default=0.0)
    print(f"\nlargest ratio: {worst:.2f}")
    return 1 if options.at_most is not None and worst > options.at_most else 0


def _module(name: str) -> str:
    return "benchmarks" if name == "benchmarks" else f"benchmarks.{name}"


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Ours, and those of the benchmark behind `--`."""
    where = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:where], arguments[where + 1 :]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the other commit")
    parser.add_argument("name", help="the benchmark, as `counted`; `benchmarks` is the whole, `alone` several")
    parser.add_argument("--this", default="HEAD", help="the commit to compare with it (default: HEAD, as committed)")
    parser.add_argument("--ours", action="store_true", help="run this commit's benchmark code in both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-most", type=float, help="end with status 1 where a ratio is above this")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--cache", type=Path, default=cache / "oxiseq-against", help="where environments are kept")
    return parser


# --- running ---------------------------------------------------------------------------------------------


def _commit(name: str) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--verify", f"{name}^{{commit}}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _environment(commit: str, cache: Path) -> Path:
    """The Python of the commit's environment, made where it is missing. Its checkout is `cache`/`commit`."""
    checkout, environment = cache / commit, cache / f"{commit}.venv"
    python = environment / "bin" / "python"
    if (environment / "ready").exists():
        return python
    print(f"making an environment of {commit[:8]}...", file=sys.stderr, flush=True)
    checkout.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(checkout)], input=archive.stdout, check=True)
    venv.create(environment, with_pip=True, clear=True)
    for words in (["--upgrade", "pip>=25.1"], [".[all]", "--group", "bench"]):
        subprocess.run([python, "-m", "pip", "install", "-q", *words], cwd=checkout, check=True)
    subprocess.run([python, "-m", "oxiseq", "warmup"], cwd=cache, check=True, stdout=subprocess.DEVNULL)
    (environment / "ready").touch()
    return python


def _run(python: Path, checkout: Path, command: Sequence[str]) -> str:
    """What it prints. A status that is not 0 may only say that a figure is not as asked."""
    done = subprocess.run([python, *command], cwd=checkout, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{' '.join(map(str, command))} printed nothing, exit status {done.returncode}")
    return done.stdout


# --- reading what was printed -----------------------------------------------------------------------------


def figures(text: str) -> Figures:
    """All figures with a unit, in tables (where the column's head may have the unit) and in plain lines."""
    found: Figures = {}
    heads: list[str] = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            if set("".join(cells)) <= set("-: "):
                continue
            if not heads:
                heads = cells
                continue
            found |= _of_row(heads, cells)
        else:
            heads = []
            found |= _of_line(line)
    return found


def _of_row(heads: Sequence[str], cells: Sequence[str]) -> Figures:
    """What has no unit says which row it is: names, sizes, and answers, which must be equal. Ratios are left out."""
    named, values = [], {}
    for head, cell in zip(heads, cells, strict=False):
        unit = _UNIT.search(head)
        number = re.match(_NUMBER, cell)
        if unit and number:
            values[head] = _smaller(number[0], unit[0])
        elif not _RATIO.search(head):
            found = _of_line(cell)
            values |= {f"{head} {what}": value for what, value in found.items()}
            named += [] if found else [cell]
    row = ", ".join(filter(None, named))
    return {f"{row}: {head}": value for head, value in values.items() if value}


def _of_line(line: str) -> Figures:
    """A plain line: what is left when its figures are taken out says which one it is."""
    found = list(_WITH_UNIT.finditer(line))
    name = re.sub(rf"{_NUMBER} times|\d[\d,]*\.\d+", "", _WITH_UNIT.sub("", line))
    name = " ".join(name.split())
    values = {
        f"{name} ({number})" if len(found) > 1 else name: _smaller(match[1], match[3])
        for number, match in enumerate(found, start=1)
    }
    return {what: value for what, value in values.items() if value}


def _smaller(number: str, unit: str) -> float:
    """In seconds or bytes; of a rate the time that one takes."""
    value = float(number.replace(",", ""))
    if "/s" in unit or unit.startswith("per "):
        return 1 / value if value else 0.0
    return value * UNITS.get("s" if unit == "seconds" else unit, 1.0)


# --- the table --------------------------------------------------------------------------------------------


def _ratios(old: Mapping[str, float], new: Mapping[str, float]) -> Figures:
    return {what: new[what] / value for what, value in old.items() if what in new and value}


def table(old: Mapping[str, float], new: Mapping[str, float], names: Sequence[str]) -> Iterator[str]:
    """Rows in the order of the other commit, as Markdown; behind them what only one has."""
    yield f"| | {names[0]} | {names[1]} | ratio |"
    yield "|---|---:|---:|---:|"
    for what, ratio in _ratios(old, new).items():
        yield f"| {what} | {old[what]:.3g} | {new[what]:.3g} | {ratio:.2f} |"
    for name, one, other in ((names[0], old, new), (names[1], new, old)):
        if left := [what for what in one if what not in other]:
            yield f"\nonly at {name}: " + "; ".join(left)


if __name__ == "__main__":
    sys.exit(main())
