"""`(B; C)!`: how far a group has come is where a run waits."""

from __future__ import annotations

import pytest
from engine_runs import STREAM, Driven, Reading, Row, query, random_readings
from loaded import load

import oxiseq
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.grammar.errors import QueryError

END = 1_000_000
"""Behind all events (µs)."""


def readings(text: str) -> list[Reading]:
    """`a@0 b@1`."""
    return [Reading(int(time), kind) for kind, _, time in (word.partition("@") for word in text.split())]


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()], ids=["usual", "smallest"])
@pytest.mark.parametrize(
    ("sequence", "events", "window", "ends"),
    [
        ("A; (B; C)!; N", "a@0 b@1 b@2 n@3", "", [3]),
        ("A; (B; C)!; N", "a@0 b@1 c@2 n@3", "", []),
        ("A; (B; C)!; N", "a@0 b@1 c@1 n@3", "", [3]),  # not one after the other
        ("A; (B; C)!; N", "a@0 b@0 c@1 n@3", "", [3]),  # not behind a
        ("A; (B; C)!; N", "a@0 b@1 c@2 n@2", "", [2]),  # not before n
        ("A; (B; C)!; N", "a@0 b@1 n@1 n@2", "", [1]),  # the next n
        ("A: (B; C)!: N", "a@0 b@1 n@1 n@2 c@3 n@4", "", [1, 2]),
        ("A: (B; C)!: N", "a@0 b@1 a@2 c@3 n@4", "", [4]),
        ("A: ((B | C); N)!", "a@0 b@1 c@1 n@5", "WITHIN PT0.000003S SLIDING", [0]),  # taken on once
        ("A; (B; C)!", "a@0 b@1 c@2 a@3 b@4 b@9", "WITHIN PT0.000003S SLIDING", [3]),
        ("A; (B; C)!", "a@0 b@1 b@2 c@3 c@4", "WITHIN 3 EVENTS", [0]),
    ],
)
def test_a_run_ends_where_the_whole_group_has_come(
    sequence: str, events: str, window: str, ends: list[int], capacities: Capacities | None
) -> None:
    run = Driven(query(sequence, window), capacities, start=0)
    assert [end for end, _, _ in run.answer(readings(events))] == ends


def test_runs_that_wait_for_a_step_are_one_group() -> None:
    run = Driven(query("A: (B; C)!: N"))
    run.push([Reading(i, "ab"[i % 2]) for i in range(1_000)])
    run.run.advance()
    assert run.run.state["groups"] == 2


