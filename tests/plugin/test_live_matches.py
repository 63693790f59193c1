"""Live queries: waiting for matches, callbacks, late events, punctuation, the end of a stream, composition."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from live_queries import PAYMENTS, E, S, T, left, paid, query
from pyoxigraph import Literal, NamedNode

import oxiseq


def integer(number: int) -> Literal:
    return Literal(str(number), datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))


def times(found: oxiseq.ContinuousQuery[oxiseq.Match]) -> list[int]:
    """When the matches that are complete were decided, the open instant aside."""
    return [m.at_us for m in found.poll("0s", idle=None)]


@contextmanager
def in_background(*steps: tuple[oxiseq.Stream, str, int]) -> Iterator[None]:
    """Push from another thread, after the consumer has begun to wait."""

    def work() -> None:
        for stream, graph, at in steps:
            time.sleep(0.02)
            stream.push(graph, at)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


# --- waiting ----------------------------------------------------------------------------------------


def test_waiting_ends_when_another_thread_pushes() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    with in_background(*((stream, graph, at) for at, graph in [*PAYMENTS, (9, paid(1))])):
        found = live.poll("300s", idle=None)
        assert [next(found).at_us, next(found).at_us] == [2, 3]


def test_waiting_without_a_timeout_ends_with_the_query() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    seen: list[int] = []
    consumer = threading.Thread(target=lambda: seen.extend(m.at_us for m in live.poll(idle=None)))
    consumer.start()
    stream.extend(PAYMENTS)
    live.close()
    consumer.join(timeout=300)
    assert not consumer.is_alive()
    assert seen == [2, 3]


def test_a_timeout_without_matches_is_kept() -> None:
    live = oxiseq.Store().register(query())
    begin = time.monotonic()
    assert list(live.poll("50ms")) == []
    assert 0.04 < time.monotonic() - begin < 5


def test_a_quiet_stream_closes_its_open_instant() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    stream.extend(PAYMENTS)
    assert times(live) == [2]
    found = live.poll("300s", idle="10ms")
    assert next(found).at_us == 3
    stream.push(paid(99), 3)  # the instant was taken as complete
    assert live.late_count == 1


def test_without_idle_the_newest_instant_stays_open() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    stream.extend(PAYMENTS)
    assert list(live.poll("100ms", idle=None))[-1].at_us == 2
    stream.push(f"<{E}bob> <{E}paid> 1 .", 3)
    assert live.late_count == 0
    stream.advance(4)
    assert times(live) == [3]


def test_each_match_is_handed_out_once() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    stream.extend(PAYMENTS)
    stream.advance(10)
    assert next(live.poll("0s")).at_us == 2
    assert times(live) == [3]
    assert times(live) == []


# --- callbacks --------------------------------------------------------------------------------------


def test_callbacks_see_each_match_in_the_pushing_thread() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    seen: list[tuple[int, str]] = []
    live.subscribe(lambda m: seen.append((m.at_us, threading.current_thread().name)))
    pusher = threading.Thread(target=stream.extend, args=([*PAYMENTS, (9, "")],), name="pusher")
    pusher.start()
    pusher.join()
    assert seen == [(2, "pusher"), (3, "pusher")]
    assert times(live) == [2, 3]  # they are kept all the same


def test_callbacks_and_iteration_together() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    assert times(live) == []
    seen: list[int] = []
    live.subscribe(lambda m: seen.append(m.at_us))
    stream.extend([*PAYMENTS, (9, "")])
    assert times(live) == seen == [2, 3]


def test_a_callback_may_push() -> None:
    """The next event comes from the match: the stream answers itself until the sum is reached."""
    store = oxiseq.Store()
    live, stream = store.register(query("SELECT ?second")), store.stream(S)
    seen: list[int] = []

    def answer(match: oxiseq.Match) -> None:
        seen.append(match.at_us)
        if match.at_us < 5:
            stream.push(paid(10 * match.at_us), match.at_us + 1)

    live.subscribe(answer)
    stream.extend([(1, paid(1)), (2, paid(2)), (3, paid(3))])
    stream.advance(10)
    assert seen[:2] == [2, 3]
    assert seen == sorted(seen)


def test_a_callback_that_pushes_does_not_change_the_order() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    seen: list[int] = []

    def answer(match: oxiseq.Match) -> None:
        seen.append(match.at_us)
        if match.at_us == 2:
            stream.push(paid(1_000), 50)

    live.subscribe(answer)
    stream.extend([*PAYMENTS, (4, paid(60))])
    stream.advance(100)
    assert seen == [2, 3, 4, 50]


# --- late events, punctuation, the end --------------------------------------------------------------


def test_late_events_are_counted_and_handed_out_once() -> None:
    store = oxiseq.Store()
    live = store.register(query(), lateness=timedelta(microseconds=2))
    stream = store.stream(S)
    stream.extend([(5, paid(5)), (2, paid(2)), (3, paid(3)), (6, paid(6)), (1, paid(1))])
    assert live.late_count == 2
    late = live.drain_late_events()
    assert [(each.stream, each.time_us) for each in late] == [(S, 2), (S, 1)]
    assert [triple.object for each in late for triple in each.graph] == [integer(2), integer(1)]
    assert live.drain_late_events() == []
    live.close()
    assert times(live) == [5, 6]


def test_each_query_has_its_own_lateness() -> None:
    store = oxiseq.Store()
    strict, patient, stream = store.register(query()), store.register(query(), lateness="5us"), store.stream(S)
    stream.extend([(2, paid(40)), (1, paid(3)), (9, "")])
    assert (strict.late_count, patient.late_count) == (1, 0)
    assert times(strict) == []
    assert times(patient) == [2]


def test_punctuation_of_a_stream_and_of_the_store() -> None:
    store = oxiseq.Store()
    live, stream = store.register(query()), store.stream(S)
    stream.extend(PAYMENTS)
    assert times(live) == [2]
    stream.advance(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=4))
    assert times(live) == [3]
    stream.push(paid(60), 4)
    store.advance(5)
    assert times(live) == [4]
    stream.push(paid(70), 4)
    assert live.late_count == 1


def test_closing_decides_trailing_negations() -> None:
    store = oxiseq.Store()
    live = store.register(query("SELECT ?who", "A; N!", window="WITHIN 1 HOUR"))
    stream = store.stream(S)
    stream.extend([(1, paid(1)), (2, paid(1, "bob")), (3, left("bob"))])
    assert list(live.poll("0s")) == []
    live.close()
    assert [(m.end_us, m.at_us) for m in live.poll()] == [(1, 3_600_000_000)]  # the hour that began at 1 ends
    live.close()  # again is no error
    stream.push(paid(1), 9)
    assert (live.events, list(live.poll())) == (3, [])


def test_the_watermark_decides_trailing_negations() -> None:
    store = oxiseq.Store()
    live = store.register(query("SELECT ?who", "A; N!", window="WITHIN PT0.00001S SLIDING"))
    stream = store.stream(S)
    stream.push(paid(1), 1)
    stream.push(paid(1, "bob"), 11)
    assert times(live) == []
    stream.advance(12)
    assert [(m.end_us, m.at_us) for m in live.matches()] == [(1, 11)]


# --- several queries, several streams ---------------------------------------------------------------


def test_several_queries_on_one_stream() -> None:
    store = oxiseq.Store()
    rising, falling = store.register(query()), store.register(query(b="FILTER(?second < ?first)"))
    stream = store.stream(S)
    stream.extend([(1, paid(5)), (2, paid(3)), (3, paid(9)), (4, "")])
    assert times(rising) == [3, 3]
    assert times(falling) == [2]
    rising.close()
    stream.extend([(5, paid(1)), (6, "")])
    assert times(falling) == [5, 5]
    assert (rising.events, falling.events) == (4, 6)


def test_a_query_sees_what_is_pushed_after_it_was_registered() -> None:
    store = oxiseq.Store()
    stream = store.stream(S)
    stream.push(paid(1), 1)
    live = store.register(query())
    stream.extend([(2, paid(2)), (3, paid(3)), (4, "")])
    assert times(live) == [3]


def test_tumbling_windows_begin_at_the_given_start() -> None:
    store = oxiseq.Store()
    text = query(window="WITHIN PT0.00001S")
    first, given = store.register(text), store.register(text, origin=0)
    store.stream(S).extend([(8, paid(1)), (12, paid(2)), (30, "")])
    assert (times(first), times(given)) == ([12], [])


def test_two_streams_wait_for_each_other() -> None:
    store = oxiseq.Store()
    both = query(streams=f"FROM STREAM S <{S}> FROM STREAM R <{E}r>").replace("GPM B ON S", "GPM B ON R")
    live = store.register(both)
    store.stream(S).extend([(1, paid(1)), (5, paid(2))])
    assert times(live) == []
    store.stream(E + "r").extend([(3, paid(9)), (4, "")])
    assert times(live) == [3]
    (match,) = oxiseq.run(both, streams={"S": [(1, paid(1))], "R": [(3, paid(9))]})
    assert match.events == {"A": ((S, 1),), "B": ((E + "r", 3),)}


# --- composition ------------------------------------------------------------------------------------

ALARM = query(f"CONSTRUCT {{ ?who :alarm ?second }} INTO STREAM <{T}>")
SEEN = f"""PREFIX : <{E}>
SELECT ?who ?first ?second FROM STREAM T <{T}>
WHERE {{ SEQ(A; B) DEFINE GPM A ON T {{ ?who :alarm ?first }} DEFINE GPM B ON T {{ ?who :alarm ?second }} }}"""


def test_results_are_events_of_another_stream() -> None:
    store = oxiseq.Store()
    alarm, seen = store.register(ALARM), store.register(SEEN)
    store.stream(S).extend([*PAYMENTS, (4, paid(60)), (5, "")])
    store.stream(T).advance(10)
    assert [(m.at_us, m["first"], m["second"]) for m in seen.poll("0s")] == [
        (3, integer(40), integer(50)),
        (4, integer(50), integer(60)),
    ]
    assert seen.events == 3
    assert times(alarm) == [2, 3, 4]


def test_closing_the_source_hands_its_results_on() -> None:
    store = oxiseq.Store()
    alarm, seen = store.register(ALARM), store.register(SEEN)
    store.stream(S).extend(PAYMENTS)
    alarm.close()
    seen.close()
    assert [m.at_us for m in seen.poll()] == [3]


def test_advancing_the_store_lets_results_through() -> None:
    store = oxiseq.Store()
    seen = store.register(SEEN)
    store.register(ALARM)
    store.stream(S).extend(PAYMENTS)
    store.advance(100)
    assert (times(seen), seen.late_count) == ([3], 0)


@pytest.mark.parametrize("together", [False, True])
def test_results_of_two_queries_are_in_order_however_events_are_pushed(together: bool) -> None:
    store = oxiseq.Store()
    store.register(ALARM)
    store.register(query(f"CONSTRUCT {{ ?who :alarm 0 }} INTO STREAM <{T}>", "A"))
    seen = store.register(SEEN)
    events = [*PAYMENTS, (4, "")]
    for part in [events] if together else [[event] for event in events]:
        store.stream(S).extend(part)
    assert (seen.events, seen.late_count) == (5, 0)
    seen.close()
    assert [m.at_us for m in seen.poll()] == [2, 2, 3, 3, 3, 3]
