"""The command: `python -m benchmarks.core [--quick] [--only NAME] [--output FILE] [--pictures DIR]`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.core import page
from benchmarks.core.memory import Memory, apart
from benchmarks.core.queries import Query, every
from benchmarks.core.run import Found, found
from benchmarks.core.streams import EVENTS, stream
from benchmarks.core.ways import coded
from benchmarks.machine import machine
from oxiseq.engine.terms.dictionary import TermDictionary

MEMORY = ("S3", "S3'", "S24'", "H3'", "T3'", "Q4", "Q7")
"""Queries whose memory is sampled."""


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen queries; exit status 1 when answers differ, 2 when something is not as asked."""
    options = _options().parse_args(arguments)
    pictures = import_module("benchmarks.pictures") if options.pictures else None
    most = options.events or (40_000 if options.quick else max(EVENTS.values()))
    queries = [q for q in every() if not options.only or q.name in options.only]
    results = _measured(queries, most, options.rounds or (3 if options.quick else 5), options.counted)
    memory: dict[str, Memory] = {}
    for query in queries:
        if options.memory and query.name in MEMORY:
            print(f"memory of {query.name}...", file=sys.stderr, flush=True)
            memory[query.name] = apart(query, options.memory)
    text = page.page(results, memory, f"{machine()}.\n\n{page.explained()}", options.memory)
    print(text)
    if pictures:
        pictures.draw_all(page.pictures(results), options.pictures)
    if options.output:
        command = " ".join(["python -m benchmarks.core", *(arguments or sys.argv[1:])])
        options.output.write_text(f"# CORE's experiments\n\n`{command}`. {text}", encoding="utf-8")
    for line in page.faults(results, memory) + page.missed(results, memory):
        print(line, file=sys.stderr)
    if page.faults(results, memory):
        return 1
    return 2 if page.missed(results, memory) and not options.quick else 0


def _measured(queries: list[Query], most: int, rounds: int, counted: int) -> dict[str, Found]:
    results: dict[str, Found] = {}
    for name in EVENTS:  # one stream at a time
        mine = [query for query in queries if query.stream == name]
        if not mine:
            continue
        print(f"{name}: {len(mine)} queries...", file=sys.stderr, flush=True)
        table = stream(name, min(most, EVENTS[name]))
        events = coded(table, TermDictionary()) if any(query.coded for query in mine) else None
        results |= found(mine, table, events, rounds, counted)
    return results


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.core", description="CORE's experiments.")
    parser.add_argument("--quick", action="store_true", help="fewer events and rounds, aims not asked for")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this query, S3' for instance; repeatable")
    parser.add_argument("--events", type=int, metavar="N", help="of a stream at most (default: all that CORE's have)")
    parser.add_argument("--rounds", type=int, metavar="N", help="interleaved repetitions (default 5)")
    parser.add_argument("--counted", type=int, default=50_000, metavar="N", help="events of the prefix counted again")
    parser.add_argument("--memory", type=int, default=2_000_000, metavar="N", help="events for memory; 0: leave it out")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there too")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw core.svg there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
