"""Many registered queries: what a push costs beside queries that have nothing to do with it, and registering them.

    python -m benchmarks.many [--queries 1 10 100 1000] [--languages spaseq ceql rspql epsparql sparql]

Three kinds of queries: `predicates`: over the same stream, of other predicates or types; `streams`: over other streams;
`rows`: each has rows, or its first part is met, and never completes. CPU time of single pushes (median) and of batches
of 1,000 (mean of all events, catching up included). Every cell is a process of its own, so that memory is its own, too;
the resident memory that registering takes is told per 1,000 queries.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from time import process_time, process_time_ns
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Triple

import oxiseq
from benchmarks.machine import machine

E: Final = "http://example.org/"
STREAM: Final = E + "s"
RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
DURATION: Final = "<http://www.w3.org/2001/XMLSchema#duration>"
KINDS: Final = ("predicates", "streams", "rows")
SINGLE: Final = 400
"""Single pushes; the first quarter is to warm up."""
BATCHES: Final = 60
SECOND: Final = 1_000_000
Text = Callable[[str, str, str], str]
"""Stream, first and second name → query."""


def _spaseq(stream: str, first: str, second: str) -> str:
    return (
        f"PREFIX : <{E}> SELECT ?x ?y WITHIN 1 MINUTE FROM STREAM S <{E}{stream}> WHERE {{ SEQ(A; B) "
        f"DEFINE GPM A ON S {{ ?h :p{first} ?x }} DEFINE GPM B ON S {{ ?h :p{second} ?y }} }}"
    )


def _ceql(stream: str, first: str, second: str) -> str:
    return f"VOCAB <{E}> SELECT * FROM {stream} WHERE (T{first}; T{second}) WITHIN 1 MINUTE"


def _rspql(stream: str, first: str, second: str) -> str:
    return (
        f"PREFIX : <{E}> SELECT ?h ?x ?y FROM NAMED WINDOW :w ON :{stream} [RANGE PT1M STEP PT10S] "
        f"WHERE {{ WINDOW :w {{ ?h :p{first} ?x . ?h :p{second} ?y }} }}"
    )


def _epsparql(stream: str, first: str, second: str) -> str:
    return (
        f"PREFIX : <{E}> SELECT ?x ?y FROM STREAM :{stream} WHERE {{ {{ ?h :p{first} ?x }} SEQ "
        f'{{ ?h :p{second} ?y }} FILTER(getDURATION() < "PT1M"^^{DURATION}) }}'
    )


TEXTS: Final[dict[str, Text]] = {"spaseq": _spaseq, "ceql": _ceql, "rspql": _rspql, "epsparql": _epsparql}


def text_of(language: str, kind: str, number: int) -> str:
    """Query `number` of a kind. Events have the type T0 and the predicate p0; no event has any other."""
    if language == "sparql":
        return f"PREFIX : <{E}> SELECT ?s ?v {{ ?s :in :room{number} ; :value ?v FILTER(?v > {number % 90}) }}"
    first = "0" if kind == "rows" else str(2 * number + 1)
    return TEXTS[language](f"s{number}" if kind == "streams" else "s", first, str(2 * number + 2))


def event(number: int) -> list[Triple]:
    """An event's graph."""
    thing = NamedNode(f"{E}h{number % 50}")
    return [Triple(thing, RDF_TYPE, NamedNode(E + "T0")), Triple(thing, NamedNode(E + "p0"), Literal(number % 100))]


def resident() -> float:
    """MB of this process."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def cell(language: str, kind: str, queries: int) -> dict[str, float]:
    """Figures of one way; in a process that has not registered anything before."""
    store = oxiseq.Store()
    more: dict[str, Any] = {"language": language}
    store.register(text_of(language, kind, 10**6), **more)  # grammar and kernels are loaded
    gc.collect()
    before, begun = resident(), process_time()
    for number in range(queries):
        store.register(text_of(language, kind, number), **more)
    seconds = process_time() - begun
    gc.collect()
    found = {"register_s": seconds, "register_MB": resident() - before}
    return found if language == "sparql" else {**found, **_pushes(store)}


def _pushes(store: oxiseq.Store) -> dict[str, float]:
    push, many = store.stream(STREAM).push, store.stream(STREAM).extend
    taken: list[int] = []
    graphs = [event(number) for number in range(1000)]
    now = 0
    for _ in range(SINGLE):
        now += SECOND
        begun = process_time_ns()
        push(graphs[now // SECOND % 1000], now)
        taken.append(process_time_ns() - begun)
    batched: list[int] = []
    for _ in range(BATCHES):
        events = [(now + SECOND * (i + 1), graph) for i, graph in enumerate(graphs)]
        now += SECOND * len(graphs)
        begun = process_time_ns()
        many(events)
        batched.append(process_time_ns() - begun)
    return {
        "push_us": statistics.median(taken[SINGLE // 4 :]) / 1e3,
        "batch_us": statistics.mean(batched[BATCHES // 4 :]) / 1e3 / len(graphs),
    }


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.many")
    options.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100, 1000])
    options.add_argument("--languages", nargs="+", default=[*TEXTS, "sparql"], choices=[*TEXTS, "sparql"])
    options.add_argument("--kinds", nargs="+", default=[*KINDS], choices=KINDS)
    options.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.cell:
        language, kind, queries = chosen.cell
        print(json.dumps(cell(language, kind, int(queries))))
        return
    print(f"{machine()}\n\n| language | kind | queries | µs per push | µs per event of a batch | s to register | MB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for language in chosen.languages:
        for kind in chosen.kinds if language != "sparql" else ["over the store"]:
            for queries in chosen.queries:
                asked = [sys.executable, "-m", "benchmarks.many", "--cell", language, kind, str(queries)]
                found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
                pushes = f"{found['push_us']:.1f} | {found['batch_us']:.2f}" if "push_us" in found else "- | -"
                print(
                    f"| {language} | {kind} | {queries:,} | {pushes} | {found['register_s']:.2f} | "
                    f"{found['register_MB']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
