"""What the FILTER of a GPM asks of the partial match: EVENTTIME(), TIMEOF(A), COUNT(B), FIRST, LAST and aggregates over
the iterations so far (semantics.md 2.5b). The engine and the reference find the same; random situations of
tests/test_differential.py have such filters, too."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from engine_runs import Driven, query, random_readings
from loaded import load
from reference.facts import matches, query_text, streams_of

import oxiseq
from oxiseq.engine.sequence.memory import Capacities


class Fact(NamedTuple):
    """What `seq` finds among `events`; the condition is B's, `more` is added to GPMs or to the query."""

    seq: str
    condition: str
    events: str
    found: list[str]
    more: Mapping[str, Any] = MappingProxyType({})


AT_30 = '"1970-01-01T00:00:00.00003Z"^^xsd:dateTime'
LATE = f"EVENTTIME() >= {AT_30}"
FACTS = {
    "the time of the event": Fact("A; B", LATE, "a1 b1 b1 b1", ["A10 B30"]),
    "the time of an earlier one": Fact("A : B", f"TIMEOF(A) < {AT_30}", "a1 a1 a1 b1", ["A10 B40", "A20 B40"]),
    "both": Fact("A, B", "SECONDS(EVENTTIME()) > SECONDS(TIMEOF(A))", "a1@1000000 b1@2000000", ["A1000000 B2000000"]),
    "of the last iteration": Fact("A+; B", f"TIMEOF(A) < {AT_30}", "a1 a1 a1 b1", ["A10 B40", "A10,20 B40", "A20 B40"]),
    "of an absent one it is an error": Fact("A?; B", f"TIMEOF(A) < {AT_30}", "a1 b1 b1", ["A10 B20"]),
    "of a partner": Fact("A & B", f"TIMEOF(A) = EVENTTIME() && {LATE}", "a1&b1 a1 a1&b2", ["A30 B30"]),
    "of an earlier one in each iteration": Fact(
        "(A : B):{2}", f"TIMEOF(A) != {AT_30}", "a1 b1 a1 b1 a1 b1", ["A10,50 B20,60", "A10,50 B40,60"]
    ),
    "of what is negated": Fact("A; B!; C", LATE, "a1 b1 c1 a1 b1 c1", ["A10 C30"]),
    "in partitions": Fact(
        "A, B",
        LATE,
        "a1 a2 b1 b2",
        ["A10 B30", "A20 B40"],
        {
            "window": "PARTITION BY ?n",
            "bodies": {"A": "?a :kind :a ; :k ?n", "B": f"?b :kind :b ; :k ?n FILTER({LATE})"},
        },
    ),
    "the average": Fact("A+; B", "?kb > AVG(?ka)", "a1 a5 b4 b2", ["A10 B30", "A10,20 B30"]),
    "the average of what was there before": Fact("A; B;+", "?kb > AVG(?kb)", "a1 b1 b1 b3", ["A10 B20", "A10 B20,40"]),
    "the count": Fact("A+; B", "COUNT(A) = 2", "a1 a1 a1 b1", ["A10,20 B40", "A20,30 B40"]),
    "the count of none": Fact("A*; B", "COUNT(A) = 0", "a1 b1", ["B20"]),
    "the sum of none": Fact("A*; B", "SUM(?ka) + AVG(?ka) = 0", "a1 b1", ["B20"]),
    "the least of none is an error": Fact("A*; B", "MIN(?ka) < 5", "a1 b1", ["A10 B20"]),
    "the first and the last": Fact("A+; B", "FIRST(?ka) < LAST(?ka)", "a1 a2 b1", ["A10,20 B30"]),
    "an expression of each": Fact("A+; B", "SUM(?ka * 2) = 6", "a1 a2 b1", ["A10,20 B30"]),
    "the greatest of an outer repeat": Fact(
        "(A; C)+; B", "MAX(?ka) > 3", "a1 c1 a4 c1 b1", ["A10,30 B50 C20,40", "A30 B50 C40"]
    ),
    "beside PREV": Fact(
        "A; B;+", "?kb > PREV(?kb) || COUNT(B) > 1", "a1 b3 b2 b4 b1", ["A10 B20", "A10 B20,40", "A10 B20,40,50"]
    ),
    "beside EXISTS": Fact("A+; B", "COUNT(A) > 1 && EXISTS { ?o :kind :x ; :k ?ka }", "a1 a2 b1&x2 ", ["A10,20 B30"]),
    "of two events beside an EXISTS of its own": Fact(
        "A; B", "?kb > ?ka && EXISTS { ?b :kind :b }", "a3 b2 a1 b2", ["A30 B40"]
    ),
    "for the next one": Fact("A+; B; C", "SUM(?ka) > 2", "a1 b1 a1 a2 b1 c1", ["A10,30,40 B50 C60", "A30,40 B50 C60"]),
    "of what is negated, over iterations": Fact("A+; B!; C", "COUNT(A) > 1", "a1 a1 b1 c1", ["A10 C40", "A20 C40"]),
    "where the bound has not passed": Fact("A+; B WITHIN PT0.00001S", "COUNT(A) > 1", "a1 a1 b1", ["A10,20 B30"]),
    "in a sliding window": Fact("A:+; B", "SUM(?ka) > 2", "a1 a1 a2 b1", [], {"window": "WITHIN PT0.000005S SLIDING"}),
}


