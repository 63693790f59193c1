"""A benchmark of this commit beside the same one of another commit, row by row.

    python -m benchmarks.against 666c5b34 counted --rounds 5 -- --only best
    python -m benchmarks.against 666c5b34 core --at-most 1.1 --each S3 S5 -- --quick --only {}
    python -m benchmarks.against 666c5b34 alone --ours --rounds 5 --at-most 1.1

Each commit has an environment of its own (kept in the user's cache folder and used again), and runs its own benchmark
code, so that options and functions may have other names; rows are matched by what they say. `--ours`: the other commit
runs this one's code, of benchmarks that it does not have or that measure something else there. `alone` is several
benchmarks, those of one SPAseq query or of CORE's, each small. Runs take turns, with
`--each` one case after the other: `{}` is replaced by its name. CPU time is counted on a clock that goes with the
machine's speed (calibrated.py); elapsed time is the clock's.

A ratio says how many times as much this commit takes: above 1 it is slower, or larger. It is the median over the rounds
of new over old, each of two runs in a row; the interval beside it holds the true median in nine of ten cases, from five
rounds on. Rounds are added, up to `--most`, until each interval is narrow (`--narrow`), or lies on one side of
`--at-most`, which ends with status 1 where a whole interval is above it. Interrupted, it tells of the rounds before.
What only one of the two prints is listed behind the table.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import comb
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.machine import machine

ROOT: Final = Path(__file__).parents[1]
_CLOCK: Final = Path(__file__).with_name("calibrated.py")
_MISSED: Final = 0.1
"""Of intervals, those that may not hold what they are about."""
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
    options.most = max(options.most or 2 * options.rounds, options.rounds)
    old, new = (_commit(name) for name in (options.commit, options.this))
    pythons = {commit: _environment(commit, options.cache) for commit in dict.fromkeys((old, new))}
    module = "benchmarks" if options.name == "benchmarks" else f"benchmarks.{options.name}"
    cases = [Case([module, *(word.replace("{}", each) for word in theirs)]) for each in options.each]
    if options.name == "alone":
        cases = [Case(command) for command in ALONE]
    with suppress(KeyboardInterrupt):  # what has been measured until then is told
        for number in range(options.most):
            wanted = [case for case in cases if number < options.rounds or not case.is_decided(options)]
            for case in wanted:
                print(f"round {number + 1}: {' '.join(case.command)}", file=sys.stderr, flush=True)
                pair: dict[bool, Figures] = {}
                for is_new in (False, True) if number % 2 == 0 else (True, False):
                    commit = new if is_new else old
                    printed = _run(pythons[commit], options.cache / (new if options.ours else commit), case.command)
                    pair[is_new] = figures(printed, options.rates)
                case.add(pair[False], pair[True])
            if not wanted:
                break
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; {min(map(len, cases))} to {max(map(len, cases))} rounds\n")
    print("\n".join(table([row for case in cases for row in case.rows()], (old[:8], new[:8]))))
    for name, seen in (
        (old[:8], [case.alone(False) for case in cases]),
        (new[:8], [case.alone(True) for case in cases]),
    ):
        if left := [what for each in seen for what in each]:
            print(f"\nonly at {name}: " + "; ".join(left))
    return _judged([row for case in cases for row in case.rows()], options.at_most)


def _judged(rows: Sequence[Row], at_most: float | None) -> int:
    """The exit status; says what is above the limit, and what cannot be told."""
    print(f"\nlargest ratio: {max((row.ratio for row in rows), default=0.0):.2f}")
    if at_most is None:
        return 0
    above = [row.what for row in rows if row.low > at_most]
    unsure = [row.what for row in rows if row.low <= at_most < row.high]
    for title, found in ((f"above {at_most}", above), (f"above {at_most} or not, rounds do not tell", unsure)):
        if found:
            print(f"{title}: " + "; ".join(found))
    return 1 if above else 0


class Row(NamedTuple):
    """`old`, `new`: medians of the rounds; `ratio`: the median of the rounds' ratios, between `low` and `high`."""

    what: str
    old: float
    new: float
    ratio: float
    low: float
    high: float


