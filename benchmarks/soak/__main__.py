"""The command: `python -m benchmarks.soak [--events N] [--rate N] [--seed N] [--report FILE]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np
from pyoxigraph import Store

from benchmarks.data import BATCH
from benchmarks.machine import machine
from benchmarks.soak import watch
from benchmarks.soak.count import Counter
from benchmarks.soak.events import HOUR, STEPS, Drawn, Source, machines, query
from benchmarks.soak.watch import Stretch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

STRETCHES = 40
RECORDS = ("nodes", "groups", "buckets", "rows")


class Soak:
    """The query at work on the stream."""

    def __init__(self, rate: int, seed: int) -> None:
        self._terms = TermDictionary()
        self._run = QueryRun(compile_query(load(query()), self._terms), self._terms, StoreKb(Store()))
        self._source = Source(self._terms, rate, seed)
        self._counter = Counter(HOUR)

    def warm_up(self) -> None:
        """Have all kernels compiled or loaded."""
        self.stretch(10_000)
        self._terms.collect()

    def stretch(self, events: int) -> Stretch:
        """Let so many events through and count their matches a second time."""
        begin = process_time()
        drawing = 0.0
        parts: list[Drawn] = []
        found, times = 0, 0
        for start in range(0, events, BATCH):
            self._terms.collect_if_due()
            before = process_time()
            batch, drawn = self._source.draw(min(BATCH, events - start))
            drawing += process_time() - before
            parts.append(drawn)
            self._run.push(self._run.plan.streams[0], batch)
            if start + BATCH >= events:
                self._run.punctuate(self._run.plan.streams[0], int(batch.time[-1]) + 1)
            for matches in self._run.advance():
                found += len(matches)
                times += int(matches.time.astype(np.uint64).sum(dtype=np.uint64))
        seconds = process_time() - begin - drawing
        counted = self._counter.count(Drawn.concat(parts))
        records = sum(self._run.state[name] for name in RECORDS)
        return Stretch(events, seconds, watch.resident(), records, self._terms.live, (found, times % 2**64), counted)


def main(arguments: list[str] | None = None) -> int:
    """Run the soak; exit status 1 when counts differ, memory grows or the rate falls."""
    options = _options().parse_args(arguments)
    Soak(1, options.seed).warm_up()
    soak = Soak(options.rate, options.seed)
    stretches: list[Stretch] = []
    print(watch.HEAD, flush=True)
    for size in np.diff(np.linspace(0, options.events, min(STRETCHES, options.events) + 1).astype(int)).tolist():
        stretches.append(soak.stretch(size))
        print(watch.line(stretches[-1], sum(s.events for s in stretches)), flush=True)
    faults = watch.faults(stretches)
    for fault in faults:
        print(fault, file=sys.stderr)
    text = report(stretches, faults, options)
    print(text)
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    return 1 if faults else 0


def report(stretches: list[Stretch], faults: list[str], options: argparse.Namespace) -> str:
    """The whole run as Markdown."""
    events, found = sum(s.events for s in stretches), sum(s.found[0] for s in stretches)
    seconds = sum(s.seconds for s in stretches)
    growth = ", ".join(f"{what} {watch.growth(stretches, f):.3f}×" for what, f in watch.GROWING.items())
    lines = [
        "# A soak",
        "",
        f"`python -m benchmarks.soak --events {events} --rate {options.rate} --seed {options.seed}`. {machine()}.",
        "",
        f"A `:` sequence of {STEPS} kinds of reading, all of one machine, in a sliding window of one hour: "
        f"{options.rate} events a second, so {3600 * options.rate:,} in a window, of "
        f"{machines(options.rate):,} machines; every event is a candidate of one step. Each event's subject and "
        "every 64th reading are terms that occur once. Seconds are CPU time of pushing, matching and freeing terms; "
        "the matches of each stretch, and the sum of the times at which they end, are compared with a count by NumPy "
        "(benchmarks/soak/count.py).",
        "",
        f"{events:,} events in {seconds:,.0f} s: {events / max(seconds, 1e-9):,.0f} events/s; {found:,} matches. "
        f"Last quarter over second: {growth} (at most {watch.MEMORY_GROWTH}×), "
        f"rate {watch.rate_kept(stretches):.2f}× (at least {watch.RATE_KEPT}×).",
        "",
        *(f"**{fault}**" for fault in faults or ["All counts are equal; memory and rate are flat."]),
        "",
        watch.table(stretches),
        "",
        "Live records are the nodes, groups and buckets of the sequence and the rows of the window; terms are those "
        "that the dictionary holds, which frees what has gone by after at least 131,072 new ones.",
    ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.soak", description="One query over very many events.")
    parser.add_argument("--events", type=int, default=100_000_000, metavar="N", help="how many (default: 100 million)")
    parser.add_argument("--rate", type=int, default=100, metavar="N", help="events a second of the stream's time")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the generator")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
