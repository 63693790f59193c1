"""CEQL over tables that come in batches of few rows: `python -m benchmarks.batches [NAME...]`.

CPU time per row from Arrow batches to columns of matches, beside a plain NumPy pass that compares the same columns with
the query's constants in the same batches, in turns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from benchmarks.core.queries import Query, every
from benchmarks.core.streams import stream
from benchmarks.measure import measure
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

NAMES = ("S3", "S12", "S24", "Q6", "H3")
SIZES = (1, 10, 100, 8192)
ROWS = 40_000
MOST = 2_000
"""Batches of a run at most."""
ROUNDS = 5


def by_oxiseq(query: Query, parts: list[pa.RecordBatch]) -> Callable[[], int]:
    """A task that answers the query; it returns the number of matches."""
    plan = compile_ceql(load(query.text, "ceql"))

    def run() -> int:
        running, found = TupleRun(plan, TermDictionary()), 0
        for part in parts:
            for rows in read_rows(part):
                running.push(plan.streams[0], rows)
            found += sum(len(batch) for batch in running.advance())
        return found

    return run


def by_numpy(query: Query, parts: list[pa.RecordBatch]) -> Callable[[], int]:
    """A task that asks each step's tests of each row, codes instead of texts; it returns how many hold."""
    tests = {test for step in query.steps for test in step.tests}
    names = sorted({name for name, _, _ in tests})

    def run() -> int:
        found = 0
        for part in parts:
            columns = {}
            for name in names:
                column = part.column(part.schema.get_field_index(name))
                columns[name] = np.from_dlpack(column.indices if pa.types.is_dictionary(column.type) else column)
            for name, comparison, value in tests:
                asked = 0 if isinstance(value, str) else value
                values = columns[name]
                found += int(np.count_nonzero(values == asked if comparison == "=" else values > asked))
        return found

    return run


def main(names: list[str]) -> None:
    """Print a line for each query and size of batches."""
    for query in every():
        if query.name not in (names or NAMES):
            continue
        (batch,) = stream(query.stream, ROWS).combine_chunks().to_batches()
        for size in SIZES:
            rows = min(len(batch), size * MOST)
            parts = [batch.slice(low, size) for low in range(0, rows, size)]
            ways = {"oxiseq": by_oxiseq(query, parts), "NumPy": by_numpy(query, parts)}
            ours, plain = (each.median / rows * 1e6 for each in measure(ways, ROUNDS, ways).values())
            print(f"{query.name:4} {size:5} rows {ours:8.2f} µs a row, NumPy {plain:7.3f}: {ours / plain:5.1f} times")


if __name__ == "__main__":
    main(sys.argv[1:])
