"""Many registered queries: what a push costs beside them, and registering them.

    python -m benchmarks.many [--queries 1 10 100 1000] [--languages spaseq ceql rspql epsparql sparql]
    python -m benchmarks.many --languages spaseq --kinds types known thresholds chosen starts lengths \
        --queries 1 1000 10000
    python -m benchmarks.against 666c5b34 many --ours --rounds 5 --at-most 1.1 -- --languages spaseq \
        --kinds starts lengths --queries 1000

Three kinds of queries have nothing to do with what comes: `predicates`: over the same stream, of other predicates or
types; `streams`: over other streams; `rows`: each has rows, or its first part is met, and never completes. The others,
of SPAseq, are sets of rules `SEQ(A; B)` of which events concern some: `types`: A has a type of its own, B is the same
pattern in all; `known`: so it is, and A asks the knowledge base, which knows half of all things; `absent`: as `types`,
but B does not come within the window; `partitions`: as `types`, with PARTITION BY ?c; `thresholds`: A has a threshold
of its own; `chosen`: A and B have predicates of their own, each event has one of them; `starts`: each event begins all,
few complete; `lengths`: only the lengths of windows differ; `counts`: as `types`, but matches are counted. Of CEQL:
`thresholds`: `T; U` with a threshold of its own in both. CPU time of
single pushes (median; of sets of rules the mean, since few events concern a query) and of batches of 1,000 (mean of all
events, catching up included), and the matches of an event. Every cell is a process of its own, so that memory is its
own, too: what registering takes, and all of the process in the end. `times`: a push and an event of a batch beside
those of the first number of queries. Single pushes and batches end early after `--seconds` of CPU time each.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from random import Random
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
RULES: Final = {
    "types": ("?c a :T{number} ; :price ?p", "FILTER(?q > ?p)"),
    "known": ("?c a :T{number} ; :price ?p . GRAPH :known {{ ?c :vip true }}", "FILTER(?q > ?p)"),
    "thresholds": ("?c a :T ; :price ?p FILTER(?p > {share})", "FILTER(?q > ?p)"),
    "chosen": ("?c :a{number} ?p", "FILTER(?q > ?p)"),
    "starts": ("?c :price ?p FILTER(?p > {below})", "FILTER(?q > ?p + 990)"),
    "lengths": ("?c a :T ; :price ?p", "FILTER(?q > ?p)"),
    "partitions": ("?c a :T{number} ; :price ?p", "FILTER(?q > ?p)"),
    "absent": ("?c a :T{number} ; :price ?p", "FILTER(?q > ?p)"),
    "counts": ("?c a :T{number} ; :price ?p", "FILTER(?q > ?p)"),
}
"""Of sets of rules: the pattern of A, and the filter of B."""
OF_LANGUAGE: Final = {"spaseq": tuple(RULES), "ceql": ("thresholds",)}
"""The sets of rules that there are in a language."""
PRICES: Final = 1000
"""Of rules: prices below, thresholds between, types."""
SINGLE: Final = 400
"""Single pushes; the first quarter is to warm up."""
BATCHES: Final = 60
LEAST: Final = 4
"""Of single pushes, and of batches, also where each takes longer than there is time for all."""
SECOND: Final = 1_000_000
COUNT: Final = "match_count" if hasattr(oxiseq.ContinuousQuery, "match_count") else "found"
"""How a query's number of matches is called; it was `found` up to 666c5b34."""
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


def rule(language: str, kind: str, number: int, queries: int) -> str:
    """Rule `number` of a set of so many."""
    if language == "ceql":
        tests = f"a[price > {PRICES * number / queries:.4f}] AND b[price > {PRICES * number / queries:.4f}]"
        return f"VOCAB <{E}> SELECT * FROM s WHERE T AS a; U AS b FILTER {tests} WITHIN 10 SECONDS"
    a, b = RULES[kind]
    length = 10_000 + (number if kind == "lengths" else 0)
    price = f":b{number}" if kind == "chosen" else ":price"
    share = PRICES * number / queries if kind == "thresholds" else number / queries
    first = a.format(number=number, share=f"{share:.4f}", below=f"{-1 - share:.4f}")
    sequence, shown = ("A; B!", "?c ?p") if kind == "absent" else ("A; B", "?c ?p ?q")
    group = "GROUP BY ?c (ENDTIME() AS ?t)" if kind == "counts" else ""
    shown = "?c ?t (COUNT(*) AS ?n)" if group else shown
    by = "PARTITION BY ?c " if kind == "partitions" else ""
    return (
        f"PREFIX : <{E}> SELECT {shown} WITHIN {length} MILLISECONDS SLIDING {by}FROM STREAM S <{STREAM}> WHERE {{ "
        f"SEQ({sequence}) DEFINE GPM A ON S {{ {first} }} "
        f"DEFINE GPM B ON S {{ ?c {price} ?q {b} }} }} {group}"
    )