def test_explain_names_the_steps() -> None:
    text = str(oxiseq.Query(query("A; (B; C)!; N")).explain())
    assert "B is the group's next step" in text and "of the negated group has come: B" in text


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()], ids=["usual", "smallest"])
@pytest.mark.parametrize(
    ("sequence", "events", "ends"),
    [
        ("A; (B; C)! WITHIN PT0.000005S; N", "a@0 b@1 c@5 n@9", []),
        ("A; (B; C)! WITHIN PT0.000005S; N", "a@0 b@1 c@6 n@9", [9]),  # its last event counts
        ("A: (B; C)! WITHIN PT0.000005S: N", "a@0 a@2 b@3 c@6 n@9", [9]),  # from each a
        ("A; (B; (C | D))! WITHIN PT0.000005S; N", "a@0 b@1 d@5 n@9", []),
        ("A:+; (B; C)! WITHIN PT0.000005S; N", "a@0 a@2 b@3 c@6 n@9", [9]),  # the last iteration counts
        ("(A; (B; C)! WITHIN PT0.000005S; N);+", "a@0 n@1 a@2 b@3 c@9 n@10", [1, 10, 10]),
        ("A; (B; C)! WITHIN P3650000D; N", "a@0 b@1 c@6 n@9", []),
        ("A; (B; C)! WITHIN PT0.000005S WITHIN PT1S; N", "a@0 b@1 c@6 n@9", [9]),
        ("A; (B; C)!; N; D WITHIN PT0.000002S", "a@0 b@1 n@2 d@4", [4]),
        ("A; (B; C)!; N; D WITHIN PT0.000002S", "a@0 b@1 n@2 d@5", []),
        ("A; N WITHIN PT0.000002S; (B; C)!; D", "a@0 n@2 b@4 d@5", [5]),
        ("A; (B; C)!; N WITHIN PT0.000005S", "a@0 b@1 n@5", [5]),
        ("A; (B; C)!; N WITHIN PT0.000005S", "a@0 n@6 n@7", []),
        ("A; (B; C)!; N WITHIN PT0.000005S", "a@0 b@1 a@4 n@6", [6]),  # only the second one is young enough
        ("A; (B; C)!; N WITHIN PT0.000005S", "a@0 b@1 c@2 a@3 n@4", [4]),
        ("A; (B; C)! WITHIN PT0.000003S; (N WITHIN PT0.000005S):+", "a@0 b@1 c@4 n@5 n@10 n@16", [5, 10]),
        ("A; (B; C)!; N AFTER PT0.000005S", "a@0 b@1 n@4 n@5 n@6", [5]),  # too early does not end the wait
        ("A; (B; C)!; N AFTER PT0.000005S", "a@0 b@1 n@4 c@5 n@6", []),
        ("A; (B; C)! WITHIN PT0.000003S; N AFTER PT0.000005S", "a@0 b@1 n@2 c@4 n@6", [6]),
        ("A; (B; C)!; N AFTER PT0.000005S WITHIN PT0.000006S", "a@0 b@1 n@7 a@8 n@13 a@14 n@20", [13, 20]),
        ("A; D! WITHIN PT0.000002S; (B; C)!; N", "a@0 d@3 n@4 a@5 d@7 n@8", [4]),
        ("A; (B; C)! WITHIN PT0.000005S; D! WITHIN PT0.000002S; N", "a@0 d@3 b@4 c@5 n@6", []),  # both are over apart
        ("A; (B; C)! WITHIN PT0.000002S; D! WITHIN PT0.000005S; N", "a@0 b@2 c@3 n@4 a@5 d@9 n@10", [4]),
        ("A; X?; (B; C)! WITHIN PT0.000005S; N", "a@0 x@3 b@4 c@7 n@9", [9]),  # from x, if there is one
    ],
)
def test_bounds_beside_a_group(sequence: str, events: str, ends: list[int], capacities: Capacities | None) -> None:
    run = Driven(query(sequence), capacities, start=0)
    assert [end for end, _, _ in run.answer(readings(events))] == ends


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()], ids=["usual", "smallest"])
@pytest.mark.parametrize(
    ("sequence", "events", "window", "ends"),
    [
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 b@1 c@5 n@9", "", []),
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 b@1 c@6", "", [0]),  # its last event counts
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 b@1 c@5 a@5 b@10 c@11", "", [5]),  # a run in a step has its deadline
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 a@2 b@3 c@6 n@9", "", [0]),
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 a@2 b@3 c@6 n@9", "WITHIN PT0.000004S", [0, 2]),  # the window ends first
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 a@2 b@3 c@6 n@9", "WITHIN PT0.000004S SLIDING", [0]),
        ("A; X; (B; C)! WITHIN PT0.000002S", "a@0 a@1 x@2 b@3 c@4 a@5 x@6 b@7 c@9", "WITHIN PT0.000020S SLIDING", [6]),
        ("A; (B; C)! WITHIN PT0.000002S; N!", "a@0 n@9 a@12 b@13 c@14 a@16", "WITHIN PT0.000010S", [16]),
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 b@1 c@5 a@8 b@9 x@14", "WITHIN 9 EVENTS", [8]),
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 b@1 x@2 c@3", "WITHIN 2 EVENTS", [0]),  # the window is full first
        ("A; (B; C)! WITHIN PT0.000005S", "a@0 b@1 x@2 c@3", "WITHIN 2 EVENTS SLIDING", [0]),
        ("A; N! WITHIN PT0.000002S; (B; C)! WITHIN PT0.000005S", "a@0 n@3 b@4 a@8 n@10", "WITHIN 9 EVENTS", [0]),
        ("A; (B; C)! WITHIN PT0.000002S; N! WITHIN PT0.000005S", "a@0 b@1 c@3 a@9 n@14", "", [0]),
    ],
)
def test_a_bound_at_the_end_completes_matches(
    sequence: str, events: str, window: str, ends: list[int], capacities: Capacities | None
) -> None:
    run = Driven(query(sequence, window), capacities, start=0)
    assert [end for end, _, _ in run.answer(readings(events))] == ends


@pytest.mark.parametrize("window", ["", "WITHIN 9 EVENTS", "WITHIN 9 EVENTS SLIDING"])
def test_such_a_match_comes_with_the_clock(window: str) -> None:
    run = Driven(query("A; (B; C)! WITHIN PT0.000005S", window), start=0)
    run.push(readings("a@0 b@1"))
    ends = []
    for time in (2, 5, 6):
        run.run.punctuate(STREAM, time)
        ends.append([end for end, _, _ in run.advance()])
        assert run.run.deadline == (5 if time < 6 else None)
    assert ends == [[], [], [0]] and run.run.state["groups"] == 0


@pytest.mark.parametrize("window", ["", "WITHIN PT0.000020S", "WITHIN PT0.000009S SLIDING"])
@pytest.mark.parametrize("sequence", ["A: X: (B; C)! WITHIN PT0.000007S", "(A; X);+; (B; (C | D))! WITHIN PT0.000004S"])
def test_each_match_comes_when_its_bound_or_window_has_passed(sequence: str, window: str) -> None:
    """Whatever the batches: in order of that moment, then of its end."""
    bound = int(sequence[-2])
    for seed in range(2):
        events = random_readings(seed, 40, "aabcdxx")
        whole = Driven(query(sequence, window), start=0).answer(events)
        run, told = Driven(query(sequence, window), start=0), []
        for i, each in enumerate(events):
            run.push([each])
            if i % 3 == 0:
                run.run.punctuate(STREAM, each.time)
                told += [(each.time, row) for row in run.advance()]
        told += [(END, row) for row in run.finish()]
        assert [row for _, row in told] == whole and whole
        closed = [min(row[0] + bound, _close(window, row)) for row in whole]
        assert sorted(zip(closed, (row[0] for row in whole), strict=True)) == [
            (moment, row[0]) for moment, row in zip(closed, whole, strict=True)
        ]
        assert all(moment < seen for moment, (seen, _) in zip(closed, told, strict=True))
        heard = [each.time for i, each in enumerate(events) if i % 3 == 0] + [END]
        assert all(seen == next(t for t in heard if t > moment) for moment, (seen, _) in zip(closed, told, strict=True))


