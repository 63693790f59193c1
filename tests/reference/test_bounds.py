"""Facts about bounds per gap (semantics.md 2.5b), one each, told by the reference. `u`: microseconds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reference.facts import matches

KEYED = {name: f"?{name.lower()} :kind :{name.lower()} ; :k ?k" for name in "ABCN"}


def bounded(seq: str, events: str, **more: Any) -> list[str]:
    """`5u` in the sequence is five microseconds."""
    return matches(re.sub(r"\b(\d+)u\b", r"PT0.00000\1S", seq), events, **more)


@pytest.mark.parametrize(
    ("seq", "events", "expected"),
    [
        pytest.param("A; B WITHIN 5u", "a@0 b@5 a@10 b@16 b@17", ["A0 B5"], id="within-includes-its-end"),
        pytest.param("A; B AFTER 5u", "a@0 b@4 b@5 b@9", ["A0 B5"], id="too-early-is-not-next"),
        pytest.param("A, B AFTER 5u", "a@0 b@4 b@6", [], id="strict-counts-early-events"),
        pytest.param("A; B & C WITHIN 3u", "a@0 b&c@3 a@4 b&c@8", ["A0 B3 C3"], id="of-a-whole-conjunction"),
        pytest.param("A; B? WITHIN 2u; C", "a@0 b@3 c@4", ["A0 C4"], id="outside-an-optional"),
        pytest.param("A; (B WITHIN 2u)?; C", "a@0 b@3 c@4", ["A0 C4"], id="inside-an-optional"),
        pytest.param("A; (N!; B) WITHIN 3u", "a@0 b@3 a@4 b@8", ["A0 B3"], id="counts-to-the-first-event"),
        pytest.param("A; (B?; C) WITHIN 3u", "a@0 b@3 c@9", ["A0 B3 C9"], id="only-the-first-of-a-group"),
        pytest.param("A; (B; C WITHIN 2u)+", "a@0 b@1 c@3 b@4 c@7", ["A0 B1 C3"], id="in-each-iteration"),
        pytest.param("A; (B; C) LASTING 3u", "a@0 b@1 b@3 c@5", [], id="lasting-does-not-choose-a-later-start"),
        pytest.param("A : (B : C) LASTING 3u", "a@0 b@1 b@3 c@5", ["A0 B3 C5"], id="lasting-drops-matches"),
        pytest.param("(A; B) LASTING 3u; C", "a@0 b@3 c@9 a@10 b@14 c@15", ["A0 B3 C9"], id="lasting-first-element"),
        pytest.param("A; N! WITHIN 2u; B", "a@0 n@2 b@3 a@4 n@7 b@8", ["A4 B8"], id="negation-ends-inclusively"),
        pytest.param("A; N! WITHIN 2u; B", "a@0 b@1 n@2", ["A0 B1"], id="negation-ends-at-the-next-event"),
        pytest.param("A; B; N! WITHIN 2u", "a@0 b@1 n@3 a@4 b@5 n@8", ["A4 B5"], id="trailing"),
        pytest.param("A; N! WITHIN 2u; C! WITHIN 4u", "a@0 n@3 c@5 a@6 c@10", ["A0"], id="several-trailing"),
        pytest.param("A; (B; N! WITHIN 1u)+", "a@0 b@1 b@2 n@3", ["A0 B1"], id="trailing-in-a-repeat"),
        pytest.param("A; (B; C)!; N", "a@0 b@1 n@2 c@3 a@4 b@5 c@6 n@7", ["A0 N2"], id="negated-group"),
        pytest.param("A; (B, C)! WITHIN 3u; N", "a@0 b@1 c@4 n@5", ["A0 N5"], id="negated-group-ends-in-time"),
    ],
)
def test_bound(seq: str, events: str, expected: list[str]) -> None:
    assert bounded(seq, events) == expected


def test_the_bound_is_part_of_the_join() -> None:
    keyed = {"A": KEYED["A"], "B": KEYED["B"]}
    assert bounded("A; B AFTER 2u", "a1@0 b1@1 b2@2 b1@3", bodies=keyed) == ["A0 B3"]
    assert bounded("A; B WITHIN 2u", "a1@0 b2@1 b1@3", bodies=keyed) == []


@pytest.mark.parametrize(
    ("window", "events", "expected"),
    [
        ("WITHIN PT0.000010S", "x@0 a@8 n@10", ["A8"]),
        ("WITHIN PT0.000010S", "x@0 a@2 n@7", []),
        ("WITHIN PT0.000003S SLIDING", "a@0 n@4", ["A0"]),
        ("WITHIN PT0.000003S SLIDING", "a@0 n@3", []),
        ("WITHIN 1 EVENTS SLIDING", "a@0 x@1 n@2", ["A0"]),
    ],
)
def test_a_trailing_bound_ends_with_the_window(window: str, events: str, expected: list[str]) -> None:
    assert bounded("A; N! WITHIN 5u", events, window=window) == expected
