"""`(B; C)!`: how far a group has come is where a run waits."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ("(B; C)!; A", "comes first"),
        ("A; (B, C)!; N", "`,` cannot be used in a negated group"),
        ("A; (B; C)! WITHIN PT1S; N", "WITHIN on an element cannot be used beside"),
        ("A; (B; C)!; N; (A; B)!; C", "SEQ has one negated group"),
    ],
)
def test_what_is_refused(sequence: str, reason: str) -> None:
    with pytest.raises(QueryError) as refused:
        load(query(sequence))
    assert reason in str(refused.value) and "^" in str(refused.value)
