"""Events in order of arrival → instants in order of time: watermarks, lateness, punctuation, merging, `start`."""

from __future__ import annotations

from collections import Counter

import numpy as np
from engine_runs import Driven, Reading, query
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.clock import Clock, merge_instants
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL


def events(*times: int) -> EventBatch:
    """Events of one triple each; the triple's ids tell which event it was."""
    ids = np.arange(1, len(times) + 1, dtype=np.uint32)
    return EventBatch(np.array(times, np.int64), np.arange(len(times) + 1), ids, ids, ids)


def taken(clock: Clock) -> list[int]:
    return [int(time) for time in clock.take().time]


def test_an_instant_is_complete_when_something_later_has_come() -> None:
    clock = Clock(1)
    assert (clock.passed, clock.open) == (BEFORE_ALL, False)
    clock.push(0, events(5))
    assert taken(clock) == []
    assert clock.open
    clock.push(0, events(6))
    assert (taken(clock), taken(clock)) == ([5], [])


def test_all_streams_must_have_passed() -> None:
    clock = Clock(2)
    clock.push(0, events(1, 2, 3, 9))
    assert taken(clock) == []
    clock.push(1, events(3))
    instants = clock.take()
    assert instants.time.tolist() == [1, 2]
    assert [w.tolist() for w in instants.where] == [[0, 1], []]
    clock.advance(1, AFTER_ALL)
    instants = clock.take()
    assert instants.time.tolist() == [3]
    assert [w.tolist() for w in instants.where] == [[0], [0]]


def test_events_within_the_lateness_are_sorted() -> None:
    clock = Clock(1, lateness=2)
    assert len(clock.push(0, events(5, 3, 4))) == 0
    assert taken(clock) == []
    clock.push(0, events(7))
    assert taken(clock) == [3, 4]


def test_an_older_event_is_late_and_handed_out() -> None:
    clock = Clock(1, lateness=2)
    late = clock.push(0, events(5, 2, 3, 9, 6, 7))
    assert late.time.tolist() == [2, 6]
    assert late.subject.tolist() == [2, 5]
    clock.advance(0, 100)
    assert taken(clock) == [3, 5, 7, 9]


def test_each_stream_has_its_own_watermark() -> None:
    clock = Clock(2)
    clock.push(0, events(10))
    assert len(clock.push(1, events(3))) == 0
    assert len(clock.push(1, events(2))) == 1


def test_punctuation_completes_and_makes_late() -> None:
    clock = Clock(1)
    clock.push(0, events(5))
    clock.advance(0, 5)
    assert taken(clock) == []
    clock.advance(0, 6)
    assert taken(clock) == [5]
    assert clock.push(0, events(5, 6)).time.tolist() == [5]
    clock.advance(0, 2)  # never back
    assert clock.passed == 6


def test_punctuation_is_not_delayed_by_the_lateness() -> None:
    clock = Clock(1, lateness=100)
    clock.push(0, events(5))
    clock.advance(0, 6)
    assert taken(clock) == [5]


def test_graphs_of_one_timestamp_become_one_event_in_order_of_arrival() -> None:
    clock = Clock(1, lateness=5)
    clock.push(0, events(4, 2))
    clock.push(0, events(4, 4))
    clock.advance(0, AFTER_ALL)
    (batch,) = clock.take().batches
    assert batch.time.tolist() == [2, 4]
    assert batch.offset.tolist() == [0, 1, 4]
    assert batch.subject.tolist() == [2, 1, 1, 2]


def test_simultaneous_events_of_two_streams_are_one_instant() -> None:
    clock = Clock(2)
    clock.push(0, events(1, 2))
    clock.push(1, events(2))
    for stream in (0, 1):
        clock.advance(stream, AFTER_ALL)
    instants = clock.take()
    assert instants.time.tolist() == [1, 2]
    assert [w.tolist() for w in instants.where] == [[0, 1], [1]]


def test_what_was_before_the_start_is_not_seen_nor_late() -> None:
    clock = Clock(1, start=5)
    assert len(clock.push(0, events(3, 5, 6))) == 0
    clock.advance(0, AFTER_ALL)
    assert taken(clock) == [5, 6]


@given(st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(-5, 12), max_size=5)), max_size=8), st.integers(0, 4))
def test_no_event_is_lost_and_instants_rise(pushes: list[tuple[int, list[int]]], lateness: int) -> None:
    clock = Clock(2, lateness)
    arrived: Counter[int] = Counter()
    given_back: Counter[int] = Counter()
    seen: list[int] = []
    largest = [BEFORE_ALL, BEFORE_ALL]
    for stream, times in pushes:
        late = clock.push(stream, events(*times)).time.tolist()
        expected = []
        for time in times:
            if largest[stream] != BEFORE_ALL and time < largest[stream] - lateness:
                expected.append(time)
            largest[stream] = max(largest[stream], time)
        assert late == expected
        arrived.update(times)
        given_back.update(late)
        seen += _times(clock, given_back)
    for stream in (0, 1):
        clock.advance(stream, AFTER_ALL)
    seen += _times(clock, given_back)
    assert seen == sorted(set(seen))
    assert arrived == given_back