def rules_event(language: str, kind: str, dice: Random) -> list[Triple]:
    """An event that concerns some rules of a set: one price of one of 100 things, of a type where rules ask for one."""
    thing, price = NamedNode(f"{E}c{dice.randrange(100)}"), dice.randrange(PRICES)
    if kind == "chosen":
        return [Triple(thing, NamedNode(f"{E}{dice.choice('ab')}{dice.randrange(PRICES)}"), Literal(price))]
    types = [f"{E}T{dice.randrange(PRICES)}"] if kind in ("types", "partitions", "absent", "known", "counts") else []
    if kind in ("thresholds", "lengths"):  # mostly low, and one of 20 begins something: few matches
        price = int(PRICES * dice.random() ** (8 if language == "ceql" else 4))
        types = [f"{E}T" if language == "spaseq" else f"{E}{dice.choice('TU')}"] if dice.random() < 0.05 else []
    typed = [Triple(thing, RDF_TYPE, NamedNode(each)) for each in types]
    return [*typed, Triple(thing, NamedNode(f"{E}price"), Literal(price))]


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


def cell(language: str, kind: str, queries: int, seconds: float) -> dict[str, float]:
    """Figures of one way; in a process that has not registered anything before."""
    store = oxiseq.Store()
    more: dict[str, Any] = {"language": language}
    store.register(
        text_of(language, "predicates" if kind in RULES else kind, 10**6), **more
    )  # grammar and kernels are loaded
    known = " ".join(f":c{number} :vip true ." for number in range(0, 100, 2))
    store.update(f"PREFIX : <{E}> INSERT DATA {{ GRAPH :known {{ {known} }} }}")
    texts = [rule(language, kind, n, queries) if kind in RULES else text_of(language, kind, n) for n in range(queries)]
    gc.collect()
    before, begun = resident(), process_time()
    registered = [store.register(text, **more) for text in texts]
    taken = process_time() - begun
    gc.collect()
    found = {"register_s": taken, "register_MB": resident() - before, "MB": resident()}
    if language == "sparql":
        return found
    dice = Random(5)
    if kind not in RULES:
        graphs = [event(number) for number in range(1000)]
        return {**found, **_pushes(store, graphs, SECOND, statistics.median, seconds), "MB": resident()}
    graphs = [rules_event(language, kind, dice) for _ in range(1000)]
    pushes = _pushes(store, graphs, SECOND // 10, statistics.mean, seconds)
    matches = sum(getattr(query, COUNT) for query in registered) / pushes.pop("events")
    return {**found, **pushes, "matches": matches, "MB": resident()}


def _pushes(
    store: oxiseq.Store,
    graphs: list[list[Triple]],
    gap: int,
    average: Callable[[list[int]], float],
    seconds: float,
) -> dict[str, float]:
    """`gap`: from event to event, in µs; `average` of single pushes, which end after `seconds`, as batches do."""
    push, many = store.stream(STREAM).push, store.stream(STREAM).extend
    taken: list[int] = []
    now = 0
    for number in range(SINGLE):
        now += gap
        begun = process_time_ns()
        push(graphs[number % len(graphs)], now)
        taken.append(process_time_ns() - begun)
        if sum(taken) > seconds * 1e9 and len(taken) >= LEAST:
            break
    batched: list[int] = []
    for _ in range(BATCHES):
        events = [(now + gap * (i + 1), graph) for i, graph in enumerate(graphs)]
        now += gap * len(graphs)
        begun = process_time_ns()
        many(events)
        batched.append(process_time_ns() - begun)
        if sum(batched) > seconds * 1e9 and len(batched) >= LEAST:
            break
    return {
        "push_us": average(taken[len(taken) // 4 :]) / 1e3,
        "batch_us": statistics.mean(batched[len(batched) // 4 :]) / 1e3 / len(graphs),
        "events": len(taken) + len(batched) * len(graphs),
    }


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.many")
    options.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100, 1000])
    options.add_argument("--languages", nargs="+", default=[*TEXTS, "sparql"], choices=[*TEXTS, "sparql"])
    options.add_argument("--kinds", nargs="+", default=[*KINDS], choices=[*KINDS, *RULES])
    options.add_argument(
        "--seconds", type=float, default=20.0, help="CPU time of single pushes, and of batches, a cell"
    )
    options.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.cell:
        language, kind, queries = chosen.cell
        print(json.dumps(cell(language, kind, int(queries), chosen.seconds)))
        return
    columns = "language | kind | queries | µs per push | µs per event of a batch | times | matches | s to register"
    print(f"{machine()}\n\n| {columns} | MB for them | MB in all |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for language in chosen.languages:
        kinds = [kind for kind in chosen.kinds if kind in (*KINDS, *OF_LANGUAGE.get(language, ()))]
        for kind in kinds if language != "sparql" else ["over the store"]:
            first: dict[str, float] = {}
            for queries in chosen.queries:
                asked = [sys.executable, "-m", "benchmarks.many", "--cell", language, kind, str(queries)]
                asked += ["--seconds", str(chosen.seconds)]
                found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
                first = first or found
                pushes = "- | - | -"
                if "push_us" in found:
                    push, batch = (found[name] / first[name] for name in ("push_us", "batch_us"))
                    pushes = f"{found['push_us']:.1f} | {found['batch_us']:.2f} | {push:.1f} / {batch:.1f}"
                matches = f"{found['matches']:.2f}" if "matches" in found else "-"
                print(
                    f"| {language} | {kind} | {queries:,} | {pushes} | {matches} | {found['register_s']:.2f} | "
                    f"{found['register_MB']:.0f} | {found['MB']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
