"""The command: `python -m benchmarks.operators [--only NAME] [--most TRIPLES] [--output FILE] ...`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.machine import machine
from benchmarks.operators import page, ways
from benchmarks.operators.page import Found
from benchmarks.operators.queries import IN_TIME, OPERATORS, InTime, Operator

WINDOWS: Final = (100, 1_000, 10_000, 100_000, 1_000_000)
"""Triples."""
_EXPLAINED: Final = """CPU time of one process, one thread, medians; windows are full when measuring begins, slide by
one event of two triples, and ISTREAM is emitted. The runs over all windows of a query are measured in turns. Coding
terms is outside the clock on all sides. The store is pyoxigraph's: it follows the window, evaluates the whole query
after each event, and the answer is compared with the one before; both emitted the same for the same events. Orders
in time are EP-SPARQL's, bounded by the window's length, and RSEP-QL's MATCH (columns: the window, two triples a
second)."""


def main(arguments: list[str] | None = None) -> int:
    """Measure; exit status 1 when answers differ, 2 when a figure misses its goal."""
    options = _options().parse_args(arguments)
    wrong: list[str] = []
    found = list(_measured(options, wrong))
    text = page.page(found, f"{machine()}; load {os.getloadavg()[0]:.0f}.\n\n{_EXPLAINED}")
    print(text)
    if options.output:
        command = " ".join(["python -m benchmarks.operators", *(arguments or sys.argv[1:])])
        options.output.write_text(f"# Operators over windows\n\n`{command}`. {text}", encoding="utf-8")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 2 if any(page.missed(found)) else 0


def _measured(options: argparse.Namespace, wrong: list[str]) -> Iterator[Found]:
    chosen: list[Operator | InTime] = [*OPERATORS, *IN_TIME]
    windows = [window for window in WINDOWS if window <= options.most]
    for query in chosen:
        if options.only and query.name not in options.only:
            continue
        print(f"{query.name}...", file=sys.stderr, flush=True)
        ways.engine(query, [100])  # compiles, reads the caches
        rates = ways.engine(query, [window // 2 for window in windows])
        found = Found(query.name, dict(zip(windows, rates, strict=True)))
        if isinstance(query, Operator):
            for window in windows:
                if window <= options.rivals:
                    rate, events, told = ways.asked_again(query, window // 2, options.budget)
                    found.asked[window] = rate
                    if told != ways.told_by_engine(query, window // 2, events):
                        wrong.append(f"{query.name}, {window:,} triples: the store tells otherwise in {events} events")
        yield found


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.operators", description="Operators over windows.")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("--most", type=int, default=max(WINDOWS), metavar="N", help="the largest window, in triples")
    parser.add_argument(
        "--rivals",
        type=int,
        default=100_000,
        metavar="N",
        help="the largest window that the store gets (default 100,000)",
    )
    parser.add_argument("--budget", type=float, default=1.0, metavar="S", help="seconds of the store (default 1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
