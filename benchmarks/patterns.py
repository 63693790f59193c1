"""Case `patterns`: graph patterns alone, over coded batches, beside the same asked of pyoxigraph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from benchmarks.data import BATCH, NS, SECOND, START, iri
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.patterns.plan import GpmRequest, compile_stream
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

READINGS = NS + "readings"
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
RATE = 4_000_000
"""Star events per second that are asked for."""

PATTERNS: Mapping[str, str] = {
    "star of 4, two numeric filters": "?e :type :Reading ; :power ?p ; :flow ?f ; :zone ?z . "
    "FILTER(?p > 499 && ?f > 799)",
    "chain of 3": "?e :zone ?z . ?z :part ?b . ?b :owner ?o .",
    "tree of 4": "?e :power ?p ; :zone ?z . ?z :part ?b . ?z :floor ?l .",
    "cycle of 3": "?e :zone ?z . ?z :part ?b . ?b :holds ?e .",
    "star, STRSTARTS of a thousand terms": "?e :type :Reading ; :power ?p ; :flow ?f . "
    'FILTER(STRSTARTS(STR(?p), "4") && ?f > 799)',
    "star, STRSTARTS of two variables": "?e :type :Reading ; :power ?p ; :flow ?f . "
    "FILTER(STRSTARTS(STR(?p), STR(?f)))",
    "star, 4 values of one predicate": "?e :type :Reading ; :many ?m ; :power ?p . FILTER(?m > 499)",
}


def _shape(name: str) -> tuple[tuple[str, str, str], ...]:
    """The triples of an event: (subject, predicate, object), names of places."""
    if name.startswith("star, 4"):
        return (("e", "type", "Reading"), ("e", "power", "#"), *((("e", "many", "#"),) * 4))
    if name.startswith("star"):
        return (
            ("e", "type", "Reading"),
            ("e", "power", "#"),
            ("e", "flow", "#"),
            ("e", "zone", "z"),
            ("e", "more", "#"),
        )
    return (
        ("e", "zone", "z"),
        ("z", "part", "b"),
        ("b", "owner", "#"),
        ("e", "power", "#"),
        ("b", "holds", "e") if name.startswith("cycle") else ("z", "floor", "#"),
    )


def events_of(name: str, terms: TermDictionary, number: int, seed: int = 4) -> tuple[EventBatch, ...]:
    """Events whose subjects are their own, as batches of coded triples."""
    shape, dice = _shape(name), np.random.default_rng(seed)
    numbers = terms.intern_all(Literal(str(i), datatype=INTEGER) for i in range(1_000))
    own = {place: terms.blanks(number) for place in ("e", "z", "b")}

    def column(place: str) -> NDArray[np.integer]:
        if place == "#":
            return numbers[dice.integers(0, 1_000, number)]
        return own[place] if place in own else np.full(number, terms.intern(iri(place)))

    subject, object_ = (np.stack([column(t[i]) for t in shape], axis=1) for i in (0, 2))
    predicate = np.tile(terms.intern_all(iri(t[1]) for t in shape), number)
    batch = EventBatch(
        START + SECOND * np.arange(number),
        len(shape) * np.arange(number + 1),
        subject.ravel().astype(np.uint32),
        predicate.astype(np.uint32),
        object_.ravel().astype(np.uint32),
    )
    terms.hold(*batch.ids)
    return tuple(batch.slice(low, low + BATCH) for low in range(0, number, BATCH))


def query(body: str) -> str:
    """A query of one GPM over readings."""
    return f"PREFIX : <{NS}> SELECT * FROM STREAM S <{READINGS}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {body} }} }}"


def request_of(body: str, terms: TermDictionary) -> GpmRequest:
    (plan,) = compile_query(load(query(body)), terms).runner.requests
    assert plan is not None
    return plan.requests[0]


def counting(requests: Iterable[GpmRequest], terms: TermDictionary, batches: Iterable[EventBatch]) -> Callable[[], int]:
    """A task that matches and returns the number of mappings."""
    matcher = StreamMatcher(compile_stream(tuple(requests), terms), terms)
    return lambda: sum(len(found) for batch in batches for found in matcher.match(batch))


def run(size: Size) -> Result:
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
        ways[name] = counting([request_of(body, terms)], terms, batches)
        ways[name + ", by Oxigraph"] = counting([request_of(by_store, terms)], terms, some)
        ways[name + ", the same events"] = counting([request_of(body, terms)], terms, some)
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
