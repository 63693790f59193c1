"""What stands over a store and is asked: processes answer as the store does, and are ended when it takes too long."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asking import DATA
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from oxiseq.api.store import Store
from oxiseq.engine.errors import KbError, LimitError
from oxiseq.engine.standing import Question, Solutions, asked
from oxiseq.sparql.processes import InProcesses, Processes, Workers
from oxiseq.sparql.snapshots import SMALL, in_memory, on_disk

ENDLESS = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?s{i} ?p{i} ?o{i} ." for i in range(40)) + " }"
SEEN = "SELECT ?o { ?s <urn:seen> ?o }"
QUESTIONS = [
    ("SELECT ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", ("s", "p", "o")),
    ("SELECT ?o ?x { ?s ?p ?o OPTIONAL { ?o ?p ?x } }", ("o", "", "x", "y")),
    ("SELECT DISTINCT ?g { GRAPH ?g {} }", ("g",)),
    ("ASK { ?s ?p ?o }", ()),
    ("ASK { ?s <urn:none> ?o }", ()),
    ("SELECT ?s { ?s <urn:none> ?o }", ("s",)),
    ("SELECT * { ?s ?p ?o . ?x ?p ?y }", ("x", "s")),
]


def refuse(question: Question) -> Solutions:
    raise AssertionError("asked in this process")


def question(
    asks: str,
    *names: str,
    rows: int = 10_000,
    seconds: float | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Question:
    return Question(asks, names, rows, seconds, is_wanted)


def wait_until(condition: Callable[[], bool]) -> None:
    """Within ten seconds."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(params=["disk", "memory"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Processes]]:
    store = Store(str(tmp_path)) if request.param == "disk" else Store()
    store.update(DATA)
    said = Triple(BlankNode("who"), NamedNode("urn:p"), Literal('hé\n"', language="fr"))
    store.extend(
        [
            Quad(BlankNode("who"), NamedNode("urn:said"), said, BlankNode("place")),
            Quad(BlankNode("who"), NamedNode("urn:p"), Literal("01", datatype=NamedNode("urn:t"))),
        ]
    )
    processes = Processes(Workers(256 << 20), on_disk(store, tmp_path) if request.param == "disk" else in_memory(store))
    yield store, processes
    processes.close()


def test_a_process_answers_as_the_store_does(both: tuple[Store, Processes]) -> None:
    store, processes = both
    for asks, names in QUESTIONS:
        one = question(asks, *names)
        assert Counter(InProcesses(processes, refuse)(one)) == Counter(asked(store.inner, one)), asks
    store.update("INSERT DATA { <urn:new> <urn:new> _:b }")
    (row,) = InProcesses(processes, refuse)(question("SELECT ?o { <urn:new> ?p ?o }", "o"))
    assert row == (next(store.quads_for_pattern(NamedNode("urn:new"), None, None)).object,)


def test_what_takes_too_long_is_ended(both: tuple[Store, Processes]) -> None:
    ask = InProcesses(both[1], refuse)
    with pytest.raises(LimitError, match="seconds of evaluation on the store"):
        ask(question(ENDLESS, "n", seconds=0.2))
    looked = iter([True, True, True])
    with pytest.raises(KbError, match="nobody waits"):
        ask(question(ENDLESS, "n", is_wanted=lambda: next(looked, False)))
    with pytest.raises(LimitError, match="rows of an answer"):
        ask(question("SELECT * { ?s ?p ?o . ?x ?y ?z . ?u ?v ?w }", "s", rows=3))
    assert both[1].workers._busy == set()


def test_what_the_store_refuses_is_said(both: tuple[Store, Processes]) -> None:
    with pytest.raises(KbError, match="the store refuses a query"):
        InProcesses(both[1], refuse)(question("SELECT ?s { ?s ?p ", "s"))


def test_a_large_store_in_memory_is_asked_here() -> None:
    store = Store()
    store.extend(Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal(i)) for i in range(SMALL + 1))
    processes = Processes(Workers(256 << 20), in_memory(store))
    ask = InProcesses(processes, lambda question: asked(store.inner, question))
    assert ask(question("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "n")) == [(Literal(SMALL + 1),)]
    processes.close()


def test_a_query_that_never_ends_stands_beside_others(both: tuple[Store, Processes]) -> None:
    """Its process is ended with it."""
    store, processes = both
    store.ask_by(lambda usual: InProcesses(processes, refuse))
    edges = " ".join(f"?a{i} <urn:edge> ?b{i} ." for i in range(40))
    texts = [f"SELECT (COUNT(*) AS ?n) {{ {edges} }}", SEEN, SEEN]
    store.update("INSERT DATA { <urn:0> <urn:edge> 0 . <urn:x> <urn:seen> -1 }")
    runaway, other, followed = (
        store.register(text, language="sparql", most_triples=most, most_asking=None)
        for text, most in zip(texts, (0, 0, 1000), strict=True)
    )
    store.extend(Quad(NamedNode(f"urn:{i}"), NamedNode("urn:edge"), Literal(i)) for i in range(10))
    for number in range(20):
        store.update(f"INSERT DATA {{ <urn:x> <urn:seen> {number} }}")
    for query in (other, followed):
        assert sum(len(change.added) for change in query.poll()) == 20
    assert (runaway.state, len(runaway.poll(wait=False))) == ("asked", 0)
    wait_until(lambda: len(processes.workers._busy) == 1)
    runaway.close()
    wait_until(lambda: not processes.workers._busy)
