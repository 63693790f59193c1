"""Arrays that start at their smallest and grow when the kernel asks change neither the matches nor their order.

CI runs this under Numba's bounds check too: NUMBA_BOUNDSCHECK=1 with a NUMBA_CACHE_DIR of its own.
"""

from __future__ import annotations

import pytest
from engine_cases import CASES
from engine_runs import Driven, Reading, Row, query, random_readings
from hypothesis import Phase, given, settings
from strategies import Situation, situations

from oxiseq.engine.sequence.memory import Capacities


@pytest.mark.parametrize("name", CASES)
def test_long_stream_with_the_smallest_capacities(name: str) -> None:
    index, text = CASES[name]
    ample, smallest = Driven(text), Driven(text, Capacities.smallest())
    assert index in ample.indexes
    readings = random_readings(len(name), 400, "abcn")
    expected = ample.answer(readings)
    assert smallest.answer(readings) == expected
    assert len(expected) > 1


@pytest.mark.parametrize("name", CASES)
def test_order_does_not_depend_on_batches(name: str) -> None:
    text = CASES[name][1]
    readings = random_readings(len(name), 200, "abcn")
    expected = Driven(text).answer(readings)
    pushed = Driven(text, Capacities.smallest())
    found: list[Row] = []
    for low in range(0, len(readings), 7):
        pushed.push(readings[low : low + 7])
        found += pushed.advance()
    assert found + pushed.finish() == expected


def answered(situation: Situation, capacities: Capacities | None) -> tuple[int, list[Row]]:
    driven = Driven(situation.text, capacities, lateness=situation.lateness, kb=situation.kb)
    left = {iri: iter(events) for iri, events in situation.streams.items()}
    found: list[Row] = []
    for number, iri in enumerate(situation.order):
        event = next(left[iri])
        if iri in driven.plan.streams:
            driven.push_text([event], iri)
        if number in situation.pauses:
            found += driven.advance()
    return driven.run.late, found + driven.finish()


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(situations())
def test_random_situations_with_the_smallest_capacities(situation: Situation) -> None:
    assert answered(situation, Capacities.smallest()) == answered(situation, None)


def test_a_match_longer_than_the_output_buffer() -> None:
    driven = Driven(query("A; B,+; C", select="SELECT (COUNT(B) AS ?n)"), Capacities.smallest())
    found = driven.answer([Reading(0, "a"), *(Reading(1 + i, "b") for i in range(500)), Reading(501, "c")])
    assert sorted(len(events) for _, _, events in found) == list(range(3, 503))
