"""What bounds of gaps cost and keep: runs in age segments come, go on and go, and leave nothing."""

from __future__ import annotations

import pytest
from engine_runs import Driven, Reading, query

from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sequence.states import age_ranges


def micros(count: int) -> str:
    return f"PT{count / 1_000_000:f}S"


def driven(sequence: str, capacities: Capacities | None = None, **more: str) -> Driven:
    """`5u` in the sequence is five microseconds."""
    words = (micros(int(word[:-1])) if word[:-1].isdecimal() and word[-1] == "u" else word for word in sequence.split())
    return Driven(query(" ".join(words), **more), capacities)


def state_after(run: Driven, kinds: str, count: int) -> dict[str, int]:
    run.push([Reading(i, kinds[i % len(kinds)]) for i in range(count)])
    run.run.advance()
    run.run.collect()
    return run.run.state


@pytest.mark.parametrize(
    ("least", "most", "bounds", "expected"),
    [
        (0, None, [], [(0, None)]),
        (0, 5, [], [(0, 5)]),
        (5, None, [], [(0, 4), (5, None)]),
        (3, 6, [], [(0, 2), (3, 6)]),
        (0, None, [4, None], [(0, 4), (5, None)]),
        (3, 6, [4], [(0, 2), (3, 4), (5, 6)]),
        (0, 6, [6, 9], [(0, 6)]),
        (6, 5, [], [(0, 5)]),
    ],
)
def test_a_gap_is_cut_where_what_it_does_changes(
    least: int, most: int | None, bounds: list[int | None], expected: list[tuple[int, int | None]]
) -> None:
    assert age_ranges(least, most, bounds) == expected


def test_runs_leave_when_the_bound_has_passed() -> None:
    run = driven("A : B WITHIN 100u : C WITHIN 100u")
    state = state_after(run, "ab", 5_000)
    # 50 A's and 51 B's, of the instants before the newest one
    assert state["aged"] <= 102
    assert state["groups"] == 2
    assert state["nodes"] < 3_000
    run.push([Reading(9_000, "c")])  # the next row finds them gone
    run.run.close()
    run.run.advance()
    assert run.run.state["aged"] == 0


@pytest.mark.parametrize("bound", [100, 1_000])
def test_a_row_looks_at_one_group_however_long_the_bound_is(bound: int) -> None:
    run = driven(f"A : B WITHIN {bound}u : C WITHIN {bound}u")
    assert state_after(run, "ab", 4_000)["touched"] <= 4_000


def test_what_lasts_too_long_is_dropped_without_a_later_row() -> None:
    run = driven("(A : B) LASTING 50u")
    state = state_after(run, "a", 2_000)
    assert state["groups"] <= 52
    run.push([Reading(9_000, "b")])
    run.run.close()
    assert run.count() == 0
    assert run.run.state["groups"] == 0


def test_killed_runs_leave_their_queue() -> None:
    run = driven("A ; N! WITHIN 1000u ; B", N="KEYED", A="KEYED")
    assert state_after(run, "aaan", 4_000)["aged"] <= 4


def test_the_deadline_is_that_of_the_oldest_run() -> None:
    run = driven("A ; N! WITHIN 100u")
    assert run.run.deadline is None and not run.run.waits
    run.push([Reading(10, "a"), Reading(30, "a"), Reading(31, "c")])
    run.run.advance()
    assert (run.run.deadline, run.run.silence) == (110, 80)
    run.run.punctuate(run.plan.streams[0], 111)
    assert run.count() == 1
    assert (run.run.deadline, run.run.waits) == (130, True)
    run.run.punctuate(run.plan.streams[0], 131)
    assert run.count() == 1
    assert run.run.deadline is None and not run.run.waits


def test_the_windows_end_is_a_deadline_too() -> None:
    run = driven("A ; N! WITHIN 100u", window="WITHIN PT0.00002S SLIDING")
    run.push([Reading(10, "a"), Reading(11, "c")])
    run.run.advance()
    assert run.run.deadline == 30


