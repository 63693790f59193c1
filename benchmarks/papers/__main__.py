"""The command: `python -m benchmarks.papers [--only FIGURE] [--rounds 3] [--quick] [--conformance] [--output DIR]`."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from benchmarks.machine import machine
from benchmarks.papers import conformance
from benchmarks.papers.figures import Panel, PaperFigure, Scale
from benchmarks.papers.page import TITLES, page

_EXPLAINED: Final = (
    "Published values stand beside ours as shapes, with where they are from: machines, data and sizes differ, so that "
    "no ratio between them means anything; compare the growth from first to last x. A series whose values exist only "
    "as a bitmap is not drawn. CPU time of the process, medians of interleaved rounds; matches are counted a second "
    "time on a prefix."
)


def every() -> list[PaperFigure]:
    """All figures, in the papers' order."""
    return [figure for paper in TITLES for figure in import_module(f"benchmarks.papers.{paper}").FIGURES]


def main(arguments: list[str] | None = None) -> int:
    """Measure the chosen figures; exit status 1 where matches differ from a second count."""
    known = {figure.name: figure for figure in every()}
    options = _options(list(known)).parse_args(arguments)
    if options.conformance:
        return _conformance(options.output)
    chosen = [known[name] for name in options.only or known]
    scale = Scale(0.05 if options.quick else options.share, options.rounds or (1 if options.quick else 3))
    found: dict[str, list[tuple[PaperFigure, list[Panel]]]] = {}
    failed = 0
    for figure in chosen:
        print(f"{figure.name}: {figure.title}...", file=sys.stderr, flush=True)
        try:
            found.setdefault(figure.paper, []).append((figure, figure.panels(scale)))
        except AssertionError as error:
            print(f"{figure.name}: {error}", file=sys.stderr)
            failed = 1
    command = " ".join(["python -m benchmarks.papers", *(arguments or sys.argv[1:])])
    setting = f"`{command}`. {machine()}; load {os.getloadavg()[0]:.0f}. {_EXPLAINED}"
    for paper, figures in found.items():
        print(page(paper, figures, setting, options.output))
    return failed


def _conformance(folder: Path) -> int:
    text, differ = conformance.page()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conformance.md").write_text(text, encoding="utf-8")
    print(folder / "conformance.md")
    for name in differ:
        print(f"other rows than expected: {name}", file=sys.stderr)
    return 1 if differ else 0


def _options(names: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.papers", description="The papers' figures.")
    parser.add_argument("--only", action="append", metavar="FIGURE", choices=names, help=f"one of {', '.join(names)}")
    parser.add_argument("--rounds", type=int, metavar="N", help="interleaved repetitions (default 3)")
    parser.add_argument("--share", type=float, default=1.0, metavar="S", help="of the usual number of events")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the events, the ends of an axis")
    parser.add_argument(
        "--conformance", action="store_true", help="only the page of worked examples, from tests/corpus"
    )
    parser.add_argument("--output", type=Path, default=Path("build/papers"), metavar="DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main())
