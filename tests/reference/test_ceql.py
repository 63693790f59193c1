"""Facts about CEQL (semantics.md 3), one each, told by the reference."""

from __future__ import annotations

import pytest
from pyoxigraph import RdfFormat, parse

from reference.ceql_facts import answers, complex_events
from reference.tuples import tuple_events


def facts(*cases: tuple[str, str, str, list[str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("formula", "events", "expected"), [c[1:] for c in cases], ids=[c[0] for c in cases])


@facts(
    ("a-type-takes-its-events", "A", "a b a", ["0-0: 0", "2-2: 2"]),
    ("later-is-any-later-event", "A; B", "a b a b", ["0-1: 0 1", "0-3: 0 3", "2-3: 2 3"]),
    ("contiguous-is-the-very-next-event", "A : B", "a b c b", ["0-1: 0 1"]),
    ("an-event-does-not-follow-itself", "(A OR B); A", "a b", []),
    ("or-unites", "A OR B", "a b c", ["0-0: 0", "1-1: 1"]),
    ("equal-complex-events-are-one", "A AS x OR A AS y", "a", ["0-0: 0"]),
    ("iteration-takes-any-subset", "A; B+", "a b b", ["0-1: 0 1", "0-2: 0 1 2", "0-2: 0 2"]),
    ("contiguous-iteration-has-no-gap", "A; B:+", "a b b c b", ["0-1: 0 1", "0-2: 0 1 2", "0-2: 0 2", "0-4: 0 4"]),
    ("iteration-of-a-sequence", "(A; B)+", "a b a b", ["0-1: 0 1", "0-3: 0 1 2 3", "0-3: 0 3", "2-3: 2 3"]),
    ("iteration-of-an-iteration", "(A:+; B)+", "a a b", ["0-2: 0 1 2", "0-2: 0 2", "1-2: 1 2"]),
    ("mixed-operators", "A; B : C", "a b b c", ["0-3: 0 2 3"]),
    ("simultaneous-events-follow-by-position", "A; B", "a@1 b@1", ["0-1: 0 1"]),
)
def test_formula(formula: str, events: str, expected: list[str]) -> None:
    assert complex_events(formula, events) == expected


@facts(
    ("of-one-event", "A FILTER A[v > 1]", "a1 a2", ["1-1: 1"]),
    ("of-all-events-of-a-variable", "A+ AS x FILTER x[v > 1]", "a2 a1 a3", ["0-0: 0", "0-2: 0 2", "2-2: 2"]),
    ("of-no-event-holds", "A AS x OR B AS y FILTER x[v > 1]", "a1 b1", ["1-1: 1"]),
    ("either-is-about-the-whole-variable", "A+ AS x FILTER x[v = 1] OR x[v = 2]", "a1 a2", ["0-0: 0", "1-1: 1"]),
    ("or-inside-is-event-by-event", "A+ AS x FILTER x[v = 1 OR v = 2]", "a1 a2", ["0-0: 0", "0-1: 0 1", "1-1: 1"]),
    (
        "inside-an-iteration",
        "(A AS x; B AS y FILTER x[v = 1] OR y[v = 1])+",
        "a1 b2 a2 b1",
        ["0-1: 0 1", "0-3: 0 1 2 3", "0-3: 0 3", "2-3: 2 3"],
    ),
    ("a-missing-attribute-is-an-error", "A FILTER A[v > 1]", "a a2", ["1-1: 1"]),
    ("and-so-is-its-negation", "A FILTER A[NOT v > 1]", "a a1", ["1-1: 1"]),
    ("a-name-in-another-part", "(A AS x; B) FILTER x[v = 1] AND B[v = 2]", "a1 a2 b2 b1", ["0-2: 0 2"]),
)
def test_filter(formula: str, events: str, expected: list[str]) -> None:
    assert complex_events(formula, events) == expected


def test_projection_keeps_the_interval() -> None:
    assert complex_events("A AS x; B AS y; A AS z", "a b a", "y") == ["0-2: 1"]
    assert complex_events("A AS x OR B AS y", "a b", "x") == ["0-0: 0", "1-1:"]


def test_projection_may_make_complex_events_equal() -> None:
    assert complex_events("A; B AS y; A", "a b a a", "y") == ["0-2: 1", "0-3: 1"]
    assert complex_events("A; B+; A", "a b b a", "A") == ["0-3: 0 3"]


def test_a_name_holds_all_that_its_formula_holds() -> None:
    (found,) = answers("((A; B) AS x; C) AS y FILTER x[v = 1]", "a1 b1 c2")
    assert found.valuations == {
        frozenset([("A", 0), ("x", 0), ("y", 0), ("B", 1), ("x", 1), ("y", 1), ("C", 2), ("y", 2)])
    }


@facts(
    ("time-is-inclusive", "A; B WITHIN 2 SECONDS", "a@1 b@3 b@4", ["0-1: 0 1"]),
    ("events-count-from-the-first", "A; B WITHIN 2 EVENTS", "a c b b", ["0-2: 0 2"]),
    ("events-count-in-the-substream", "A; B PARTITION BY [k] WITHIN 1 EVENTS", "a/x c/y b/x b/x", ["0-2: 0 2"]),
    ("an-attribute-s-difference", "A; B WITHIN 2 [v]", "a1 b3 b4", ["0-1: 0 1"]),
    ("an-attribute-may-fall", "A; B WITHIN 2 [v]", "a5 b9 b1", ["0-2: 0 2"]),
    ("a-missing-attribute-is-outside", "A; B WITHIN 2 [v]", "a b1 a1 b1", ["2-3: 2 3"]),
)
def test_window(formula: str, events: str, expected: list[str]) -> None:
    assert complex_events(formula, events) == expected


@facts(
    ("each-value-by-itself", "A; B PARTITION BY [k]", "a/x a/y b/y b/x", ["0-3: 0 3", "1-2: 1 2"]),
    ("contiguous-in-the-substream", "A : B PARTITION BY [k]", "a/x c/y b/x", ["0-2: 0 2"]),
    ("without-the-attribute-in-none", "A; B PARTITION BY [k]", "a b/x a/x b/x", ["2-3: 2 3"]),
    ("values-are-terms", "A; B PARTITION BY [v]", "a1 b01 b2", []),
    ("all-attributes-must-agree", "A; B PARTITION BY [k], [v]", "a1/x b2/x b1/y b1/x", ["0-3: 0 3"]),
)
def test_partition(formula: str, events: str, expected: list[str]) -> None:
    assert complex_events(formula, events) == expected


@pytest.mark.parametrize(
    ("strategy", "formula", "events", "expected"),
    [
        ("MAX", "A+; B", "a a b", ["0-2: 0 1 2"]),
        ("MAX", "A; B+; C", "a a b c", ["0-3: 0 2 3", "1-3: 1 2 3"]),
        ("NEXT", "A; B", "a a b", ["0-2: 0 2"]),
        ("NEXT", "A+; B", "a a b", ["0-2: 0 1 2"]),
        ("LAST", "A; B", "a a b", ["1-2: 1 2"]),
        ("LAST", "A+; B", "a a b", ["0-2: 0 1 2"]),
        ("LAST", "A; B; C", "a b a b b c", ["2-5: 2 4 5"]),
        ("NEXT", "A; B; C", "a b a b b c", ["0-5: 0 1 5"]),
        ("STRICT", "A+; B", "a a b b", ["0-2: 0 1 2", "1-2: 1 2"]),
        ("STRICT", "A; B PARTITION BY [k]", "a/x a/y b/x", ["0-2: 0 2"]),
        ("NEXT", "A; B PARTITION BY [k]", "a/x a/x a/y b/x b/y", ["0-3: 0 3", "2-4: 2 4"]),
        ("NEXT", "A; B WITHIN 1 EVENTS", "a a b", ["1-2: 1 2"]),
    ],
)
def test_strategy(strategy: str, formula: str, events: str, expected: list[str]) -> None:
    assert complex_events(formula, events, f"{strategy} *") == expected


def test_strategies_compare_what_is_projected_and_keep_equals() -> None:
    assert complex_events("A; B; C", "a a b c", "NEXT B, C") == ["0-3: 2 3", "1-3: 2 3"]
    assert complex_events("A; B; C", "a b b c", "STRICT B, C") == ["0-3: 2 3"]
    assert complex_events("A AS x; (B AS y OR C)", "a c", "STRICT y") == ["0-1:"]


@facts(
    ("any-forgets-everything", "A; B CONSUME BY ANY", "a b b a b", ["0-1: 0 1", "3-4: 3 4"]),
    ("all-of-one-position-are-output", "A; B CONSUME BY ANY", "a a b b", ["0-2: 0 2", "1-2: 1 2"]),
    ("an-event-that-completes-is-forgotten-too", "A; (A OR B) CONSUME BY ANY", "a a b", ["0-1: 0 1"]),
    ("any-forgets-other-partitions", "A; B PARTITION BY [k] CONSUME BY ANY", "a/x a/y b/x b/y", ["0-2: 0 2"]),
    (
        "partition-forgets-its-own",
        "A; B PARTITION BY [k] CONSUME BY PARTITION",
        "a/x a/y b/x b/y b/x b/y",
        ["0-2: 0 2", "1-3: 1 3"],
    ),
    ("none-forgets-nothing", "A; B CONSUME BY NONE", "a b b", ["0-1: 0 1", "0-2: 0 2"]),
    ("what-is-outside-the-window-is-not-found", "A; B WITHIN 1 EVENTS CONSUME BY ANY", "a a b b", ["1-2: 1 2"]),
)
def test_consumption(formula: str, events: str, expected: list[str]) -> None:
    assert complex_events(formula, events) == expected


def test_what_the_strategy_drops_is_not_found() -> None:
    assert complex_events("A; B CONSUME BY ANY", "a c b a b", "STRICT *") == ["3-4: 3 4"]


def test_a_graph_is_a_tuple_event() -> None:
    text = "@prefix : <http://e/> . _:x a :A ; :v 01 ; :k 'x' ."
    graph = [q.triple for q in parse(text.encode(), format=RdfFormat.TURTLE)]
    early, late = tuple_events([[(5, graph)], [(2, [])]])
    assert (early.position, early.type, early.values) == (0, None, {})
    assert (late.position, late.time, late.type) == (1, 5, "http://e/A")
    assert {v.value: t.value for v, t in late.attributes("http://e/").items()} == {"v": "1", "k": "x"}


@pytest.mark.parametrize("text", [":x a :A, :B .", ":x a :A . :y a :A .", ":x a :A ; :v 1, 2 ."])
def test_other_graphs_are_no_tuple_events(text: str) -> None:
    graph = [q.triple for q in parse(f"@prefix : <http://e/> . {text}".encode(), format=RdfFormat.TURTLE)]
    with pytest.raises(ValueError, match="not the graph of a tuple event"):
        tuple_events([[(1, graph)]])
