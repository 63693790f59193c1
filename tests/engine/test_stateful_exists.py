"""EXISTS in a FILTER over what earlier GPMs bound: the engine and the reference find what semantics.md 2.2 says.

A GPM X binds ?x to a thing of kind x and ?kx to its number; `x1` beside another thing gives EXISTS something to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from loaded import load
from pyoxigraph import RdfFormat, Store
from reference.facts import matches, query_text, streams_of

import oxiseq
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import check, parse

SAME = "EXISTS { ?o :kind :x ; :k ?ka }"
"""The event holds an x with A's number."""
KB = """PREFIX : <http://e/>
GRAPH :g { :one :of 1 ; :limit 5 . _:two :of 2 ; :limit 7 }"""


class Fact(NamedTuple):
    """What `seq` finds among `events`; `body` is added to GPMs."""

    seq: str
    body: dict[str, str]
    events: str
    found: list[str]
    more: Mapping[str, Any] = MappingProxyType({})


def b(condition: str) -> dict[str, str]:
    return {"B": f"+ FILTER({condition})"}


FACTS = {
    "the next is the next that passes": Fact("A; B", b(SAME), "a1 b2 b2&x2 b2&x1 b2&x1", ["A10 B40"]),
    "not exists": Fact("A; B", b(f"NOT {SAME}"), "a1 b2&x1 b2&x2 b2", ["A10 B30"]),
    "any": Fact("A : B", b(SAME), "a1 a2 b1&x1 b1&x2 b1&x3 b1&x1&x2", ["A10 B30", "A10 B60", "A20 B40", "A20 B60"]),
    "contiguous, passes": Fact("A, B", b(SAME), "a1 b1&x1", ["A10 B20"]),
    "contiguous, does not": Fact("A, B", b(SAME), "a1 b1&x2 b1&x1", []),
    "one instant": Fact("A & B", b(SAME), "a1&b1&x1 a1&b1&x2", ["A10 B10"]),
    "one instant, from the other side": Fact(
        "A & B", {"A": "+ FILTER EXISTS { ?o :kind :x ; :k ?kb }"}, "a1&b2&x2 a1&b2&x1", ["A10 B10"]
    ),
    "one instant on two streams": Fact(
        "A & B", b(SAME), "a1@10 2:b1&x1@10 a1&x1@20 2:b1@20", ["A10 B10"], {"second": "B"}
    ),
    "each iteration": Fact("A; B+", b(SAME), "a1 b1&x1 b1&x1 b1&x2", ["A10 B20", "A10 B20,30"]),
    "an iteration that skips": Fact("A; B;+", b(SAME), "a1 b1&x1 b1&x2 b1&x1", ["A10 B20", "A10 B20,40"]),
    "the last iteration, from outside": Fact("A+; B", b(SAME), "a1 a2 b1&x2", ["A10,20 B30", "A20 B30"]),
    "in a group": Fact("(A; B)+", b(SAME), "a1 b1&x1 a2 b1&x1 b1&x2", ["A10 B20", "A10,30 B20,50", "A30 B50"]),
    "negated, meets it": Fact("A; N!; B", {"N": f"+ FILTER({SAME})"}, "a1 n0&x1 b1", []),
    "negated, does not": Fact("A; N!; B", {"N": f"+ FILTER({SAME})"}, "a1 n0&x2 b1", ["A10 B30"]),
    "negated at the end": Fact(
        "A; N!", {"N": f"+ FILTER({SAME})"}, "a1 n0&x1 a2 n0&x1", ["A30"], {"window": "WITHIN 1 SECOND SLIDING"}
    ),
    "without the optional one its variable is new": Fact("A?; B", b(SAME), "a1 b1&x5", ["B20"]),
    "with the optional one it is not": Fact("A?; B", b(SAME), "a5 b1&x5", ["A10 B20", "B20"]),
    "another alternative leaves it new": Fact("(A | C); B", b(SAME), "a1 c1 b1&x7", ["B30 C20"]),
    "in partitions": Fact(
        "A, B",
        {"A": "?a :kind :a ; :k ?ka ; :k ?n", "B": f"?b :kind :b ; :k ?n FILTER {SAME}"},
        "a1 b2&x1 b1&x1 a2 b2&x1",
        ["A10 B30"],
        {"window": "PARTITION BY ?n"},
    ),
    "in a sliding window": Fact("A; B", b(SAME), "a1@0 b1&x2@20 b1&x1@40", [], {"window": "WITHIN PT0.00003S SLIDING"}),
    "in tumbling windows": Fact(
        "A : B", b(SAME), "a1@0 b1&x1@20 a1@40 b1&x1@60", ["A0 B20", "A40 B60"], {"window": "WITHIN PT0.00004S"}
    ),
    "in windows of events": Fact(
        "A : B", b(SAME), "a1 b1&x1 b1&x1 b1&x1", ["A10 B20", "A10 B30"], {"window": "WITHIN 2 EVENTS SLIDING"}
    ),
    "a condition inside": Fact(
        "A : B", b("EXISTS { ?o :kind :x ; :k ?m FILTER(?m > ?ka) }"), "a1 b1&x1 b1&x2", ["A10 B30"]
    ),
    "nested inside": Fact(
        "A : B", b("EXISTS { ?o :kind :x { ?p :kind :x ; :k ?m FILTER(?m > ?ka) } }"), "a1 b1&x1 b1&x2", ["A10 B30"]
    ),
    "one inside the other": Fact(
        "A : B",
        b("NOT EXISTS { ?o :kind :x FILTER NOT EXISTS { ?o :k ?ka } }"),
        "a1 b1&x1 b1&x1&x2 b1",
        ["A10 B20", "A10 B40"],
    ),
    "beside another condition": Fact("A : B", b(f"?kb > ?ka || {SAME}"), "a1 b2 b1 b1&x1", ["A10 B20", "A10 B40"]),
    "in an expression": Fact("A : B", b(f"IF({SAME}, 1, 2) + ?ka < ?kb"), "a1 b3 b3&x1", ["A10 B30"]),
    "only a condition beside it reads another": Fact(
        "A : B", b("?kb > ?ka || EXISTS { ?b :k 0 }"), "a1 b2 b1 b0", ["A10 B20", "A10 B40"]
    ),
    "a graph of the KB": Fact(
        "A : B",
        b("EXISTS { GRAPH :g { ?e :of ?ka ; :limit ?l } FILTER(?kb > ?l) }"),
        "a1 a2 b6 b8",
        ["A10 B30", "A10 B40", "A20 B40"],
    ),
    "a blank node of the KB": Fact(
        "A; B",
        {"A": "+ GRAPH :g { ?e :of ?ka }", "B": "+ FILTER EXISTS { GRAPH :g { ?e :limit 7 } }"},
        "a1 a2 b1",
        ["A20 B30"],
    ),
    "its own GPM's KB pattern": Fact(
        "A : B",
        {"B": "+ GRAPH :g { ?e :of ?kb ; :limit ?l } FILTER EXISTS { ?o :k ?l . ?p :k ?ka }"},
        "a3 b1&x5&x3 b1&x5 b2&x7&x3",
        ["A10 B20", "A10 B40"],
    ),
    "beside PREV": Fact("A; B;+", b(f"?kb > PREV(?kb) || {SAME}"), "a1 b5 b4 b3&x1", ["A10 B20", "A10 B20,40"]),
    "an event that has lost nothing but the thing": Fact(
        "A : B", b("NOT EXISTS { ?o :k ?ka }"), "a1 b1 b2 b2&c1", ["A10 B30"]
    ),
}


