"""Facts about PERMUTE, worked out by hand from semantics.md 2.5d."""

from __future__ import annotations

import pytest

from oxiseq.grammar.algebra import Atom, Op
from reference.expand import expand
from reference.facts import columns, matches
from reference.permute import Permute


def test_how_many_alternatives() -> None:
    for size, count in ((1, 1), (2, 3), (3, 13), (4, 75), (5, 541)):
        items = tuple(Atom(name) for name in "ABCDE"[:size])
        assert len(expand(Permute(items, Op.NEXT))) == count
    assert len(expand(Permute(tuple(Atom(n) for n in "ABCD"), Op.NEXT, 2))) == 6 * 3


@pytest.mark.parametrize(
    ("seq", "events", "expected"),
    [
        ("PERMUTE(A; B)", "b a", ["A20 B10"]),
        ("PERMUTE(A; B)", "a&b", ["A10 B10"]),
        ("PERMUTE(A; B; C)", "a b c b", ["A10 B20 C30", "A10 B40 C30"]),
        ("PERMUTE(A, B, C)", "a b c b", ["A10 B20 C30"]),  # B, C, A and C, B, A have no A
        ("X, PERMUTE(A; B); Y", "x b x a y", ["A40 B20 X10 Y50"]),  # the comma joins the first block
        ("PERMUTE(A; B){2}", "a b b a", ["A10,40 B20,30"]),  # each iteration in its own order
        ("PERMUTE(A; (B | C))", "c a", ["A20 C10"]),
        ("PERMUTE(A; (B | C))", "c&a", ["A10 C10"]),
        ("PERMUTE(A; (B; C))", "b a c", []),  # nothing comes between
        ("PERMUTE(A; (B; C))", "b c a", ["A30 B10 C20"]),
        ("PERMUTE(A; B;{1,2})", "a&b", []),  # a repeat ties with nothing
        ("PERMUTE(A; B?)", "b a", ["A20", "A20 B10"]),
        ("PERMUTE 1 OF (A; B)", "b a", ["A20", "B10"]),
        ("PERMUTE 2 OF (A; B; C)", "c b a", ["A30 B20", "A30 C10", "B20 C10"]),
        ("PERMUTE(A; B) LASTING PT0.000010S", "a b a@40 b@51", ["A10 B20", "A40 B20"][:1]),
        ("X; PERMUTE(A; B) WITHIN PT0.000010S", "x b a", ["A30 B20 X10"]),
        ("N!; PERMUTE(A; B)", "n b a", []),
        ("X; N!; PERMUTE(A; B)", "x b n a", ["A40 B20 X10"]),
    ],
)
def test_orders(seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("a1 b2", ["A10 B20"]),
        ("a2 b1 b3", ["A10 B30"]),  # part of the block's join: the next B is the first that passes
        ("b2 a3 a1", ["A30 B10"]),
        ("a1&b1", []),
        ("a1&b2", ["A10 B10"]),
    ],
)
def test_a_filter_waits_for_what_it_mentions(events: str, expected: list[str]) -> None:
    assert matches("PERMUTE(A; B)", events, bodies={"A": "+ FILTER(?ka < ?kb)"}) == expected


def test_a_part_of_a_filter_is_evaluated_as_soon_as_it_can_be() -> None:
    bodies = {"A": "+ FILTER(?ka < ?kb && ?ka < ?kc)"}
    assert matches("PERMUTE(A; B; C)", "a2 b1 b3 c3", bodies=bodies) == ["A10 B30 C40"]


def test_a_filter_on_what_is_left_of_it_does_not_wait() -> None:
    bodies = {"A": "+ FILTER(?ka > ?kx)"}
    assert matches("X; PERMUTE(A; B)", "x2 a1 a3 b", bodies=bodies) == ["A30 B40 X10"]


def test_a_filter_on_an_absent_element_fails() -> None:
    bodies = {"A": "+ FILTER(?ka < ?kb)"}
    assert matches("PERMUTE 2 OF (A; B; C)", "a1 c2 b3", bodies=bodies) == ["A10 B30", "B30 C20"]
    assert matches("PERMUTE(A; B?)", "a1 b2", bodies=bodies) == ["A10 B20"]
    unless = {"A": "+ FILTER(!BOUND(?kb) || ?ka < ?kb)"}
    assert matches("PERMUTE(A; B?)", "a1", bodies=unless) == []


def test_times() -> None:
    bodies = {"A": "+ FILTER(EVENTTIME() < TIMEOF(B))"}
    assert matches("PERMUTE(A : B)", "b a b", bodies=bodies) == ["A20 B30"]
    later = {"B": "?b :kind :b FILTER(EVENTTIME() > TIMEOF(A))"}
    assert matches("PERMUTE(A : B)", "b a b", bodies=later) == ["A20 B30"]


def test_previous_iterations() -> None:
    bodies = {"A": "+ FILTER(?ka > PREV(?ka) && ?ka < ?kb)"}
    assert matches("PERMUTE(A; B);{2}", "a1 b2 b5 a3", bodies=bodies) == ["A10,40 B20,30"]
    assert matches("PERMUTE(A; B);{2}", "a3 b5 b5 a3", bodies=bodies) == []
    assert matches("PERMUTE(A; B);{2}", "a1 b2 b3 a3", bodies=bodies) == []


def test_variables_of_an_absent_element_are_unbound() -> None:
    rows = columns("SELECT ?ka ?kb (TIMEOF(B) AS ?t)", "PERMUTE 1 OF (A; B)", "a1 b2")
    assert rows == [{"ka": "1"}, {"kb": "2", "t": "1970-01-01T00:00:00.00002Z"}]


def test_what_stands_behind_sees_all() -> None:
    assert matches("PERMUTE(A; B); C", "b2 a1 c2 c3", bodies={"C": "+ FILTER(?kc > ?ka + 1 && ?kc > ?kb)"}) == [
        "A20 B10 C40"
    ]


def test_a_repeat_that_comes_first_has_fresh_variables() -> None:
    bodies = {n: f"?{n.lower()} :kind :{n.lower()} ; :k ?k" for n in "AB"}
    assert matches("PERMUTE(A; B;{2})", "b1 b2 a2", bodies=bodies) == ["A30 B10,20"]
    assert matches("PERMUTE(A; B;{2})", "a2 b1 b2", bodies=bodies) == []
