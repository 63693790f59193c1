"""Arrays that start at their smallest and grow when the kernel asks change neither the matches nor their order.

CI runs this under Numba's bounds check too: NUMBA_BOUNDSCHECK=1 with a NUMBA_CACHE_DIR of its own.
"""

from __future__ import annotations

import pytest
from engine_runs import Driven, Row, query, random_readings
from hypothesis import Phase, given, settings
from strategies import Situation, situations

from oxiseq.engine.sequence.memory import Capacities

KEYED = "KEYED"
RISING = "FILTER(?bv > PREV(?bv))"
CASES = {
    "heap": ("heap", query("A; B", B="FILTER(?bv > ?av)")),
    "heap, the smaller fires": ("heap", query("A; B", "WITHIN PT0.00003S SLIDING", B="FILTER(?bv <= ?av * 2)")),
    "heap per key": ("heap", query("A: B", "WITHIN PT0.00002S SLIDING", A=KEYED, B=f"{KEYED} FILTER(?bv > ?av)")),
    "two inequalities": ("heap", query("A; B", "WITHIN PT0.00002S", B="FILTER(?bv > ?av && ?bv < 2 * ?av)")),
    "list": ("list", query("A; B", B="FILTER(?bv != ?av)")),
    "asked of Python": ("heap", query("A; B", "WITHIN PT0.00003S", B="FILTER(STR(?bv) < STR(?av))")),
    "chain": ("chain", query("A, B, C", B=KEYED, C=f"{KEYED} FILTER(?cv > ?bv)")),
    "direct": ("key", query("A; B; C", "WITHIN PT0.00005S", A=KEYED, B=KEYED, C=KEYED)),
    "any, no key": ("key", query("A: B: C", "WITHIN PT0.00001S SLIDING")),
    "stamp": ("stamp", query("A; N!; C", "WITHIN PT0.00005S", A=KEYED, N=KEYED, C=KEYED)),
    "guard by heap": ("heap", query("A; N!; C", "WITHIN PT0.00005S SLIDING", N="FILTER(?nv > ?av)")),
    "guard by list": ("list", query("A; N!; C", "WITHIN PT0.00005S SLIDING", N="FILTER(?nv != ?av)")),
    "waits, sliding": ("stamp", query("A; B; N!", "WITHIN PT0.00002S SLIDING", A=KEYED, B=KEYED, N=KEYED)),
    "waits, tumbling": ("heap", query("A; B; N!", "WITHIN PT0.00002S", A=KEYED, B=KEYED, N="FILTER(?nv > ?bv)")),
    "leads, sliding": ("start", query("N!; A; B", "WITHIN PT0.00002S SLIDING", A=KEYED, B=KEYED, N=KEYED)),
    "leads, tumbling": ("start", query("N!; A; B", "WITHIN PT0.00005S", A=KEYED, B=KEYED, N=KEYED)),
    "leads, unbounded": ("start", query("N!; A; B", N="?n :k ?av .", A="FILTER(?av > 2)")),
    "repeat": ("chain", query("A; B+; C", "WITHIN PT0.00002S SLIDING", A=KEYED, B=KEYED, C=KEYED)),
    "rising repeat": ("heap", query("A; B;+; C", "WITHIN 12 EVENTS SLIDING", A=KEYED, B=f"{KEYED} {RISING}", C=KEYED)),
    "optional": ("heap", query("A?; (B | C); N", "WITHIN 20 EVENTS", B="FILTER(?bv > 3)", N="FILTER(?nv > ?bv)")),
}  # fmt: skip


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
