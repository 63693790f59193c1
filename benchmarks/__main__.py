"""The command: `python -m benchmarks [--quick] [--only NAME] [--output FILE] [--pictures DIR] [--flink PYTHON]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter

from benchmarks import (
    emission,
    flink,
    formats,
    knowledge,
    passes,
    patterns,
    profile,
    push,
    queries,
    reading,
    reasoning,
    sequences,
    shapes,
)
from benchmarks.machine import machine
from benchmarks.report import FULL, QUICK, Result, Size, markdown

CASES: Mapping[str, Callable[[Size], Result]] = {
    "sequences": sequences.run,
    "v-shape": shapes.run_v_shape,
    "kleene": shapes.run_kleene,
    "patterns": patterns.run,
    "passes": passes.run,
    "formats": formats.run,
    "reading": reading.run,
    "knowledge": knowledge.run,
    "reasoning": reasoning.run,
    "queries": queries.run,
    "push": push.run,
    "emission": emission.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen cases; exit status 1 when a ratio is not as asked."""
    options = _options().parse_args(arguments)
    size = QUICK if options.quick else FULL
    size = replace(size, events=options.events or size.events, rounds=options.rounds or size.rounds)
    # matplotlib is needed for nothing else, and missed before anything is measured
    pictures = import_module("benchmarks.pictures") if options.pictures else None
    if options.profile:
        text = profile.run(options.profile, size)
        results = []
    else:
        results = _run_all(options, size)
        text = markdown(results, setting(size))
    print(text)
    if pictures:
        pictures.draw_all(results, options.pictures)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    missed = [figure.what for result in results for figure in result.figures if not figure.holds]
    for what in missed:
        print(f"not as asked: {what}", file=sys.stderr)
    return 1 if missed else 0


def _run_all(options: argparse.Namespace, size: Size) -> list[Result]:
    cases = dict(CASES)
    if options.flink:
        cases["flink"] = partial(flink.run, python=options.flink)
    chosen = options.only or [*CASES, "flink"]
    if "flink" in chosen and not options.flink:
        print("flink is left out: no --flink PYTHON", file=sys.stderr)
    return [_run(name, cases[name], size) for name in chosen if name in cases]


def _run(name: str, case: Callable[[Size], Result], size: Size) -> Result:
    begin = perf_counter()
    print(f"{name} ...", end=" ", flush=True, file=sys.stderr)
    result = case(size)
    print(f"{perf_counter() - begin:.0f} s", file=sys.stderr)
    return result


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Ratios and medians of one run.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds: for a first look")
    parser.add_argument(
        "--only",
        action="append",
        choices=[*CASES, "flink"],
        metavar="NAME",
        help=f"one of: {', '.join(CASES)}, flink; may be given several times",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the Markdown there too")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw what was measured there, as SVG")
    parser.add_argument("--flink", metavar="PYTHON", help="an interpreter with apache-flink: compare with it")
    parser.add_argument(
        "--profile",
        choices=list(profile.CASES),
        metavar="NAME",
        help=f"split a case's time by stage instead: {', '.join(profile.CASES)}",
    )
    parser.add_argument("--events", type=int, help="events of a run, instead of the usual number")
    parser.add_argument("--rounds", type=int, help="rounds, instead of the usual number")
    return parser


def setting(size: Size) -> str:
    """What was measured on what."""
    return (
        f"{size.events:,} events per run, medians of {size.rounds} interleaved rounds, CPU time of the process; "
        f"{machine()}."
    )


if __name__ == "__main__":
    sys.exit(main())