def engine(text: str, events: str) -> list[str]:
    kb = Store()
    kb.load(KB.encode(), format=RdfFormat.TRIG)
    streams = {iri: [(t, graph) for t, graph in arrivals] for iri, arrivals in streams_of(events).items()}
    found = oxiseq.run(text, streams=streams, kb=kb)
    return sorted(
        " ".join(f"{name}{','.join(str(t) for _, t in each)}" for name, each in sorted(m.events.items()) if each)
        for m in found
    )


@pytest.mark.parametrize("name", FACTS)
def test_fact(name: str) -> None:
    fact = FACTS[name]
    text = query_text(fact.seq, bodies=fact.body, **fact.more)
    load(text)
    assert matches(fact.seq, fact.events, kb=KB, bodies=fact.body, **fact.more) == fact.found
    assert engine(text, fact.events) == fact.found


def test_a_blank_node_of_an_earlier_event_is_not_in_this_one() -> None:
    text = query_text("A; B", bodies={"A": "?a :is ?n", "B": "?b :kind :b FILTER NOT EXISTS { ?b :is ?n }"})
    events = [(1, ":a :is _:n ."), (2, ":b :kind :b ; :is _:n .")]
    head = "@prefix : <http://e/> .\n"
    found = list(oxiseq.run(text, streams={"S1": [(t, head + graph) for t, graph in events], "S2": []}))
    assert len(found) == 1


