"""CONSTRUCT ... INTO STREAM of EP-SPARQL and REGISTER ... AS CONSTRUCT of continuous SPARQL: answers as events."""

from __future__ import annotations

import pytest

import oxiseq

P = "PREFIX : <http://e/> "
S, T = "http://e/S", "http://e/T"
GROWS = (
    P
    + """CONSTRUCT { ?x :grew ?b } INTO STREAM <http://e/T> FROM STREAM <http://e/S>
WHERE { { ?x :v ?a } SEQ { ?x :v ?b } FILTER(?b > ?a && getDURATION() <= 2) }"""
)
TWICE = P + "SELECT ?x ?b ?c FROM STREAM <http://e/T> WHERE { { ?x :grew ?b } SEQ { ?x :grew ?c } }"
EITHER = P + "SELECT ?x ?b FROM STREAM G <http://e/T> WHERE { SEQ(A) DEFINE GPM A ON G { ?x :grew ?b } }"
VALUES = [(1, 1), (2, 5), (3, 2), (4, 3), (5, 4), (9, 9)]


def push(store: oxiseq.Store) -> None:
    for time, value in VALUES:
        store.stream(S).push(f"<http://e/x> <http://e/v> {value} .", time)
    store.advance(100)


def number(term: object) -> int:
    return int(term.value)  # type: ignore[attr-defined]


def test_answers_of_ep_sparql_are_events_with_their_intervals() -> None:
    store = oxiseq.Store()
    grows = store.register(GROWS, language="epsparql")
    twice, either = store.register(TWICE, language="epsparql"), store.register(EITHER)
    assert (grows.feeds, twice.feeds) == (T, None)
    push(store)
    assert [(m.start_us, m.end_us) for m in grows.poll("0s")] == [(1, 2), (1, 3), (3, 4), (3, 5), (4, 5)]
    assert [(m.at_us, number(m["b"])) for m in either.poll("0s")] == [(2, 5), (3, 2), (4, 3), (5, 4)]
    found = [(m.start_us, m.end_us, number(m["b"]), number(m["c"])) for m in twice.poll("0s")]
    assert found == [(1, 4, 5, 3), (1, 5, 2, 4), (1, 5, 5, 4)]


def test_a_chain_of_queries_is_the_rule_of_a_query() -> None:
    """What INTO STREAM hands on, a rule derives too, but for the end of the stream that it is told in."""
    events = [(time, f"<http://e/x> <http://e/v> {value} .") for time, value in VALUES]
    rule = GROWS.replace("INTO STREAM <http://e/T> ", "")
    by_rule = oxiseq.run(TWICE.replace(T, S), streams={S: events}, language="epsparql", rules=[rule])
    store = oxiseq.Store()
    store.register(GROWS, language="epsparql")
    twice = store.register(TWICE, language="epsparql")
    push(store)
    assert list(twice.poll("0s")) == list(by_rule)


def test_answers_of_continuous_sparql_are_events_of_their_instant() -> None:
    store = oxiseq.Store()
    text = (
        P
        + """REGISTER ISTREAM <http://e/T> AS CONSTRUCT { ?x :grew ?n }
    FROM NAMED WINDOW :w ON <http://e/S> [RANGE 3 STEP 1]
    WHERE { { SELECT ?x (COUNT(?v) AS ?n) { WINDOW :w { ?x :v ?v } } GROUP BY ?x } }"""
    )
    counts = store.register(text, language="rspql")
    either = store.register(EITHER)
    assert counts.feeds == T
    push(store)
    told = [(m.at_us, number(m["n"])) for m in counts.poll("0s")]
    assert told == [(1, 1), (2, 2), (3, 3), (9, 1)]
    assert [(m.at_us, number(m["b"])) for m in either.poll("0s")] == told


def test_a_rule_goes_into_no_stream() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="rule 1 says INTO STREAM"):
        oxiseq.run(TWICE, streams={T: []}, language="epsparql", rules=[GROWS])
    with pytest.raises(oxiseq.OxiseqError, match="rule 1 says CONSUME"):
        rule = GROWS.replace("INTO STREAM <http://e/T> ", "") + " CONSUME RECENT"
        oxiseq.run(TWICE, streams={T: []}, language="epsparql", rules=[rule])