def _close(window: str, row: Row) -> int:
    """The last time (µs) of a match's window."""
    end, _, events = row
    if "SLIDING" in window:
        return min(time for _, time in events) + 9
    return end // 20 * 20 + 19 if window else END


def test_runs_that_wait_too_long_behind_a_group_are_dropped() -> None:
    run = Driven(query("A: (B; C)!: N WITHIN PT0.000010S"), start=0)
    run.push([Reading(i, "ab"[i % 7 == 0]) for i in range(2_000)])
    run.run.advance()
    assert run.run.state["groups"] <= 13


def test_explain_says_when_it_is_complete() -> None:
    text = str(oxiseq.Query(query("A; (B; C)! WITHIN 10 MINUTES")).explain())
    assert text.count("a run that has waited up to 10 MINUTES; older, it is a match") == 2
    assert "waits for the window's end" not in text


def test_explain_says_what_becomes_of_runs_when_the_bound_has_passed() -> None:
    text = str(oxiseq.Query(query("A; (B; C)! WITHIN 10 MINUTES; N")).explain())
    assert text.count("a run that has waited up to 10 MINUTES; older, it continues to wait") == 2
    assert "not C: stamp on the key, nothing is searched" in text
    behind = text.partition("a run that has waited more than 10 MINUTES")[2]
    assert "N at the next one (;) → state 1: hash of the key" in behind and "not C" not in behind


def test_explain_says_which_bounds_are_over() -> None:
    text = str(oxiseq.Query(query("A; D! WITHIN 2 MINUTES; (B; C)! WITHIN 5 MINUTES; N AFTER 3 MINUTES")).explain())
    assert text.count("waited up to 2 MINUTES") == 2 and "from 3 MINUTES on, up to 5 MINUTES" in text
    assert text.count("not D") == 2 and text.count("N at the next one (;)") == 3 and text.count("not C") == 3


def test_runs_are_one_group_when_the_bound_has_passed() -> None:
    run = Driven(query("A: (B; C)! WITHIN PT0.000010S: N"), start=0)
    run.push([Reading(i, "ab"[i % 7 == 0]) for i in range(2_000)])
    run.run.advance()
    assert run.run.state["groups"] <= 14
    assert len(run.answer([Reading(2_000, "n")])) == 1_714


def test_why_names_the_events_that_the_bound_lets_count() -> None:
    text = query("A; (B; C)! WITHIN PT0.000005S; N")
    about = "<{0}> <http://e/kind> <http://e/{1}> ; <http://e/k> 1 ; <http://e/v> 1 ."
    found = readings("a@0 b@1 c@5 c@6 n@9")
    events = [(each.time, about.format(f"http://e/{each.kind}{each.time}", each.kind)) for each in found]
    lines = str(oxiseq.Query(text).why(streams={"http://e/s1": events}))
    assert "without the negation, (B; C)!: 1 more" in lines
    assert "there is one at 1970-01-01T00:00:00.000001Z, 1970-01-01T00:00:00.000005Z\n" in lines


def test_why_says_what_hides_a_match_at_the_end() -> None:
    about = "<{0}> <http://e/kind> <http://e/{1}> ; <http://e/k> 1 ; <http://e/v> 1 ."
    found = readings("a@0 b@1 c@5 c@6 n@9")
    events = [(each.time, about.format(f"http://e/{each.kind}{each.time}", each.kind)) for each in found]
    lines = str(oxiseq.Query(query("A; (B; C)! WITHIN PT0.000005S")).why(streams={"http://e/s1": events}))
    assert "without the negation, (B; C)!: 1 more" in lines
    assert "there is one at 1970-01-01T00:00:00.000001Z, 1970-01-01T00:00:00.000005Z\n" in lines


@pytest.mark.parametrize(
    ("sequence", "reason", "hint"),
    [
        ("(B; C)!; A", "comes first", "SEQ(A; (B; C)!; D)"),
        ("A; (B, C)!; N", "`,` cannot be used in a negated group", "join its GPMs with ;"),
        ("A; (B; C)!; N; (A; B)!; C", "SEQ has one negated group", "two queries"),
        ("A; (B; C)!", "at the end needs a window", "(B; C)! WITHIN 10 MINUTES"),
    ],
)
def test_what_is_refused(sequence: str, reason: str, hint: str) -> None:
    with pytest.raises(QueryError) as refused:
        load(query(sequence))
    assert reason in str(refused.value) and "^" in str(refused.value) and hint in str(refused.value)
