"""How many groups are looked at (`touched`), and how much is kept for matches that nobody has asked for yet."""

from __future__ import annotations

import pytest
from engine_runs import Driven, Reading, query


def touched(driven: Driven, readings: list[Reading]) -> tuple[int, int]:
    """(groups looked at, matches)."""
    before = driven.run.state["touched"]
    driven.push(readings)
    driven.run.punctuate(driven.plan.streams[0], readings[-1].time + 1)
    found = driven.count()
    return driven.run.state["touched"] - before, found


@pytest.mark.parametrize("op", [";", ":"])
def test_a_heap_is_read_no_further_than_it_fires(op: str) -> None:
    driven = Driven(query(f"A{op} B", B="FILTER(?bv > ?av)"))
    touched(driven, [Reading(i, "a", value=(i * 7_919) % 1_000) for i in range(1_000)])
    looked, found = touched(driven, [Reading(1_000, "b", value=10)])
    assert found == 10
    assert looked <= found + 2
    looked, found = touched(driven, [Reading(1_001, "b", value=10)])
    assert (found, looked <= 12) == (0 if op == ";" else 10, True)


def test_falling_prices_do_not_scan() -> None:
    """Every event is an A that waits for a higher B; none comes."""
    text = query("A; B", B="FILTER(?bv > ?av)").replace(":kind :b", ":kind :a")
    driven = Driven(text)
    looked, found = touched(driven, [Reading(i, "a", value=5_000 - i) for i in range(5_000)])
    assert found == 0
    assert looked <= 5_000


@pytest.mark.parametrize("filter_", ["?bv < ?av", "?bv <= ?av - 1", "?av > ?bv", "?bv + 1 < ?av * 1"])
def test_either_side_and_arithmetic_use_the_heap(filter_: str) -> None:
    driven = Driven(query("A; B", B=f"FILTER({filter_})"))
    touched(driven, [Reading(i, "a", value=i) for i in range(1_000)])
    looked, found = touched(driven, [Reading(1_000, "b", value=990)])
    assert 0 < found <= 9
    assert looked <= found + 2


def test_negated_rows_kill_by_equality_without_looking() -> None:
    driven = Driven(query("A; N!; B", A="KEYED", N="KEYED", B="KEYED FILTER(?bv > ?av)"))
    touched(driven, [Reading(i, "a", value=i) for i in range(1_000)])
    looked, _ = touched(driven, [Reading(1_000 + i, "n") for i in range(100)])
    assert looked == 0
    _, found = touched(driven, [Reading(1_100, "b", value=5_000)])
    assert found == 0


def test_negated_rows_kill_by_inequality_without_a_scan() -> None:
    driven = Driven(query("A; N!; B", N="FILTER(?nv > ?av)", B="FILTER(?bv != 0)"))
    touched(driven, [Reading(i, "a", value=i) for i in range(1_000)])
    looked, _ = touched(driven, [Reading(1_000, "n", value=5)])
    assert looked <= 7
    _, found = touched(driven, [Reading(1_001, "b")])
    assert found == 995


def test_a_million_partial_matches_cost_nothing_until_they_are_emitted() -> None:
    driven = Driven(query("A: B: C", select="SELECT (COUNT(C) AS ?n)"))
    readings = [Reading(i, "a", value=1) for i in range(1_000)]
    readings += [Reading(1_000 + i, "b", value=1) for i in range(1_000)]
    _, found = touched(driven, readings)
    state = driven.run.state
    assert found == 0
    assert state["nodes"] <= 8_000
    assert state["groups"] <= 2
    assert state["bytes"] < 2_000_000


def test_partial_matches_of_a_repeat_are_shared() -> None:
    """`A; B:+` over 60 B's has 2**60 partial matches."""
    driven = Driven(query("A; B:+; C"))
    _, found = touched(driven, [Reading(0, "a"), *(Reading(1 + i, "b") for i in range(60))])
    assert found == 0
    assert driven.run.state["nodes"] <= 400
