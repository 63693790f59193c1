"""Complex event automata against the reference, on random queries and streams."""

from __future__ import annotations

from collections import Counter

from cea_runs import Answer, Driven, answers, as_answers, holdings
from ceql_strategies import CeqlOptions, CeqlSituation, as_tuples, ceql_situations
from hypothesis import given
from loaded import load
from reference.ceql import ComplexEvent, evaluate_ceql
from reference.choose import is_choice

from oxiseq.engine.cea.memory import Capacities


def check(situation: CeqlSituation, capacities: Capacities | None, batch: int) -> None:
    """The run's answer, fed in batches, is the reference's; so is what it says about variables."""
    driven = Driven(situation.text, capacities)
    events = as_tuples(situation.events)
    expected = evaluate_ceql(load(situation.text, "ceql"), events)
    found: list[Answer] = []
    known = {(c.start, c.end, c.positions): c for c in expected}
    for low in range(0, len(events), batch):
        some = driven.feed(events[low : low + batch])
        for i, answer in enumerate(answers(some)):
            assert answer in known, f"{answer} is not expected"
            assert holdings(driven.plan, some, i) in known[answer].valuations
        found += answers(some)
    assert [end for _, end, _ in found] == sorted(end for _, end, _ in found)
    limit = driven.plan.query.limit
    if limit is None:
        assert Counter(found) == as_answers(expected)
    else:
        assert is_choice(Counter(found), by_end(expected), limit)


def by_end(expected: list[ComplexEvent]) -> list[Counter[Answer]]:
    ends = dict.fromkeys(c.end for c in expected)
    return [as_answers([c for c in expected if c.end == end]) for end in ends]


@given(ceql_situations(CeqlOptions(most=10)))
def test_random_queries(situation: CeqlSituation) -> None:
    check(situation, None, batch=100)


@given(ceql_situations())
def test_random_queries_with_the_smallest_capacities(situation: CeqlSituation) -> None:
    check(situation, Capacities.smallest(), batch=2)


@given(ceql_situations(CeqlOptions(strategies=False, limits=False, most=14)))
def test_random_queries_without_a_strategy(situation: CeqlSituation) -> None:
    check(situation, Capacities(moves=4), batch=3)