def _times(clock: Clock, counted: Counter[int]) -> list[int]:
    instants = clock.take()
    for batch in instants.batches:
        sizes = np.diff(batch.offset).tolist()
        for time, size in zip(batch.time.tolist(), sizes, strict=True):
            counted[time] += size
    return [int(time) for time in instants.time]


def test_merging_leaves_a_sorted_batch_alone() -> None:
    batch = events(1, 2, 5)
    assert merge_instants(batch) is batch


# --- what a query makes of it -----------------------------------------------------------------------


def test_tumbling_windows_begin_with_the_first_event_or_where_they_are_told() -> None:
    text = query("A; B", "WITHIN PT0.00001S")
    readings = [Reading(7, "a"), Reading(12, "b")]
    assert len(Driven(text).answer(readings)) == 1  # [7, 17)
    assert len(Driven(text, start=0).answer(readings)) == 0  # [0, 10) and [10, 20)
    assert len(Driven(text, start=5).answer(readings)) == 1  # [5, 15)
    assert len(Driven(text, start=2).answer(readings)) == 0  # [2, 12) is half-open


def test_the_first_instant_counts_even_if_a_later_one_came_first() -> None:
    driven = Driven(query("A; B", "WITHIN PT0.00001S"), lateness=10)
    driven.push([Reading(12, "b"), Reading(7, "a")])
    assert len(driven.finish()) == 1


def test_a_sliding_window_holds_its_own_length() -> None:
    text = query("A; B", "WITHIN PT0.00001S SLIDING")
    assert len(Driven(text).answer([Reading(7, "a"), Reading(17, "b")])) == 1
    assert len(Driven(text).answer([Reading(7, "a"), Reading(18, "b")])) == 0


def test_count_windows_number_the_instants_of_all_streams() -> None:
    text = query("A; B", "WITHIN 3 EVENTS")
    assert len(Driven(text).answer([Reading(1, "a"), Reading(5, "z"), Reading(9, "b")])) == 1
    assert len(Driven(text).answer([Reading(1, "z"), Reading(2, "a"), Reading(5, "z"), Reading(9, "b")])) == 0
    assert len(Driven(text).answer([Reading(1, "z"), Reading(1, "z"), Reading(2, "a"), Reading(9, "b")])) == 1
    sliding = query("A; B", "WITHIN 2 EVENTS SLIDING")
    assert len(Driven(sliding).answer([Reading(1, "z"), Reading(2, "a"), Reading(5, "z"), Reading(9, "b")])) == 1
    assert len(Driven(sliding).answer([Reading(2, "a"), Reading(3, "z"), Reading(5, "z"), Reading(9, "b")])) == 0


def test_count_windows_begin_at_the_start() -> None:
    text = query("A; B", "WITHIN 2 EVENTS")
    readings = [Reading(0, "z"), Reading(1, "a"), Reading(2, "b")]
    assert len(Driven(text).answer(readings)) == 0
    assert len(Driven(text, start=1).answer(readings)) == 1


def test_a_late_event_is_counted_and_matches_nothing() -> None:
    driven = Driven(query("A; B"))
    late = driven.push([Reading(5, "b"), Reading(3, "a"), Reading(6, "b")])
    assert late.time.tolist() == [3]
    assert driven.finish() == []
    assert (driven.run.events, driven.run.late, driven.run.instants) == (3, 1, 2)


def test_a_trailing_negation_is_decided_when_the_watermark_passes_the_window() -> None:
    driven = Driven(query("A; N!", "WITHIN PT0.00001S SLIDING"))
    driven.push([Reading(5, "a")])
    driven.run.punctuate(driven.plan.streams[0], 15)
    assert driven.advance() == []  # an N at 15 would still be in time
    driven.run.punctuate(driven.plan.streams[0], 16)
    (match,) = driven.advance()
    assert match[0] == 5


def test_a_tumbling_window_is_over_at_its_end() -> None:
    driven = Driven(query("A; N!", "WITHIN PT0.00001S"), start=0)
    driven.push([Reading(5, "a")])
    driven.run.punctuate(driven.plan.streams[0], 9)
    assert driven.advance() == []
    driven.run.punctuate(driven.plan.streams[0], 10)
    assert len(driven.advance()) == 1


def test_settling_takes_the_open_instant_as_complete() -> None:
    driven = Driven(query("A"))
    driven.run.settle()  # nothing has come yet
    driven.push([Reading(5, "a")])
    assert (driven.advance(), driven.run.open) == ([], True)
    driven.run.settle()
    assert (len(driven.advance()), driven.run.open) == (1, False)
    assert len(driven.push([Reading(5, "a", key=2)])) == 1


def test_times_before_1970_and_far_away() -> None:
    text = query("A; B", "WITHIN PT0.00001S")
    assert len(Driven(text).answer([Reading(-7, "a"), Reading(1, "b")])) == 1
    assert len(Driven(text, start=0).answer([Reading(-7, "a"), Reading(-6, "b")])) == 0
    far = 9_000_000_000_000_000
    assert len(Driven(text).answer([Reading(far, "a"), Reading(far + 1, "b")])) == 1
