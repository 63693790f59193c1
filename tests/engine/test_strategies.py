"""SELECT NEXT, LAST, MAX, LIMIT and CONSUME BY ANY on streams that are long for brute force, and where enumerating all
matches would never end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest
from engine_runs import Driven, Reading, Row, query, random_readings
from hypothesis import given
from hypothesis import strategies as st
from reference.choose import Candidate, chosen

from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.terms import dictionary
from oxiseq.grammar.algebra import Selection, Strategy

SEQUENCES = ["A : B : C", "A; B:+; C", "A : B;+ : C", "A:+; C", "A; (B : C)+", "(A | B):+", "A; B?: C", "A, B:+: C"]
STRATEGIES = [Strategy.NEXT, Strategy.LAST, Strategy.MAX]
WINDOWS = ["", "WITHIN PT0.000012S SLIDING", "WITHIN PT0.000015S", "WITHIN 9 EVENTS SLIDING"]


def by_brute_force(rows: Sequence[Row], strategy: Strategy) -> list[Row]:
    """All matches, chosen end by end."""
    ends = defaultdict(list)
    for row in rows:
        times = [t for _, t in row[2]]
        ends[row[0]].append(Candidate(min(times), row[0], frozenset(times), (), row))
    return sorted(c.what for found in ends.values() for c in chosen(found, Selection(strategy)))


@given(
    st.sampled_from(SEQUENCES),
    st.sampled_from(STRATEGIES),
    st.sampled_from(WINDOWS),
    st.integers(0, 10_000),
    st.booleans(),
)
@pytest.mark.slow
def test_strategies_choose_as_brute_force_does(
    sequence: str, strategy: Strategy, window: str, seed: int, small: bool
) -> None:
    capacities = Capacities.smallest() if small else None
    filters = {"B": "KEYED FILTER(?bv != 3)", "A": "KEYED", "C": "KEYED"} if seed % 2 else {}
    readings = random_readings(seed, 22, "abcc", keys=2)
    everything = Driven(query(sequence, window, **filters)).answer(readings)
    found = Driven(query(sequence, window, f"SELECT {strategy.value} *", **filters), capacities).answer(readings)
    assert sorted(found) == by_brute_force(everything, strategy)


def series(kinds: str) -> list[Reading]:
    return [Reading(10 * (i + 1), kind, value=i) for i, kind in enumerate(kinds)]


@pytest.mark.parametrize("strategy", ["NEXT", "LAST"])
def test_the_best_of_2_to_the_300_matches(strategy: str) -> None:
    found = Driven(query("A : B:+ : C", "", f"SELECT {strategy} *")).answer(series("a" + 300 * "b" + "c"))
    assert [len(events) for _, _, events in found] == [302]


def test_the_maximal_ones_among_2_to_the_100_matches_from_each_start() -> None:
    found = Driven(query("A : B:+ : C", "", "SELECT MAX *")).answer(series("aaa" + 100 * "b" + "c"))
    assert [len(events) for _, _, events in found] == [102, 102, 102]


def test_max_gives_up_with_a_limit_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "BOUNDS", InstantBounds(choices=1000))
    with pytest.raises(LimitError, match="SELECT MAX"):
        Driven(query("A : B:+ : C", "", "SELECT MAX *")).answer(series("aaa" + 100 * "b" + "c"))


def test_limit_ends_the_enumeration() -> None:
    found = Driven(query("A : B:+ : C", "", "SELECT *") + " LIMIT 3").answer(series("a" + 300 * "b" + "cc"))
    assert [time for time, _, _ in found] == [3020] * 3 + [3030] * 3


def test_limit_counts_what_a_strategy_keeps() -> None:
    text = query("A : B", "", "SELECT MAX *") + " LIMIT 2"
    assert len(Driven(text).answer(series("aaab"))) == 2


def test_what_was_consumed_is_freed() -> None:
    driven = Driven(query("A : B", "CONSUME BY ANY", A="KEYED", B="KEYED"))
    for n in range(3000):
        driven.push([Reading(2 * n, "a", key=n), Reading(2 * n + 1, "b", key=n)])
        assert len(driven.advance()) == (n > 0)  # the newest instant is still open
    assert driven.run.state["groups"] < 10
    assert driven.run.state["nodes"] < 5000
    assert driven.run.state["rows"] < 10_000


def test_strategies_take_back_the_nodes_they_make() -> None:
    used = []
    for select, limit in (("SELECT LAST *", ""), ("SELECT *", " LIMIT 1")):
        driven = Driven(query("A : B:+", "WITHIN PT0.000050S SLIDING", select) + limit)
        for n in range(3000):
            driven.push([Reading(n, "ab"[n % 2], value=n)])
            driven.advance()
        driven.run.finder.sequence.collect()
        used.append(driven.run.state["nodes"])
    assert used[0] == used[1] > 50
