"""What a process holds before it has read an event: `python -m benchmarks.core.base`.

Resident memory after each step, in MB: libraries one after the other, then a query of `benchmarks.core`, its table, and
its first rows, for which kernels are loaded. "private" is what no file backs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from benchmarks.soak.watch import private, resident

LIBRARIES = ("numpy", "pyarrow", "pyarrow.compute", "pyoxigraph", "llvmlite.binding", "numba")
OWN = ("oxiseq.engine.run.tuples", "benchmarks.core.memory")
QUERY = "T3'"


def main() -> None:
    """Print a line for each step, with what it adds."""
    before = 0
    for name, step in steps():
        step()
        now = resident()
        print(f"{name:40} {now / 1e6:6.0f} MB, {(now - before) / 1e6:+6.1f}, private {private() / 1e6:5.0f}")
        before = now


def steps() -> list[tuple[str, Any]]:
    """What is done one after the other."""
    known: dict[str, Any] = {}

    def compiled() -> None:
        queries, plans = import_module("benchmarks.core.queries"), import_module("oxiseq.engine.cea.plan")
        known["query"] = next(query for query in queries.every() if query.name == QUERY)
        known["plan"] = plans.compile_ceql(import_module("oxiseq.grammar").load(known["query"].text, "ceql"))

    def drawn() -> None:
        known["table"] = import_module("benchmarks.core.streams").stream(known["query"].stream, 100_000)

    def run() -> None:
        tuples, terms = import_module("oxiseq.engine.run.tuples"), import_module("oxiseq.engine.terms.dictionary")
        running = known["run"] = tuples.TupleRun(known["plan"], terms.TermDictionary())
        for rows in import_module("oxiseq.engine.events.tuples").read_rows(known["table"].slice(0, 1_000)):
            running.push(known["plan"].streams[0], rows)
        running.advance()

    imports = [(f"import {name}", lambda name=name: import_module(name)) for name in (*LIBRARIES, *OWN)]
    return [
        ("Python", lambda: None),
        *imports,
        ("query compiled", compiled),
        ("table of 100,000 rows drawn", drawn),
        ("1,000 rows: kernels loaded", run),
    ]


if __name__ == "__main__":
    sys.exit(main())
