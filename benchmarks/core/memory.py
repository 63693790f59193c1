"""Memory of one query over a long stream, in a process of its own: `python -m benchmarks.core.memory NAME EVENTS`.

The stream's table is repeated, with times that continue, in batches as a file's reader would bring them; resident
memory is sampled after each batch. What is printed: the samples before anything but a first small run, over the second
quarter (most), over the last (most), and at the peak, in bytes; of the peak, what no library's file backs; and the
number of matches.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from benchmarks.core.queries import Query, every
from benchmarks.core.streams import repeated, stream
from benchmarks.soak.watch import private, resident
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.tuples import TupleRows, read_rows
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

BATCH = 8_192
TABLE = 100_000
"""Events of the table that is repeated."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes resident: before, most in the second quarter and in the last; most ever; `private`: most that no file
    backs. `records`: nodes at the end."""

    before: int
    second: int
    last: int
    peak: int
    private: int
    records: int
    matches: int

    @property
    def growth(self) -> float:
        """From the second quarter to the last."""
        return self.last / self.second


def sampled(query: Query, events: int) -> Memory:
    """Run it here."""
    plan = compile_ceql(load(query.text, "ceql"))
    table = stream(query.stream, min(events, TABLE))
    (name,) = plan.streams
    warm = TupleRun(plan, TermDictionary())
    for rows in read_rows(table.slice(0, 1_000)):
        warm.push(name, rows)
    warm.advance()
    run, before, samples, own, found = TupleRun(plan, TermDictionary()), resident(), [], [], 0
    for rows in _rows(query, table, events):
        run.push(name, rows)
        found += sum(len(batch) for batch in run.advance())
        samples.append(resident())
        own.append(private())
    quarter = max(1, len(samples) // 4)
    second = max(samples[quarter : 2 * quarter] or samples)
    return Memory(before, second, max(samples[-quarter:]), max(samples), max(own), run.state["nodes"], found)


def apart(query: Query, events: int) -> Memory:
    """Run it in a process of its own. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.core.memory", query.name, str(events)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Memory(**json.loads(done.stdout))


def _rows(query: Query, table: object, events: int) -> Iterator[TupleRows]:
    left = events
    for piece in repeated(table, query.clock, 1_000 if query.stream == "stocks" else 1_000_000, BATCH):
        for rows in read_rows(piece.slice(0, left)):
            yield rows
            left -= len(rows)
        if left <= 0:
            return


if __name__ == "__main__":
    (found,) = (query for query in every() if query.name == sys.argv[1])
    print(json.dumps(asdict(sampled(found, int(sys.argv[2])))))
