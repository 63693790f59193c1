"""A reader of a result stream gets each result, in order and never late, however events are batched (semantics.md
2.6a)."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from result_chain import ALERTS, ISSUE, OTHER, READ, SEEN, SILENT, SOURCE, UNANSWERED, Sent, parts, seen

import oxiseq

SECOND = 1_000_000
Told: TypeAlias = list[tuple[str, str, int]]


def told(query: oxiseq.ContinuousQuery) -> Told:
    return [(m["k"].value[-2:], m["x"].value[-2:], m.at_us // SECOND) for m in query.matches()]


def run(pushed: list[tuple[str, list[Sent]]], *queries: str, until: int = 100) -> list[Told]:
    """What each reader finds."""
    store = oxiseq.Store()
    registered = [store.register(query) for query in queries]
    for iri, events in pushed:
        store.stream(iri).extend([(time * SECOND, graph) for time, graph in events])
    for iri in (SOURCE, OTHER):
        store.stream(iri).advance(until * SECOND)
    assert not any(query.late_count for query in registered)
    return [told(query) for query in registered if query.feeds is None]


def test_a_result_comes_when_it_is_decided() -> None:
    """Reported as lost in issue 40: with one event a push k2, which ends first, came late."""
    for sizes in ([1] * 13, [13], [4, 9], [2, 3, 4, 4]):
        pushed = [(SOURCE, part) for part in parts(ISSUE, sizes)]
        assert run(pushed, UNANSWERED, READ) == [[("k1", "a0", 10), ("k2", "a5", 15)]]


def test_two_results_of_one_time_are_one_instant() -> None:
    events = [
        seen(0, "a", "k1"),
        (0, seen(0, "a", "k2")[1].replace("a0", "z0")),
        seen(4, "b", "k1"),
        seen(6, "b", "k2"),
    ]
    both = READ.replace("SEQ(X)", "SEQ(X & Z)").replace(
        "DEFINE GPM X", "DEFINE GPM Z ON R { ?l :alert ?z FILTER(?z != ?x) } DEFINE GPM X"
    )
    for sizes in ([1] * 4, [4]):
        found = run([(SOURCE, part) for part in parts(events, sizes)], UNANSWERED, both)
        assert sorted(found[0]) == [("k1", "a0", 10), ("k2", "z0", 10)]


def test_an_absence_among_results_is_decided_though_no_result_comes() -> None:
    assert run([(SOURCE, ISSUE)], UNANSWERED, SILENT, until=18) == [[("k1", "a0", 14)]]
    assert run([(SOURCE, ISSUE)], UNANSWERED, SILENT) == [[("k1", "a0", 14), ("k2", "a5", 19)]]


def test_of_several_writers_the_one_that_is_furthest_behind_counts() -> None:
    store = oxiseq.Store()
    reader = [store.register(query) for query in (UNANSWERED, SEEN, READ)][2]
    store.stream(OTHER).push(seen(12, "c", "k3")[1], 12 * SECOND)
    store.stream(OTHER).advance(50 * SECOND)
    assert told(reader) == []  # what ends up at 10 may come
    store.stream(SOURCE).extend([(time * SECOND, graph) for time, graph in ISSUE])
    assert told(reader) == [("k1", "a0", 10), ("k3", "12", 12), ("k2", "a5", 15)]


def test_a_writer_that_goes_holds_nobody_up() -> None:
    store = oxiseq.Store()
    unanswered, _, reader = [store.register(query) for query in (UNANSWERED, SEEN, READ)]
    store.stream(OTHER).push(seen(12, "c", "k3")[1], 12 * SECOND)
    store.stream(OTHER).advance(50 * SECOND)
    unanswered.close()
    assert told(reader) == [("k3", "12", 12)]


def test_waiting_for_an_absence_lets_time_go_on_in_the_source() -> None:
    """The reader's own bound passes by the clock; its stream is complete when the writer says so."""
    store = oxiseq.Store()
    quick = UNANSWERED.replace("WITHIN 10 SECONDS SLIDING\n", "").replace("N!", "N! WITHIN 1 MILLISECOND")
    store.register(quick)
    reader = store.register(SILENT.replace("4 SECONDS", "2 MILLISECONDS"))
    store.stream(SOURCE).extend([(time * SECOND, graph) for time, graph in ISSUE[:4]])
    found = [match["k"].value[-2:] for match in reader.poll("1s")]
    assert found == ["k2", "k1"] and store.stream(ALERTS).events == 2


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("aabbnt"), st.sampled_from(["k1", "k2"])), min_size=1, max_size=14
)


def timed(steps: list[tuple[int, str, str]], kind: str | None = None) -> list[Sent]:
    now, events = 0, []
    for step, each, key in steps:
        now += step
        events.append(seen(now, kind or each, key))
    return events


@drawn(40)
@given(STEPS, STEPS, st.lists(st.integers(1, 6), max_size=14), st.lists(st.booleans(), max_size=20))
def test_answers_do_not_depend_on_batches(
    source: list[tuple[int, str, str]], other: list[tuple[int, str, str]], sizes: list[int], turns: list[bool]
) -> None:
    first, second = timed(source), timed(other, "c")
    mine, theirs = list(parts(first, sizes)), list(parts(second, sizes[::-1]))
    mixed: list[tuple[str, list[Sent]]] = []
    for turn in turns:
        if left := mine if turn else theirs:
            mixed.append((SOURCE if turn else OTHER, left.pop(0)))
    mixed += [(SOURCE, part) for part in mine] + [(OTHER, part) for part in theirs]
    single = [(SOURCE, [event]) for event in first] + [(OTHER, [event]) for event in second]
    queries = (UNANSWERED, SEEN, READ, SILENT)
    for one, two in zip(run(mixed, *queries), run(single, *queries), strict=True):
        assert [each[2] for each in one] == [each[2] for each in two] and sorted(one) == sorted(two)
