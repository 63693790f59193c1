"""Facts about UNTIL, worked out by hand from semantics.md 2.5c."""

from __future__ import annotations

import pytest

from reference.facts import columns, matches

COMPARED = {"U": "+ FILTER(?ku > ?kb)"}
KEYED = {n: f"?{n.lower()} :kind :{n.lower()} ; :k ?k" for n in "ABCU"}


@pytest.mark.parametrize(
    ("seq", "events", "expected"),
    [
        ("A; B", "u a b u", ["A20 B30"]),  # before the first and behind the last event it counts for nothing
        ("A; B", "a u b b", []),  # the next B stays the next
        ("A : B", "a b u b", ["A10 B20"]),
        ("A; (B; C)", "a b u c", []),  # a gap inside parentheses
        ("A; B?; C", "a u c", []),  # where a ? was skipped between its neighbours
        ("A; B?; C", "a c", ["A10 C20"]),
        ("PERMUTE(A; B)", "b u a b", ["A30 B40"]),
        ("A; N!; B", "a u b", []),
        ("A; N!; B", "a n b", []),
        ("A; N! WITHIN PT0.000005S; B", "a n b", ["A10 B30"]),  # the bound is N's
        ("A; N! WITHIN PT0.000005S; B", "a u b", []),
        ("A; (B; C)!; D", "a b u d", []),
        ("A; (B; C)!; D", "a@10 b@20 c@30 d@40", []),  # B and C are no steps, U ends no negated group
        ("A; (B : C)!; D", "a@10 b@20 u&d@25 c@30 d@40", ["A10 D25"]),
    ],
)
def test_gaps(seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events, until="U") == expected


def test_an_event_may_be_a_step_and_end_another_run() -> None:
    assert matches("A : B", "a a&u b", until="U") == ["A20 B30"]


def test_lasting_is_applied_to_what_is_left() -> None:
    assert matches("(A : B) LASTING PT0.000020S", "a b u b", until="U") == ["A10 B20"]


def test_several() -> None:
    assert matches("A : B", "a u b", until="(U | V)") == matches("A : B", "a v b", until="(U | V)") == []
    assert matches("A : B", "a u&v b", until="U & V") == []
    assert matches("A : B", "a u v b", until="U & V") == ["A10 B40"]


def test_it_joins_with_the_iteration_that_has_ended() -> None:
    assert matches("A; B;{2}", "a b1 u2 b3", bodies=COMPARED, until="U") == []
    assert matches("A; B;{2}", "a b2 u2 b3", bodies=COMPARED, until="U") == ["A10 B20,40"]
    assert matches("A; B;{2}; C", "a b1 b3 u2 c", bodies=COMPARED, until="U") == ["A10 B20,30 C50"]


def test_iterations_of_a_group() -> None:
    """Inside an iteration U sees what stands before the repeat and the iteration so far."""
    assert matches("(A; B);{2}", "a b1 a u2 b5", bodies=COMPARED, until="U") == ["A10,30 B20,50"]  # ?kb is fresh
    assert matches("(A; B);{2}", "a b1 u2 a b5", bodies=COMPARED, until="U") == []  # that of the iteration before
    bodies = {"U": "+ FILTER(?ku = ?ka)"}
    assert matches("(A; B);{2}", "a1 b a2 u1 b", bodies=bodies, until="U") == ["A10,30 B20,50"]
    assert matches("(A; B);{2}", "a1 b a2 u2 b", bodies=bodies, until="U") == []


def test_what_is_not_bound_yet() -> None:
    assert matches("A; B; C", "a u2 b1 c", bodies=COMPARED, until="U") == ["A10 B30 C40"]
    assert matches("A; B; C", "a b1 u2 c", bodies=COMPARED, until="U") == []
    either = {"U": "+ FILTER(?ku > ?kb || ?ku > 1)"}
    assert matches("A; B; C", "a u2 b1 c", bodies=either, until="U") == ["A10 B30 C40"]  # the whole filter is an error
    assert matches("A; B; C", "a b9 u2 c", bodies=either, until="U") == []
    counted = {"U": "+ FILTER(COUNT(B) < 2)"}
    assert matches("A; B;+; C", "a u b c", bodies=counted, until="U") == ["A10 B30 C40"]
    assert matches("A; B;+; C", "a b u c", bodies=counted, until="U") == []


def test_what_is_passed_over_is_unbound() -> None:
    bodies = {"U": "+ FILTER(!BOUND(?kb))"}
    assert matches("(A | B); C", "a u c", bodies=bodies, until="U") == []
    assert matches("(A | B); C", "b u c", bodies=bodies, until="U") == ["B10 C30"]


def test_a_later_variable_of_its_pattern_is_free() -> None:
    bodies = {n: KEYED[n] for n in "BCU"}
    assert matches("A; B; C", "a u1 b2 c2", bodies=bodies, until="U") == []
    assert matches("A; B; C", "a b2 u1 c2", bodies=bodies, until="U") == ["A10 B20 C40"]


def test_run_values() -> None:
    bodies = {"U": "+ FILTER(?ku > SUM(?kb) && EVENTTIME() > TIMEOF(A))"}
    assert matches("A; B;{2}; C", "a b1 b2 u3 c", bodies=bodies, until="U") == ["A10 B20,30 C50"]
    assert matches("A; B;{2}; C", "a b1 b2 u4 c", bodies=bodies, until="U") == []


def test_partitions() -> None:
    window = "PARTITION BY ?k"
    assert matches("A; B", "a1 u2 b1", bodies=KEYED, window=window, until="U") == ["A10 B30"]
    assert matches("A; B", "a1 u1 b1", bodies=KEYED, window=window, until="U") == []
    assert matches("A, B", "a1 u1 b1", bodies=KEYED, window=window, until="U") == []
    unkeyed = KEYED | {"U": "?u :kind :u"}
    assert matches("A; B", "a1 u1 b1", bodies=unkeyed, window=window, until="U") == ["A10 B30"]
    assert matches("A; B", "a1 u1&a1 b1", bodies=unkeyed, window=window, until="U") == ["A20 B30"]


def test_aggregates_see_what_is_left() -> None:
    counts = columns("SELECT (COUNT(*) AS ?n)", "A : B", "a b u b", until="U")
    assert counts == [{"n": "1"}]
