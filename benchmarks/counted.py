"""Aggregates over matches where none is listed: what they cost beside the automaton alone.

    python -m benchmarks.counted [--events 20000] [--rounds 5] [--only "each end"] [--lengths]

CPU time per event of one stream of random events of four types, all ways in one run. `automaton`: the query with
LIMIT 1, which finds the same matches and tells one of each end. `alert`: HAVING that does not hold, as alerts mostly do
not, but where 10^18 matches and more end at one event. `count`: a row for each event at which matches end; `doubles`:
the values are such. The ratio is to `automaton` of the same pattern and window. `--only`: ways that have this in their
names. `--lengths`: instead, what composed windows make in sliding windows of 10, 100 and 400 seconds, 100 events a
second; the ratio is to the shortest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyoxigraph import Store

from benchmarks.machine import machine
from benchmarks.measure import measure
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

E: Final = "http://example.org/"
KEYS: Final = 110
NEVER: Final = 10**18
CEQL: Final = {
    "automaton": "SELECT * {} LIMIT 1",
    "alert": f"SELECT COUNT(*) AS n {{}} HAVING COUNT(*) > {NEVER}",
    "alert on a sum": f"SELECT SUM(y[v]) AS s {{}} HAVING COUNT(*) > {NEVER}",
    "count": "SELECT COUNT(*) AS n {}",
    "sum": "SELECT SUM(y[v]) AS s {}",
}
PATTERNS: Final = ("A AS x; B AS y; C AS z", "A AS x; B+ AS y; C AS z")
WINDOWS: Final = {
    "sliding 100 events": "WITHIN 100 EVENTS",
    "sliding 1,000 events": "WITHIN 1000 EVENTS",
    "keyed, sliding 10 events of a key": "PARTITION BY [k] WITHIN 10 EVENTS",
}
SPASEQ: Final = {
    "automaton": ("SELECT ?k", "LIMIT 1"),
    "alert": ("SELECT (COUNT(*) AS ?n)", f"HAVING (COUNT(*) > {NEVER})"),
    "sum over iterations": ("SELECT (SUM(SUM(?bv)) AS ?s)", ""),
    "list and sum": ("SELECT (SUM(MAX(?bv)) AS ?s)", ""),
    "count at each end": ("SELECT (COUNT(*) AS ?n)", "GROUP BY (ENDTIME())"),
    "sum at each end": ("SELECT (SUM(?av) AS ?s)", "GROUP BY (ENDTIME())"),
    "sum over iterations at each end": ("SELECT (SUM(SUM(?bv)) AS ?s)", "GROUP BY (ENDTIME())"),
    "average at each end": ("SELECT (AVG(?av) AS ?s)", "GROUP BY (ENDTIME())"),
    "sum of doubles at each end": ("SELECT (SUM(?av) AS ?s)", "GROUP BY (ENDTIME())"),
    "sum on change": ("SELECT (SUM(?av) AS ?s)", "REPORT ON CONTENT CHANGE"),
    "sum every second": ("SELECT (SUM(?av) AS ?s)", "REPORT EVERY 1 SECOND"),
    "sum every 10 ms": ("SELECT (SUM(?av) AS ?s)", "REPORT EVERY PT0.01S"),
    "sum every second by key": ("SELECT ?k (SUM(?av) AS ?s)", "GROUP BY ?k REPORT EVERY 1 SECOND"),
    "sum at close": ("SELECT (SUM(?av) AS ?s)", "REPORT ON WINDOW CLOSE"),
    "best at each end": ("SELECT ?k (SUM(?av) AS ?s)", "GROUP BY ?k (ENDTIME()) ORDER BY DESC(?s) LIMIT 1"),
    "best on change": ("SELECT ?k (SUM(?av) AS ?s)", "GROUP BY ?k ORDER BY DESC(?s) LIMIT 1 REPORT ON CONTENT CHANGE"),
    "best ten every second": (
        "SELECT ?k (SUM(?av) AS ?s)",
        "GROUP BY ?k ORDER BY DESC(?s) LIMIT 10 REPORT EVERY 1 SECOND",
    ),
    "best ten at close": (
        "SELECT ?k (SUM(?av) AS ?s)",
        "GROUP BY ?k ORDER BY DESC(?s) LIMIT 10 REPORT ON WINDOW CLOSE",
    ),
    "sum at close by key": ("SELECT ?k (SUM(?av) AS ?s)", "GROUP BY ?k REPORT ON WINDOW CLOSE"),
}
SPANS: Final = {
    "tumbling, 1,000 events": "WITHIN PT1S",
    "sliding, 1,000 events": "WITHIN PT1S SLIDING",
}
LENGTHS: Final = (10, 100, 400)
"""Seconds."""
COMPOSED: Final = ("each end", "on change", "every")
"""In the names of what composed windows make."""


def table(events: int, gap: int = 1_000) -> pa.Table:
    """Events of four types, one each `gap` microseconds."""
    dice = np.random.default_rng(1)
    return pa.table(
        {
            "type": ["ABCD"[i] for i in dice.integers(0, 4, events)],
            "time": np.arange(events) * gap,
            "v": dice.integers(0, 100, events),
            "k": dice.integers(0, KEYS, events),
        }
    )


def ceql(text: str, rows: pa.Table) -> Callable[[], int]:
    """The task of a CEQL query: how many answers it has."""
    plan, batches = compile_ceql(load(f"VOCAB <{E}> {text}", "ceql")), list(read_rows(rows))

    def task() -> int:
        run, found = TupleRun(plan, TermDictionary()), 0
        for batch in batches:
            run.push(f"{E}S", batch)
            found += sum(map(len, run.advance()))
        return found

    return task


def spaseq(select: str, tail: str, window: str, rows: pa.Table, *, doubles: bool = False) -> Callable[[], int]:
    """The same of `A; B;+; C` of one key."""
    gpms = " ".join(f"DEFINE GPM {n} ON S {{ ?{n.lower()} :is :{n} ; :k ?k ; :v ?{n.lower()}v }}" for n in "ABC")
    where = f"{window} FROM STREAM S <{E}s> WHERE {{ SEQ(A; B;+; C) {gpms} }}"
    query = load(f"PREFIX : <{E}> {select} {where} {tail}")
    terms = TermDictionary()
    plan = compile_query(query, terms)
    event = "<{0}e{1}> <{0}is> <{0}{2}> . <{0}e{1}> <{0}k> {3} . <{0}e{1}> <{0}v> {4} ."
    integer = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    value = '"{}.5E0"^^<http://www.w3.org/2001/XMLSchema#double>' if doubles else integer
    batch = encode_events(
        [
            (row["time"], event.format(E, i, row["type"], integer.format(row["k"]), value.format(row["v"])))
            for i, row in enumerate(rows.to_pylist())
        ],
        terms,
    )

    def task() -> int:
        run = QueryRun(plan, terms, StoreKb(Store()))
        run.push(f"{E}s", batch)
        found = run.advance()
        run.close()
        return sum(map(len, [*found, *run.advance()]))

    return task


def cases(rows: pa.Table, only: str) -> Iterator[tuple[str, str, dict[str, Callable[[], int]]]]:
    """Pattern, window, and the ways: `automaton`, and those that have `only` in their names."""
    for pattern in PATTERNS if any(only in name for name in CEQL) else ():
        for window, clause in WINDOWS.items():
            yield (
                f"CEQL {pattern}",
                window,
                {
                    name: ceql(text.format(f"FROM S WHERE {pattern} {clause}"), rows)
                    for name, text in CEQL.items()
                    if name == "automaton" or only in name
                },
            )
    for span, window in SPANS.items():
        ways = {
            name: spaseq(*parts, window, rows, doubles="doubles" in name)
            for name, parts in SPASEQ.items()
            if name == "automaton" or (only in name and not ("SLIDING" in window and "at close" in name))
        }
        yield "SPAseq A; B;+; C of one key", span, ways


def lengths(rows: pa.Table, only: str) -> Iterator[tuple[str, str, dict[str, Callable[[], int]]]]:
    """Pattern, way, and windows by their lengths."""
    for name, parts in SPASEQ.items():
        if only in name and any(each in name for each in COMPOSED):
            tasks = {
                f"{seconds} s": spaseq(*parts, f"WITHIN PT{seconds}S SLIDING", rows, doubles="doubles" in name)
                for seconds in LENGTHS
            }
            yield "SPAseq A; B;+; C of one key", name, tasks
    for pattern in PATTERNS:
        for name in ("count", "sum"):
            if only in name:
                text = CEQL[name].format(f"FROM S WHERE {pattern} WITHIN {{}} SECONDS")
                yield f"CEQL {pattern}", name, {f"{seconds} s": ceql(text.format(seconds), rows) for seconds in LENGTHS}


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.counted")
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", default="")
    options.add_argument("--lengths", action="store_true")
    asked = options.parse_args()
    count = max(asked.events, 2 * 100 * LENGTHS[-1]) if asked.lengths else asked.events
    rows = table(count, 10_000 if asked.lengths else 1_000)
    columns = "way | window" if asked.lengths else "window | way"
    print(f"{machine()}\n\n| pattern | {columns} | answers | µs per event | ratio |\n|---|---|---|---:|---:|---:|")
    for pattern, fixed, ways in (lengths if asked.lengths else cases)(rows, asked.only):
        measured = measure(ways, asked.rounds, ways)
        first = next(iter(measured.values())).median
        for name, each in measured.items():
            figures = f"{1e6 * each.median / count:.2f} | {each.median / first:.2f}"
            print(f"| {pattern} | {fixed} | {name} | {each.answer:,} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