def bodies(fact: Fact) -> dict[str, Any]:
    more = dict(fact.more)
    more.setdefault("bodies", {"B": f"+ FILTER({fact.condition})"})
    return more


def engine(text: str, events: str) -> list[str]:
    streams = {iri: [(t, graph) for t, graph in arrivals] for iri, arrivals in streams_of(events).items()}
    return sorted(
        " ".join(f"{name}{','.join(str(t) for _, t in each)}" for name, each in sorted(m.events.items()) if each)
        for m in oxiseq.run(text, streams=streams)
    )


@pytest.mark.parametrize("name", FACTS)
def test_fact(name: str) -> None:
    fact = FACTS[name]
    text = query_text(fact.seq, **bodies(fact))
    load(text)
    assert matches(fact.seq, fact.events, **bodies(fact)) == fact.found
    assert engine(text, fact.events) == fact.found


@pytest.mark.parametrize("small", [False, True])
def test_how_events_are_batched_does_not_matter(small: bool) -> None:
    text = query("A;+ : B; C", "WITHIN PT0.000015S SLIDING", A="KEYED", B="KEYED FILTER(?bv > AVG(?av))", C="KEYED")
    for seed in range(5):
        readings = random_readings(seed, 40, "aabbc", keys=2)
        whole = Driven(text).answer(readings)
        driven = Driven(text, Capacities.smallest() if small else None)
        found = []
        for reading in readings:
            driven.push([reading])
            driven.terms.collect()
            found += driven.advance()
        assert sorted(found + driven.finish()) == sorted(whole)
        assert whole


def test_what_is_a_number_for_all_is_one_group() -> None:
    """Runs are told apart by what the filter needs, not by their events."""
    driven = Driven(query("A:+ : B", A="", B="FILTER(COUNT(A) > 3)"))
    driven.push(random_readings(1, 60, "a", keys=1))
    driven.count()
    assert driven.run.state["groups"] < 200


def test_matches_are_counted_without_listing() -> None:
    text = query("A:+ : B", "", "SELECT (COUNT(*) AS ?n)", B="FILTER(COUNT(A) > 1)") + " GROUP BY (ENDTIME())"
    dice = random.Random(1)
    readings = [r._replace(time=n + 1) for n, r in enumerate(random_readings(dice.randint(0, 9), 40, "a"))]
    driven = Driven(text)
    driven.push(readings)
    (row,) = driven.answer([readings[0]._replace(time=100, kind="b")])
    assert int(row[1][0].split('"')[1]) == 2**40 - 1 - 40


def test_explain_and_why_show_the_condition() -> None:
    text = query_text(
        "A+; B", window="WITHIN 1 SECOND", bodies={"B": "+ FILTER(?kb > AVG(?ka) && TIMEOF(A) < EVENTTIME())"}
    )
    shown = str(oxiseq.Query(text).explain())
    assert (
        "AVG(?ka)" in shown
        and "an aggregate over iterations" in shown
        and "TIMEOF(A) of the iteration" in shown
        and "__" not in shown
    )
    why = oxiseq.Query(text).why({"S1": streams_of("a3 a5 b2 b3")["http://e/s1"], "S2": []})
    reasons = {r.condition: r.matches for r in why.reasons if r.kind == "filter"}
    assert reasons == {"B: FILTER(?kb > AVG(?ka))": 3}