class Case:
    """One command for both commits, and what its rounds have found."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self._seen: tuple[list[Figures], list[Figures]] = [], []

    def __len__(self) -> int:
        """Rounds."""
        return len(self._seen[0])

    def add(self, old: Figures, new: Figures) -> None:
        """What the runs of a round have printed."""
        for seen, found in zip(self._seen, (old, new), strict=True):
            seen.append(found)

    def rows(self) -> list[Row]:
        """In the order of the other commit: what both print in each round."""
        old, new = self._seen
        return [
            row_of(what, [each[what] for each in old], [each[what] for each in new])
            for what in (old[0] if old else ())
            if all(what in each for each in (*old, *new))
        ]

    def alone(self, new: bool) -> list[str]:
        """What the other commit does not print in each round."""
        known = {row.what for row in self.rows()}
        return list(dict.fromkeys(what for each in self._seen[new] for what in each if what not in known))

    def is_decided(self, options: argparse.Namespace) -> bool:
        """Whether more rounds would say nothing that is asked for."""
        for row in self.rows():
            one_side = options.at_most is not None and not row.low <= options.at_most < row.high
            if not one_side and row.high - row.low > 2 * options.narrow * row.ratio:
                return False
        return True


def row_of(what: str, old: Sequence[float], new: Sequence[float]) -> Row:
    """Of the figures of rounds, the ratio of each being of two runs one after the other."""
    ratios = [other / one for one, other in zip(old, new, strict=True)]
    return Row(what, median(old), median(new), median(ratios), *interval(ratios))


def interval(figures: Sequence[float]) -> tuple[float, float]:
    """The narrowest one between two figures that holds the median of what they are drawn from in nine of ten cases; the
    whole range where there are fewer than five. Any distribution has as many below its median as above."""
    count, cut = len(figures), 0
    while 2 * sum(comb(count, below) for below in range(cut + 2)) <= _MISSED * 2**count:
        cut += 1
    ordered = sorted(figures)
    return ordered[cut], ordered[-1 - cut]


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
    parser.add_argument("--rounds", type=int, default=5, help="at least")
    parser.add_argument("--most", type=int, default=0, help="rounds at most (default: twice --rounds)")
    parser.add_argument("--narrow", type=float, default=0.05, help="half of an interval over its ratio (default 0.05)")
    parser.add_argument("--at-most", type=float, help="end with status 1 where a ratio is surely above this")
    parser.add_argument("--each", nargs="+", default=[""], metavar="CASE", help="run them one by one, as {}")
    parser.add_argument("--rates", nargs="+", default=[], metavar="COLUMN", help="of tables: amounts done in a time")
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
    done = subprocess.run([python, _CLOCK, *command], cwd=checkout, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{' '.join(map(str, command))} printed nothing, exit status {done.returncode}")
    return done.stdout


# --- reading what was printed -----------------------------------------------------------------------------


def figures(text: str, rates: Sequence[str] = ()) -> Figures:
    """All figures with a unit, in tables (where the column's head may have the unit) and in plain lines; `rates`: heads
    of columns whose figures, without a unit, say how much is done in a time. A row that has come before has its title
    in its name."""
    found: Figures = {}
    heads: list[str] = []
    title = ""
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            if set("".join(cells)) <= set("-: "):
                continue
            if not heads:
                heads = cells
                continue
            for what, value in _of_row(heads, cells, rates).items():
                found[f"{title}, {what}" if what in found else what] = value
        else:
            heads = []
            if line.startswith("#"):
                title = line.strip("# ")
            found |= {} if "of memory" in line else _of_line(line)  # benchmarks begin with the machine's line
    return found


def _of_row(heads: Sequence[str], cells: Sequence[str], rates: Sequence[str]) -> Figures:
    """What has no unit says which row it is: names, sizes, and answers, which must be equal. Ratios are left out."""
    named, values = [], {}
    for head, cell in zip(heads, cells, strict=False):
        unit = _UNIT.search(head)
        number = re.match(_NUMBER, cell)
        if number and (unit or head in rates):
            values[head] = _smaller(number[0], unit[0] if unit else "/s")
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


def table(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """As Markdown."""
    yield f"| | {names[0]} | {names[1]} | ratio | interval |"
    yield "|---|---:|---:|---:|---:|"
    for row in rows:
        yield f"| {row.what} | {row.old:.3g} | {row.new:.3g} | {row.ratio:.2f} | {row.low:.2f} to {row.high:.2f} |"


if __name__ == "__main__":
    sys.exit(main())