@pytest.mark.parametrize(("value", "found"), [("1.0", 1), ("1", 1), ("1e0", 1), ("2.0", 0), ('"1"', 0)])
def test_an_earlier_value_is_compared_as_a_value(value: str, found: int) -> None:
    """Oxigraph's `=` compares what it substitutes as a term; of a text and a number it is an error either way."""
    text = query_text("A; B", bodies={"A": "?a :kind :a ; :k ?ka", "B": "FILTER EXISTS { ?o :is ?m FILTER(?m = ?ka) }"})
    head = "@prefix : <http://e/> .\n"
    events = [(1, head + ":a :kind :a ; :k 1 ."), (2, f"{head}:x :is {value} .")]
    assert len(oxiseq.run(text, streams={"S1": events, "S2": []})) == found


def test_what_only_its_own_event_decides_stays_with_the_pattern() -> None:
    text = query_text("A; B", bodies={"B": "+ FILTER EXISTS { ?b :k ?kb . ?o :kind :x }"})
    plan = compile_query(load(text), TermDictionary())
    assert plan.runner.asked_again == ()
    assert plan.runner.gpms["B"].parts.stateful == ()


def test_explain_says_that_it_is_slow() -> None:
    one = oxiseq.Query(query_text("A; B", bodies=b(SAME))).explain()
    assert "EXISTS { ?o :kind :x . ?o :k ?ka . } (evaluated on the store, pair by pair)" in str(one)
    assert "(evaluated on the store, pair by pair)" in str(oxiseq.Query(query_text("A & B", bodies=b(SAME))).explain())


def test_why_counts_what_would_be_there_without_it() -> None:
    streams = {"S1": streams_of("a1 b1&x2 b1&x3")["http://e/s1"], "S2": []}
    why = oxiseq.Query(query_text("A : B", window="WITHIN 1 SECOND", bodies=b(SAME))).why(streams)
    (reason,) = [r for r in why.reasons if r.kind == "filter"]
    assert (reason.matches, reason.condition) == (2, "B: FILTER(EXISTS { ?o :kind :x . ?o :k ?ka . })")
    assert [stage.matches for stage in why.stages] == [1, 0]
    (funnel,) = [f for f in why.gpms if f.gpm == "B"]
    assert funnel.steps[-1].events == 2  # the stateful filter is none of the event's own


def test_a_variable_of_a_gpm_further_right_is_new_and_linted() -> None:
    bodies = {"A": "+ FILTER EXISTS { ?o :kind :x ; :k ?kb }", "B": "+ FILTER(?kb > ?ka)"}
    text = query_text("A; B", window="WITHIN 1 SECOND", bodies=bodies)
    assert engine(text, "a1&x9 b5") == ["A10 B20"]
    (found,) = [f for f in check(parse(text), text) if f.code == "local"]
    assert found.message == "?kb is a new variable inside EXISTS: A does not see B"
    assert text[found.span.start : found.span.end] == "?kb"
