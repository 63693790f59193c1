"""The command: `python -m benchmarks.spectra [--quick] [--only NAME] [--output FILE] ...`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.machine import machine
from benchmarks.spectra import page, ways
from benchmarks.spectra.page import Found
from benchmarks.spectra.queries import QUERIES, WindowQuery
from benchmarks.spectra.streams import stream
from benchmarks.spectra.ways import Coded, Setting

WINDOWS: Final = (1_000, 10_000, 100_000, 1_000_000)
SIZES: Final = (1, 20)
RDFLIB_UP_TO: Final = 1_000
"""Triples of a window; above, rdflib does not finish."""
_EXPLAINED: Final = """Thousand triples of the raw stream per second of CPU time, one process, one thread: `new` and
`ended` are the engine's push of coded batches (20,000 triples each; the median when sliding, the mean when tumbling)
to a query registered as ISTREAM, or DSTREAM; `again` is its own full answer at every event (RSTREAM); `whole` is
pyoxigraph, a store that follows the window's summary and evaluates the whole query after each event that added to it;
`delta` is pyoxigraph asked with the added triple put in at each position of the query; `rdflib` is like `whole`.
Coding terms, making quads and query texts, and keeping the summary are outside the clock on all sides. The windows are
full when measuring begins, and the engine's runs over all windows of a query are measured in turns. `times` is how
many times quicker `new` is. Every way's full answer after its last event has been compared with the engine's."""


def main(arguments: list[str] | None = None) -> int:
    """Measure; exit status 1 when answers differ, 2 when something is not as asked."""
    options = _options().parse_args(arguments)
    found = list(_measured(options))
    text = page.page(found, f"{machine()}; load {os.getloadavg()[0]:.0f}.\n\n{_EXPLAINED}")
    print(text)
    if options.output:
        command = " ".join(["python -m benchmarks.spectra", *(arguments or sys.argv[1:])])
        title = "Graph patterns over windows, after SPECTRA's experiments"
        options.output.write_text(f"# {title}\n\n`{command}`. {text}", encoding="utf-8")
    faults = [fault for one in found for fault in one.faults]
    for line in faults:
        print(line, file=sys.stderr)
    if faults:
        return 1
    return 2 if page.missed(found) and not options.quick else 0


def _measured(options: argparse.Namespace) -> Iterator[Found]:
    windows = [w for w in WINDOWS if w <= options.most]
    triples = options.triples or (40_000 if options.quick else 200_000)
    for name in ("lubm", "seas"):
        queries = [q for q in QUERIES if q.stream == name and (not options.only or q.name in options.only)]
        if not queries:
            continue
        coded = Coded(stream(name, 2 * max(windows) + triples + ways.STRETCH))
        for tumbling in (False, True):
            for size in SIZES:
                for query in queries:
                    print(f"{query.name}, events of {size}, tumbling: {tumbling}...", file=sys.stderr, flush=True)
                    settings = [Setting(window, size, tumbling) for window in windows]
                    yield from _measured_one(query, coded, settings, triples, options)


def _measured_one(
    query: WindowQuery, coded: Coded, settings: list[Setting], triples: int, options: argparse.Namespace
) -> Iterator[Found]:
    """A query over all windows."""
    ways.incremental(query, coded, [Setting(100, 1, False)], ways.STRETCH)  # compiles, reads the caches
    ours = ways.incremental(query, coded, settings, triples)
    for setting, rates in zip(settings, ours, strict=True):
        found = Found(query, setting, dict(rates))
        if setting.triples <= options.rivals:
            _rivals(found, coded, options.budget)
        yield found


def _rivals(found: Found, coded: Coded, budget: float) -> None:
    """The other ways, and whether their answers are the engine's."""
    query, setting = found.query, found.setting
    for rival in (ways.again, ways.stores, *([ways.by_rdflib] if setting.triples <= RDFLIB_UP_TO else [])):
        for name, rate in rival(query, coded, setting, budget).items():
            found.rates[name] = rate
            expected = ways.rows_after(query, coded, setting, rate.events)
            if rate.rows != expected:
                found.faults.append(f"{found.name}: {rate.rows} rows by {name}, {expected} by the engine")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.spectra", description="Graph patterns over windows.")
    parser.add_argument("--quick", action="store_true", help="fewer triples, aims not asked for")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this query, Q2 for instance; repeatable")
    parser.add_argument("--most", type=int, default=max(WINDOWS), metavar="N", help="the largest window, in triples")
    parser.add_argument(
        "--rivals", type=int, default=max(WINDOWS), metavar="N", help="the largest window that the other ways get"
    )
    parser.add_argument("--budget", type=float, default=1.0, metavar="S", help="seconds of each other way (default 1)")
    parser.add_argument("--triples", type=int, metavar="N", help="of a measurement (default 200,000)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
