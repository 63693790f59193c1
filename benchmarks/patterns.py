"""Cases `patterns`, `passes` and `pushes`: graph patterns alone, many queries on one stream, one event at a time."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Triple

from benchmarks.data import BATCH, NS, SECOND, START, iri
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq import ContinuousQuery, Store
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.matching.plan import GpmRequest, compile_stream
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

READINGS = NS + "readings"
_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
RATE = 4_000_000
"""Star events per second that are asked for."""

PATTERNS: Mapping[str, str] = {
    "star of 4, two numeric filters":
        "?e :type :Reading ; :power ?p ; :flow ?f ; :zone ?z . FILTER(?p > 499 && ?f > 799)",
    "chain of 3": "?e :zone ?z . ?z :part ?b . ?b :owner ?o .",
    "tree of 4": "?e :power ?p ; :zone ?z . ?z :part ?b . ?z :floor ?l .",
    "cycle of 3": "?e :zone ?z . ?z :part ?b . ?b :holds ?e .",
    "star, 4 values of one predicate": "?e :type :Reading ; :many ?m ; :power ?p . FILTER(?m > 499)",
}
KINDS = ("own thresholds", "own types", "own predicates")
COUNTS = (1, 10, 100)
LIMITS = {"own thresholds": 7.0, "own types": 1.5, "own predicates": 1.5}


def _shape(name: str) -> tuple[tuple[str, str, str], ...]:
    """The triples of an event: (subject, predicate, object), names of places."""
    if name.startswith("star, 4"):
        return (("e", "type", "Reading"), ("e", "power", "#"), *((("e", "many", "#"),) * 4))
    if name.startswith("star"):
        return (("e", "type", "Reading"), ("e", "power", "#"), ("e", "flow", "#"), ("e", "zone", "z"),
                ("e", "more", "#"))
    return (("e", "zone", "z"), ("z", "part", "b"), ("b", "owner", "#"), ("e", "power", "#"),
            ("b", "holds", "e") if name.startswith("cycle") else ("z", "floor", "#"))


def events_of(name: str, terms: TermDictionary, number: int, seed: int = 4) -> tuple[EventBatch, ...]:
    """Events whose subjects are their own, as batches of coded triples."""
    shape, dice = _shape(name), np.random.default_rng(seed)
    numbers = terms.intern_all(Literal(str(i), datatype=_INTEGER) for i in range(1_000))
    own = {place: terms.blanks(number) for place in ("e", "z", "b")}

    def column(place: str) -> NDArray[np.integer]:
        if place == "#":
            return numbers[dice.integers(0, 1_000, number)]
        return own[place] if place in own else np.full(number, terms.intern(iri(place)))

    subject, object_ = (np.stack([column(t[i]) for t in shape], axis=1) for i in (0, 2))
    predicate = np.tile(terms.intern_all(iri(t[1]) for t in shape), number)
    batch = EventBatch(
        START + SECOND * np.arange(number), len(shape) * np.arange(number + 1), subject.ravel().astype(np.uint32),
        predicate.astype(np.uint32), object_.ravel().astype(np.uint32),
    )  # fmt: skip
    terms.hold(*batch.ids)
    return tuple(batch.slice(low, low + BATCH) for low in range(0, number, BATCH))


def query(body: str) -> str:
    """A query of one GPM over readings."""
    return f"PREFIX : <{NS}> SELECT * FROM STREAM S <{READINGS}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {body} }} }}"


def _request(body: str, terms: TermDictionary) -> GpmRequest:
    (plan,) = compile_query(load(query(body)), terms).requests
    assert plan is not None
    return plan.requests[0]


def counting(requests: Iterable[GpmRequest], terms: TermDictionary, batches: Iterable[EventBatch]) -> Callable[[], int]:
    """A task that matches and returns the number of mappings."""
    matcher = StreamMatcher(compile_stream(tuple(requests), terms), terms)
    return lambda: sum(len(found) for batch in batches for found in matcher.match(batch))


def run_patterns(size: Size) -> Result:
    """Star, chain, tree, cycle and a predicate of many values, on the columnar path and by Oxigraph.

    Oxigraph is asked what `MINUS` of nothing makes it asked: a batch of events in one query, as for any pattern that
    is no BGP.
    """
    ways, rows, figures, where = {}, [], [], {}
    for name, body in PATTERNS.items():
        terms = TermDictionary()
        batches = events_of(name, terms, size.events)
        some = [batches[0].slice(0, min(size.sparql_events, BATCH))]
        by_store = body + " MINUS { ?e :never ?never }"
        ways[name] = counting([_request(body, terms)], terms, batches)
        ways[name + ", by Oxigraph"] = counting([_request(by_store, terms)], terms, some)
        ways[name + ", the same events"] = counting([_request(body, terms)], terms, some)
        where[name] = len(some[0])
    measured = measure(ways, size.rounds, ways)
    for name, events in where.items():
        native = Row.of(name, "columnar", measured[name], size.events)
        store = Row.of(name, "Oxigraph", measured[name + ", by Oxigraph"], events)
        same = measured[name + ", the same events"].answer
        assert store.matches == same, f"{name}: {store.matches} by the store, {same} by the kernel"
        rows += [native, store]
        figures.append(Figure(f"{name}: columnar over Oxigraph's time", native.ns / store.ns, 1 / 30))
    star = next(iter(PATTERNS))
    figures.append(Figure(f"{star}: time over that of {RATE:,} events/s", rows[0].ns * RATE / 1e9, 1.0))
    about = "One GPM on coded batches, five triples an event (six with many values), every event its own subject."
    return Result("patterns", "Graph patterns", about, tuple(rows), tuple(figures))


def bodies(kind: str, number: int) -> list[str]:
    """GPMs alike but for their thresholds, types or predicates; only the first of the last two ever matches."""
    made = []
    for i in range(number):
        own = f"{i}" if i else ""
        power, type_ = "power", "Reading"
        least = 499 + 5 * i % 500 if kind == "own thresholds" else 499
        if kind == "own types":
            type_ += own
        elif kind == "own predicates":
            power += own
        made.append(f"?e :type :{type_} ; :{power} ?p ; :flow ?f ; :zone ?z . FILTER(?p > {least} && ?f > 799)")
    return made


def run_passes(size: Size) -> Result:
    """1, 10 and 100 GPMs in one pass, and as many registered queries with all that belongs to them."""
    ways: dict[str, Callable[[], int]] = {}
    star = next(iter(PATTERNS))
    for kind in KINDS:
        for number in COUNTS:
            terms = TermDictionary()
            batches = events_of(star, terms, size.events)
            ways[f"{kind} {number} matched"] = counting(
                [_request(body, terms) for body in bodies(kind, number)], terms, batches
            )
            ways[f"{kind} {number} pushed"] = _pushing(bodies(kind, number), size.events)
    measured = measure(ways, size.rounds, ways)
    rows = [
        Row.of(f"{number} of {kind}", "GPMs matched" if how == "matched" else "queries, `Stream.push_batch`",
               measured[f"{kind} {number} {how}"], size.events)
        for how in ("matched", "pushed") for kind in KINDS for number in COUNTS
    ]  # fmt: skip
    figures = []
    for how, what in (("matched", "GPMs matched"), ("pushed", "queries pushed to")):
        for kind in KINDS:
            one, many = (measured[f"{kind} {number} {how}"].median for number in (1, COUNTS[-1]))
            asked = LIMITS[kind] if how == "matched" else None
            figures.append(Figure(f"{COUNTS[-1]} {what}, {kind}, over one", many / one, asked))
    about = (
        "The star with two filters. Own thresholds: every GPM has its own mappings, half of them on average as many as "
        "the first. Own types or predicates: only the first matches."
    )
    return Result("passes", "Many queries in one pass", about, tuple(rows), tuple(figures))


def _pushing(texts: Iterable[str], number: int) -> Callable[[], int]:
    """A task that pushes coded batches to a store with these queries and returns the number of matches."""
    store = Store()
    found = [store.register(query(body)) for body in texts]
    stream = store.stream(READINGS)
    batches = events_of(next(iter(PATTERNS)), store._terms, number)
    turn = count()

    def task() -> int:
        shift = next(turn) * (SECOND * (number + 1))
        for batch in batches:
            stream.push_batch(replace(batch, time=batch.time + shift))
        stream.advance(int(batches[-1].time[-1]) + shift + 1)
        return sum(_drop(each) for each in found)

    return task


def _drop(live: ContinuousQuery) -> int:
    """Forget the matches, so that rounds are alike; how many there were."""
    total = sum(len(batch) for batch in live._waiting)
    live._waiting.clear()
    return total


def run_pushes(size: Size) -> Result:
    """One event of five pyoxigraph triples at a time, with a registered query."""
    rows = []
    graphs = _graphs(min(size.sparql_events, 5_000))
    star = next(iter(PATTERNS.values()))
    for what, body in (("every tenth event matches", star), ("every event matches", star.split("FILTER")[0])):
        for clock, name in ((thread_time, "CPU time"), (perf_counter, "elapsed")):
            rounds = [_one_by_one(body, graphs, clock) for _ in range(size.rounds)]
            for part, share in enumerate(("median", "99th percentile")):
                seconds = [times[part] for times, _ in rounds]
                ns, spread = 1e9 * statistics.median(seconds), max(seconds) / min(seconds)
                rows.append(Row(what, f"{share}, {name}", ns, spread, rounds[0][1]))
    figures = tuple(
        Figure(f"{rows[i].where} of a push over {limit / 1000:g} µs", rows[i].ns / limit, 1.0)
        for i, limit in ((0, 60_000), (1, 300_000))
    )
    about = (
        "`Stream.push` of one event after another, the medians over the rounds. On a busy machine other processes' "
        "slices are in the elapsed 99th percentile."
    )
    return Result("pushes", "Single pushes", about, tuple(rows), figures)


def _one_by_one(
    body: str, graphs: Iterable[list[Triple]], clock: Callable[[], float]
) -> tuple[tuple[float, float], int]:
    """Median and 99th percentile of a push in seconds, after the first tenth; the number of matches."""
    store = Store()
    live = store.register(query(body))
    push = store.stream(READINGS).push
    taken = []
    for i, graph in enumerate(graphs):
        begin = clock()
        push(graph, START + SECOND * i)
        taken.append(clock() - begin)
    live.settle()
    warm = sorted(taken[len(taken) // 10 :])
    return (statistics.median(warm), warm[int(0.99 * len(warm))]), _drop(live)


def _graphs(number: int) -> list[list[Triple]]:
    dice = random.Random(6)

    def value() -> Literal:
        return Literal(str(dice.randrange(1_000)), datatype=_INTEGER)

    made = []
    for i in range(number):
        e, zone = iri(f"e{i}"), iri(f"zone{dice.randrange(20)}")
        made.append([Triple(e, iri("type"), iri("Reading")), Triple(e, iri("power"), value()),
                     Triple(e, iri("flow"), value()), Triple(e, iri("zone"), zone), Triple(e, iri("more"), value())])
    return made
