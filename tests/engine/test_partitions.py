"""PARTITION BY on longer streams: the same as a query for each value, with all memory at its smallest; what is over
is freed."""

from __future__ import annotations

import pytest
from engine_runs import Driven, Reading, Row, query, random_readings
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.engine.sequence.memory import Capacities

SEQUENCES = ["A, B", "A; B:+; C", "A : B, C", "A; N!; B", "N!; A : B", "A;+ , C", "A, (B | C)+"]
WINDOWS = ["", "WITHIN PT0.000012S SLIDING", "WITHIN PT0.000015S", "WITHIN 5 EVENTS SLIDING", "WITHIN 4 EVENTS"]
KEYED = dict.fromkeys("ABCN", "KEYED")


@given(
    st.sampled_from(SEQUENCES),
    st.sampled_from(WINDOWS),
    st.sampled_from(["", " CONSUME BY PARTITION"]),
    st.integers(0, 10_000),
    st.integers(1, 30),
)
def test_partitions_are_queries_on_the_events_of_one_value(
    sequence: str, window: str, consume: str, seed: int, step: int
) -> None:
    named = "".join(k for k in "aabbccn" if k.upper() in sequence)  # other events are in no partition
    readings = random_readings(seed, 35, named, keys=3)
    kinds = [Reading(2 * i, r.kind, r.key, r.value) for i, r in enumerate(readings)]  # one to an instant
    together = Driven(
        query(sequence, f"{window} PARTITION BY ?k{consume}", "SELECT ?k", **KEYED), Capacities.smallest(), start=0
    )
    found: list[Row] = []
    for low in range(0, len(kinds), step):
        together.push(kinds[low : low + step])
        found += together.advance()
    found += together.finish()
    alone: list[Row] = []
    for key in {r.key for r in kinds}:
        clause = consume.replace("PARTITION", "ANY")
        one = Driven(query(sequence, f"{window}{clause}", "SELECT ?k", **KEYED), start=0)
        alone += one.answer([r for r in kinds if r.key == key])
    assert sorted(found) == sorted(alone)


def seen_partitions(window: str, sequence: str, count: int = 20_000, **filters: str) -> Driven:
    """Ever new keys, a few events of each."""
    driven = Driven(query(sequence, f"{window} PARTITION BY ?k", "SELECT ?k", **(filters or KEYED)))
    for low in range(0, count, 500):
        driven.push([Reading(10 * i, "ab"[i % 2], key=i // 4) for i in range(low, low + 500)])
        driven.advance()
    return driven


@pytest.mark.parametrize(("sequence", "partitions"), [("A, B", True), ("A; B", False)])
def test_what_is_over_is_forgotten(sequence: str, partitions: bool) -> None:
    state = seen_partitions("WITHIN PT0.001S SLIDING", sequence).run.state
    assert ("partitions" in state) == partitions
    assert state.get("partitions", 0) < 2000
    assert state["groups"] < 500
    assert state["rows"] < 500


def test_a_partition_that_has_been_forgotten_begins_anew() -> None:
    text = query("A, B", "WITHIN 2 EVENTS SLIDING PARTITION BY ?k CONSUME BY PARTITION", "SELECT ?k", **KEYED)
    driven, found = Driven(text, Capacities.smallest()), 0
    for i in range(300):
        driven.push([Reading(2 * i, "a", key=i % 97), Reading(2 * i + 1, "b", key=i % 97)])
        found += driven.count()
    driven.run.close()
    assert found + driven.count() == 300
    assert driven.run.state["partitions"] < 97


def test_waits_for_the_next_event_of_the_partition_are_swept_when_it_has_gone_on() -> None:
    driven = Driven(query("A, B", "PARTITION BY ?k", "SELECT ?k", A="KEYED", B="KEYED FILTER(?bv > ?av)"))
    for i in range(20_000):
        driven.push([Reading(i, "a", key=i % 3, value=i)])
        driven.advance()
    assert driven.run.state["groups"] <= 512
    assert driven.run.state["nodes"] <= 8192
