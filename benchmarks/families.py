"""Registered queries that are alike and all match: what they cost together, beside one of them.

    python -m benchmarks.families [--queries 1 100] [--kinds columns windows thresholds] [--outputs count first listed]

`A; B;+; C` with a key of 110 values over one stream, in sliding windows. `columns`: but for the columns that they show;
`windows`: each has a length of its own; `thresholds`: each asks other values of A and B. Output: COUNT(*) of each end
(`count`), the first match of each instant (`first`), or all matches (`listed`). CPU time per event, of coded events in
batches of 1,000, and how many matches an event has; the last column is beside one query in the same process, both
measured in turns.
"""

from __future__ import annotations

import argparse
import random
import statistics
from time import process_time
from typing import Final

import numpy as np
from pyoxigraph import Literal, NamedNode, Store

from benchmarks.machine import machine
from oxiseq import grammar
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary

E: Final = "http://example.org/"
STREAM: Final = E + "s"
KEYS: Final = 110
TICK: Final = 1_000_000
BATCH: Final = 1000
BATCHES: Final = 30
KINDS: Final = ("columns", "windows", "thresholds")
OUTPUTS: Final = ("count", "first", "listed")
_XSD: Final = "http://www.w3.org/2001/XMLSchema#integer"


def text_of(kind: str, output: str, number: int) -> str:
    """Query `number` of a kind."""
    window = 900 - (8 * number if kind == "windows" else 0)
    bound = number // 2 if kind == "thresholds" else 0
    shown = ("?x", "?k", "?y")[: 1 + number % 3] if kind == "columns" else ("?k", "?x")
    select = "(ENDTIME() AS ?t) (COUNT(*) AS ?n)" if output == "count" else " ".join(shown)
    behind = {"count": "GROUP BY (ENDTIME())", "first": "LIMIT 1", "listed": ""}[output]
    gpms = "\n".join(
        f"DEFINE GPM {name} ON S {{ ?k :{name} ?{variable} {condition} }}"
        for name, variable, condition in (
            ("A", "x", f"FILTER(?x >= {bound})"),
            ("B", "y", f"FILTER(?y >= {bound})"),
            ("C", "z", ""),
        )
    )
    return (
        f"PREFIX : <{E}> SELECT {select} WITHIN PT{window}S SLIDING FROM STREAM S <{STREAM}> "
        f"WHERE {{ SEQ(A; B;+; C)\n{gpms} }} {behind}"
    )


class Registered:
    """So many queries of a kind, and what they have found."""

    def __init__(self, kind: str, output: str, queries: int, terms: TermDictionary) -> None:
        self.runs = Runs(terms)
        self.matches = 0
        self.seconds: list[float] = []
        kb = StoreKb(Store())
        for number in range(queries):
            query = grammar.load(text_of(kind, output, number))
            self.runs.add(QueryRun(compile_query(query, terms), terms, kb))

    def push(self, batch: EventBatch) -> None:
        """Let them work on a batch."""
        begun = process_time()
        outcomes = self.runs.push(STREAM, batch)
        self.seconds.append(process_time() - begun)
        for outcome in outcomes:
            assert outcome.error is None
            self.matches += sum(map(len, outcome.matches))


def batches(terms: TermDictionary) -> list[EventBatch]:
    """An event: a triple with one of the predicates A, B, C, a key, and a number below 100."""
    dice = random.Random(1)
    predicates = [terms.intern(NamedNode(E + name)) for name in "ABC"]
    keys = [terms.intern(NamedNode(f"{E}k{number}")) for number in range(KEYS)]
    numbers = [terms.intern(Literal(str(number), datatype=NamedNode(_XSD))) for number in range(100)]
    made = []
    for batch in range(BATCHES):
        time = (np.arange(BATCH, dtype=np.int64) + batch * BATCH) * TICK
        columns = (np.array(dice.choices(of, k=BATCH), np.uint32) for of in (keys, predicates, numbers))
        made.append(EventBatch(time, np.arange(BATCH + 1, dtype=np.int64), *columns))
    return made


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.families")
    options.add_argument("--queries", type=int, nargs="+", default=[10, 100])
    options.add_argument("--kinds", nargs="+", default=[*KINDS], choices=KINDS)
    options.add_argument("--outputs", nargs="+", default=[*OUTPUTS], choices=OUTPUTS)
    chosen = options.parse_args()
    print(f"{machine()}\n\n| differ in | output | queries | matches per event | µs per event | beside one |")
    print("|---|---|---:|---:|---:|---:|")
    for kind in chosen.kinds:
        for output in chosen.outputs:
            terms = TermDictionary()
            sizes = [1, *chosen.queries]
            all_ = [Registered(kind, output, queries, terms) for queries in sizes]
            for batch in batches(terms):
                for each in all_:
                    each.push(batch)
            took = [statistics.median(each.seconds[BATCHES // 3 :]) * 1e6 / BATCH for each in all_]
            for queries, each, taken in zip(sizes, all_, took, strict=True):
                print(
                    f"| {kind} | {output} | {queries} | {each.matches / BATCH / BATCHES:.2f} | {taken:.2f} | "
                    f"{taken / took[0]:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
