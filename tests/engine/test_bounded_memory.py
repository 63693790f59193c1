"""What a run holds is bounded by its window, however long the stream: counters rise to a plateau and stay there."""

from __future__ import annotations

import pytest
from engine_runs import Driven, Reading, query, random_readings
from profiles import crossed

from oxiseq.engine.sequence.memory import Capacities

KEYED = "KEYED"
EVENTS, STEP = 20_000, 1_000
ROOM = Capacities(nodes=4096, groups=256, pending=64, out=4096, stack=256)
"""So much that what grows with the stream is told from what only grows to its window's size."""
WINDOW = 200  # microseconds, and roughly that many events
WINDOWS = {
    "tumbling": "WITHIN PT0.0002S",
    "sliding": "WITHIN PT0.0002S SLIDING",
    "events": "WITHIN 200 EVENTS",
    "events, sliding": "WITHIN 200 EVENTS SLIDING",
}
SEQUENCES = {
    "next": ("A; B", {"A": KEYED, "B": f"{KEYED} FILTER(?bv > ?av)"}),
    "any": ("A: B", {"B": "FILTER(?bv > ?av + 90)"}),
    "strict": ("A, B, C", {}),
    "many keys": ("A; B", {"A": KEYED, "B": KEYED}),
    "repeat": ("A; B;+; C", {"A": KEYED, "B": f"{KEYED} FILTER(?bv > PREV(?bv))", "C": f"{KEYED} FILTER(?cv > 95)"}),
    "between": ("A; N!; B", {"A": KEYED, "N": KEYED, "B": KEYED}),
    "between, by heap": ("A; N!; B", {"A": KEYED, "N": "FILTER(?nv > ?av)", "B": KEYED}),
    "trailing": ("A; B; N!", {"A": KEYED, "B": KEYED, "N": KEYED}),
    "leading": ("N!; A; B", {"A": KEYED, "B": KEYED, "N": KEYED}),
}


def plateau(driven: Driven, readings: list[Reading]) -> list[dict[str, int]]:
    """The counters after each step."""
    states = []
    for low in range(0, len(readings), STEP):
        driven.push(readings[low : low + STEP])
        driven.count()
        states.append(driven.run.state)
    return states


@pytest.mark.parametrize(("sequence", "window"), crossed([*SEQUENCES], [*WINDOWS], ways=2))
def test_counters_stay_on_a_plateau(sequence: str, window: str) -> None:
    text, filters = SEQUENCES[sequence]
    driven = Driven(query(text, WINDOWS[window], **filters), ROOM)
    readings = random_readings(7, EVENTS, "abcn", keys=EVENTS if sequence == "many keys" else 20, values=100)
    states = plateau(driven, readings)
    assert {s["bytes"] for s in states[5:]} == {states[5]["bytes"]}, "memory still grows"
    for state in states:
        assert state["nodes"] <= ROOM.nodes
        assert state["groups"] <= 4 * WINDOW and state["buckets"] <= 8 * WINDOW
        assert state["rows"] <= 2 * WINDOW


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_what_is_over_is_freed(sequence: str, window: str) -> None:
    """Two windows later (a group may outlive its last prefix by one) only the newest events' groups are left."""
    text, filters = SEQUENCES[sequence]
    driven = Driven(query(text, WINDOWS[window], **filters))
    readings = random_readings(7, 2_000, "abcn", values=100)
    driven.push(readings)
    driven.count()
    last = readings[-1].time
    driven.push([Reading(last + 1_000 * (i + 1), "z") for i in range(1_000)])
    driven.count()
    driven.push([Reading(last + 10_000_000 + i, "b", key=77) for i in range(3)])
    driven.count()
    state = driven.run.state
    assert (state["groups"], state["buckets"]) == (0, 0)
    assert state["rows"] <= 8


def test_what_waits_for_its_window_to_close_is_freed_at_the_end() -> None:
    driven = Driven(query("A; N!", WINDOWS["sliding"], A=KEYED, N=KEYED))
    driven.push(random_readings(3, 500, "an"))
    driven.finish()
    assert (driven.run.state["groups"], driven.run.state["buckets"]) == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        query("A; B", A=KEYED, B=KEYED),
        query("A; B", A="FILTER(?av > 50)", B="FILTER(?bv >= ?av)"),
        query("A; N!; B", A=KEYED, N=KEYED, B=KEYED),
        query("A, B, C"),
    ],
    ids=["equality", "inequality", "negation", "strict"],
)
def test_without_a_window_nodes_are_bounded_if_groups_are(text: str) -> None:
    states = plateau(Driven(text, ROOM), random_readings(5, EVENTS, "abcn", keys=10, values=60))
    assert {s["bytes"] for s in states[5:]} == {states[5]["bytes"]}, "memory still grows"
    for state in states:
        assert state["groups"] <= 60 and state["buckets"] <= 60
        assert state["rows"] <= 4 * 1_024 + STEP  # rows are looked through once there are 4096


def test_leading_negations_leave_their_table_with_the_window() -> None:
    """Every negated row has a key of its own: the table of leading negations would grow for ever."""
    driven = Driven(query("N!; A; B", "WITHIN PT0.0001S SLIDING", A=KEYED, B=KEYED, N=KEYED), ROOM)
    readings = [Reading(t, "nab"[t % 3], key=t) for t in range(EVENTS)]
    states = plateau(driven, readings)
    assert states[-1]["bytes"] == states[4]["bytes"]


@pytest.mark.parametrize(
    "window",
    [
        "tumbling",
        "sliding",
        "events",
        "events, sliding",
    ],
)
def test_distinct_remembers_no_more_than_a_window(window: str) -> None:
    driven = Driven(query("A; B", WINDOWS[window], "SELECT DISTINCT ?av", A=KEYED, B=KEYED))
    plateau(driven, [Reading(i, "ab"[i % 2], value=i % 7) for i in range(5_000)])
    assert len(driven.run.teller._writer._seen) <= 2 * WINDOW
