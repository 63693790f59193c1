"""A run that is saved and restored now and then gives what the run that goes on gives: matches, order, late events,
counters."""

from __future__ import annotations

import random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from saved_runs import assert_same, both
from strategies import Situation, situations

from oxiseq.engine.sequence.memory import Capacities

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]


@settings(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 2**32))
def test_a_run_goes_on_in_another_dictionary(situation: Situation, seed: int) -> None:
    still, moving = both(situation, random.Random(seed), crowd=True)
    assert_same(moving, still)
    assert (moving.late, moving.counters) == (still.late, still.counters)


@settings(phases=WITHOUT_SHRINKING)
@given(situations() | situations(clauses=True), st.integers(0, 2**32))
def test_with_the_smallest_capacities(situation: Situation, seed: int) -> None:
    still, moving = both(situation, random.Random(seed), crowd=False, capacities=Capacities.smallest())
    assert_same(moving, still)
    assert (moving.late, moving.counters) == (still.late, still.counters)
