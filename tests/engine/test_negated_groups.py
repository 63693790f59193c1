"""`(B; C)!`: how far a group has come is where a run waits."""

from __future__ import annotations

import re

import pytest
from engine_runs import Driven, Reading, query
from loaded import load

import oxiseq
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.grammar.errors import QueryError


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
    ],
)
def test_bounds_beside_a_group(sequence: str, events: str, ends: list[int], capacities: Capacities | None) -> None:
    run = Driven(query(sequence), capacities, start=0)
    assert [end for end, _, _ in run.answer(readings(events))] == ends


def test_explain_says_the_bound_as_a_condition_of_the_last_step() -> None:
    text = str(oxiseq.Query(query("A; (B; C)! WITHIN 10 MINUTES; N")).explain())
    assert "not C: ordered index, EVENTTIME() <= TIMEOF(A) + " in text and '"PT600S"' in text


def test_why_names_the_events_that_the_bound_lets_count() -> None:
    text = query("A; (B; C)! WITHIN PT0.000005S; N")
    about = "<{0}> <http://e/kind> <http://e/{1}> ; <http://e/k> 1 ; <http://e/v> 1 ."
    found = readings("a@0 b@1 c@5 c@6 n@9")
    events = [(each.time, about.format(f"http://e/{each.kind}{each.time}", each.kind)) for each in found]
    lines = str(oxiseq.Query(text).why(streams={"http://e/s1": events}))
    assert "without the negation, (B; C)!: 1 more" in lines
    assert "there is one at 1970-01-01T00:00:00.000001Z, 1970-01-01T00:00:00.000005Z\n" in lines


@pytest.mark.parametrize(
    ("sequence", "reason", "hint"),
    [
        ("(B; C)!; A", "comes first", "SEQ(A; (B; C)!; D)"),
        ("A; (B, C)!; N", "`,` cannot be used in a negated group", "join its GPMs with ;"),
        ("A; (B; C)!; N; (A; B)!; C", "SEQ has one negated group", "two queries"),
        ("A; ((C | D) & B); X? ; (N; M)! WITHIN PT1S; Y", "does not always begin at", "a query for each GPM"),
        ("A; (B; C)!; (N WITHIN PT1S)+", "WITHIN bounds the gap of the negated group `(B; C)!`", "leave the bound out"),
    ],
)
def test_what_is_refused(sequence: str, reason: str, hint: str) -> None:
    with pytest.raises(QueryError) as refused:
        load(query(sequence))
    assert reason in str(refused.value) and "^" in str(refused.value) and hint in str(refused.value)


@pytest.mark.parametrize(
    ("sequence", "reason", "instead", "window", "name"),
    [
        ("A; (B; C)! WITHIN PT1S", "has no deadline", "A; (B; C)!", "WITHIN 1 HOURS", "C"),
        ("A; (B; C)!; N WITHIN PT1S", "WITHIN bounds the gap", "A; (B; C)!; N", "", "N"),
        ("A; (B; C)!; N AFTER PT1S", "AFTER bounds the gap", "A; (B; C)!; N", "", "N"),
        ("A; N! WITHIN PT1S; (B; C)!; D", "WITHIN bounds the gap", "A; N!; (B; C)!; D", "", "N"),
        ("A; (B; C)!; N! WITHIN PT1S; D", "WITHIN bounds the gap", "A; (B; C)!; N!; D", "", "N"),
    ],
)
def test_what_the_hint_says_is_accepted(sequence: str, reason: str, instead: str, window: str, name: str) -> None:
    with pytest.raises(QueryError) as refused:
        load(query(sequence))
    said = re.search(f"write in {name} (FILTER\\(.*>\\))", str(refused.value))
    assert reason in str(refused.value) and "^" in str(refused.value) and said is not None
    load(query(instead, window, **{name: said[1]}))


def test_the_condition_that_stands_for_a_bound_gives_its_matches() -> None:
    """An event of N that comes too early does not end the wait of `;`."""
    later = 'FILTER(EVENTTIME() >= TIMEOF(A) + "PT0.000005S"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>)'
    events = readings("a@0 b@1 n@4 n@5 n@6")
    found = [
        Driven(query(text, **more), start=0).answer(events)
        for text, more in [("A; (B; C)!; N", {"N": later}), ("A; N AFTER PT0.000005S", {})]
    ]
    assert found[0] == found[1] and [end for end, _, _ in found[0]] == [5]