def test_a_bound_between_and_one_at_the_end() -> None:
    """Edges whose runs go on, and edges whose runs become matches."""
    run = driven("A ; B WITHIN 50u ; N! WITHIN 100u")
    run.push([Reading(10, "a"), Reading(20, "b"), Reading(30, "a"), Reading(90, "c")])
    run.run.advance()
    assert run.run.deadline == 120
    run.run.punctuate(run.plan.streams[0], 121)
    assert run.count() == 1 and run.run.deadline is None


def test_matches_of_instants_keep_their_order_beside_matches_that_wait() -> None:
    """Where partitions count their events the cut-off of a later instant may be the smaller one."""
    text = query("A; (B; N!)?", "WITHIN 3 EVENTS SLIDING PARTITION BY ?k", A="KEYED", B="KEYED", N="KEYED")
    events = [Reading(0, "a"), Reading(1, "b"), *(Reading(i, "a") for i in range(2, 20))]
    events += [Reading(i, "a", key=2) for i in range(20, 24)]
    alone = Driven(text, start=0)
    rows = [row for each in events for row in (alone.push([each]), alone.advance())[1]] + alone.finish()
    assert Driven(text, start=0).answer(events) == rows and sorted(end for end, _, _ in rows) == [*range(24)]


def test_the_smallest_memory_gives_the_same_matches() -> None:
    readings = [Reading(i * 3, "abn"[i * i % 3] if i % 7 else "c") for i in range(400)]
    found = []
    for capacities in (None, Capacities.smallest()):
        run = driven("A : B AFTER 5u WITHIN 40u ; N! WITHIN 6u", capacities)
        run.push(readings)
        run.run.close()
        found.append(run.count())
    assert found[0] == found[1] > 100


def test_a_long_queue_is_turned_in_pieces() -> None:
    """The node ring is full in the midst of it."""
    run = driven("A : B WITHIN 500u : C WITHIN 500u", Capacities(nodes=600))
    readings = [Reading(i, "ab"[i % 2]) for i in range(600)] + [Reading(900, "c")]
    run.push(readings)
    run.run.close()
    count = sum(1 for a in range(0, 600, 2) for b in range(max(a + 1, 401), 600, 2) if b - a <= 500)
    assert run.count() == count


def test_a_bound_at_the_end_beside_a_window_that_counts_events() -> None:
    """The bound's time decides, or before it the window's last event."""
    run = driven("A ; N! WITHIN 100u", window="WITHIN 2 EVENTS SLIDING")
    run.push([Reading(10, "a"), Reading(11, "c")])
    run.run.advance()
    assert (run.count(), run.run.deadline) == (0, 110)
    run.run.punctuate(run.plan.streams[0], 111)
    assert (run.count(), run.run.deadline) == (1, None)
    run.push([Reading(200, "a"), Reading(201, "c"), Reading(202, "c"), Reading(203, "c"), Reading(204, "n")])
    assert (run.count(), run.run.deadline) == (1, None)


@pytest.mark.parametrize("window", ["WITHIN PT0.00001S SLIDING", "WITHIN 5 EVENTS SLIDING", "WITHIN 5 EVENTS"])
def test_the_windows_end_completes_runs_of_all_ages(window: str) -> None:
    """Also those that came after the oldest had been looked for."""
    run = driven("A+ ; N! WITHIN 3u", window=window)
    times, count = [1, 7, 8, 9, 11], 0
    for time in times:
        run.push([Reading(time, "a")])
        count += run.count()
    run.run.close()
    assert count + run.count() == sum(range(1, len(times) + 1))


def test_windows_that_close_together_are_one_wave_in_the_smallest_memory() -> None:
    readings = [Reading(i, "a", i % 3) for i in range(8)] + [Reading(20, "c")]
    text = query("A; N!", "WITHIN PT0.000009S", A="KEYED", N="KEYED")
    found = [Driven(text, each, start=0).answer(readings) for each in (None, Capacities.smallest())]
    assert found[0] == found[1] and len(found[0]) == 8
