"""Kernels as a wheel brings them beside those compiled here: `python -m benchmarks.shipped [--rounds 5] [--only TASK]`.

The same work in processes that take kernels from the archive and in ones that compile their own (OXISEQ_NATIVE; once,
into Numba's cache), in turns: CPU time, medians. A kernel that comes may use less of the processor (x86-64-v2), and has
no code left for inlining: it should make no difference that a user sees.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

from benchmarks.batches import by_oxiseq
from benchmarks.core.queries import every
from benchmarks.core.streams import stream
from benchmarks.data import quotes
from benchmarks.drive import Prepared
from benchmarks.measure import measure
from benchmarks.operators.queries import OPERATORS
from benchmarks.operators.stream import Sensors
from benchmarks.operators.ways import Running
from benchmarks.patterns import PATTERNS, counting, events_of, request_of
from benchmarks.shapes import v_shape
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kernels import archive
from oxiseq.engine.terms.dictionary import TermDictionary

BOUND: Final = 1.05
"""Shipped over native at most."""
WITHIN: Final = 3
"""Runs of each task in a process; the least counts."""
Task = Callable[[], object]


def matching() -> Task:
    """A star of four triple patterns and two filters, on coded batches."""
    (name, body), *_ = PATTERNS.items()
    terms = TermDictionary()
    return counting([request_of(body, terms)], terms, events_of(name, terms, 200_000))


def sequence(size: int, count: int) -> Task:
    """The V-shape over walking prices, in batches of `size` events."""
    terms = TermDictionary()
    events = quotes(terms, count)
    whole = EventBatch.concat(events.batches)
    parts = [whole.slice(low, low + size) for low in range(0, count, size)]
    prepared = Prepared.of(v_shape(1_000), terms)
    return lambda: sum(map(len, prepared.run(parts)))


def ceql(name: str, size: int) -> Task:
    """A query of CORE's over tables."""
    (query,) = (each for each in every() if each.name == name)
    (batch,) = stream(query.stream, 200_000).combine_chunks().to_batches()
    return by_oxiseq(query, [batch.slice(low, size) for low in range(0, len(batch), size)])


def operator(name: str) -> Task:
    """An operator of RSP-QL over a sliding window of a thousand events, in pushes of 200."""
    (query,) = (each for each in OPERATORS if each.name == name)

    def task() -> int:
        running = Running(query, 1_000, Sensors(1_000, 9_000))
        return sum(map(len, running.push(8_000, 200)[0]))

    return task


TASKS: Final[Mapping[str, Callable[[], Task]]] = {
    "graph patterns": matching,
    "SPAseq, batches of 8,192": partial(sequence, 8_192, 40_000),
    "SPAseq, single pushes": partial(sequence, 1, 3_000),
    "CEQL, batches of 8,192": partial(ceql, "S12", 8_192),
    "CEQL, batches of 100": partial(ceql, "S12", 100),
    "RSP-QL, join": partial(operator, "join"),
    "RSP-QL, GROUP BY": partial(operator, "GROUP BY"),
}


def work(only: str) -> dict[str, float]:
    """Seconds of CPU of each task in this process."""
    ready = {name: make() for name, make in TASKS.items() if only in name}
    return {name: min(each.seconds) for name, each in measure(ready, WITHIN, ready).items()}


def asked(only: str, **environment: str) -> dict[str, float]:
    """The same of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.shipped", "--work", "--only", only]
    told = subprocess.run(command, check=True, env={**os.environ, **environment}, stdout=subprocess.PIPE)
    answer: dict[str, Any] = json.loads(told.stdout)
    return answer


def main() -> int:
    """Print the medians; exit status 2 when one is out of bounds."""
    parser = argparse.ArgumentParser("python -m benchmarks.shipped")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TASK", help="those that have this in their names")
    parser.add_argument("--work", action="store_true", help="in this process, as JSON")
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(options.only)))
        return 0
    if archive.shipped() is None:
        print("NO ARCHIVE HERE: python -m oxiseq.warmup.shipping .", file=sys.stderr)
        return 1
    ways: Mapping[str, dict[str, str]] = {"shipped": {}, "native": {archive.NATIVE: "1"}}
    asked(options.only, **ways["native"])  # compiles
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, environment in ways.items():
            taken[name].append(asked(options.only, **environment))
    worst = 0.0
    for task in taken["shipped"][0]:
        ours, native = (median(each[task] for each in taken[name]) for name in ways)
        worst = max(worst, ours / native)
        print(f"{task:26} shipped {ours * 1e3:7.1f} ms, native {native * 1e3:7.1f} ms: {ours / native:5.2f} times")
    return 2 if worst > BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
