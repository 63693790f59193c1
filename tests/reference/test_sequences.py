"""Facts about sequences (semantics.md 2.2 to 2.6 and the readings), one each, told by the reference."""

from __future__ import annotations

import pytest

from reference.facts import matches

EQUAL = {"A": "?a :kind :a . ?a :k ?k", "B": "?b :kind :b . ?b :k ?k", "C": "?c :kind :c . ?c :k ?k"}
RISING = {"B": "+ FILTER(?kb > PREV(?kb))"}


def facts(*cases: tuple[str, str, str, list[str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("seq", "events", "expected"), [c[1:] for c in cases], ids=[c[0] for c in cases])


@facts(
    ("any-takes-every-later-one", "A : B", "a1 b1 b2", ["A10 B20", "A10 B30"]),
    ("next-takes-the-first-later-one", "A; B", "a1 x b1 b2", ["A10 B30"]),
    ("strict-takes-the-next-instant-only", "A, B", "a1 b1 b2", ["A10 B20"]),
    ("strict-is-broken-by-an-event-without-mappings", "A, B", "a1 x b1", []),
    ("strict-is-broken-by-an-event-of-another-stream", "A, B", "a1 2:x b1", []),
    ("strict-is-broken-by-an-empty-graph", "A, B", "a1 2:@15 b1@20", []),
    ("simultaneous-events-never-follow", "A : B", "a1&b1@10", []),
    ("next-may-take-several-simultaneous-mappings", "A; B", "a1 b1&b2 b3", ["A10 B20", "A10 B20"]),
    ("each-mapping-moves-alone", "A; B", "a1&a2 b1", ["A10 B20", "A10 B20"]),
    ("operators-are-left-associative", "A; B, C", "a1 b1 x c1", []),
    ("parentheses-flatten", "A; (B, C)", "a1 b1 c1", ["A10 B20 C30"]),
    ("either-ends-the-wait-for-both", "A; (B|C)", "a1 c1 b1", ["A10 C20"]),
    ("alternatives-with-a-sequence-wait-apart", "A; (B|(C; D))", "a1 c1 b1 d1", ["A10 B30", "A10 C20 D40"]),
    ("and-wants-one-instant", "A & B", "a1 b1 a2&b2", ["A30 B30"]),
    ("and-binds-tighter-than-or", "A | B & C", "a1 b1 b1&c1", ["A10", "B30 C30"]),
)
def test_operator(seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events) == expected


@facts(
    ("equality-join-selects", "A; B", "a1 b2 b1", ["A10 B30"]),
    ("next-passes-over-what-does-not-join", "A; B; C", "a1 b1 c2 c1", ["A10 B20 C40"]),
    ("negation-joins-with-sigma", "A; B!; C", "a1 b2 c1", ["A10 C30"]),
    ("negation-that-joins-blocks", "A; B!; C", "a1 b1 c1", []),
    ("leading-negation-joins-with-the-first", "B!; C", "b1 c1 c2", ["C30"]),
)
def test_join(seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events, bodies=EQUAL) == expected


@facts(
    ("first-plus-chains-by-next", "B+", "b1 x b2", ["B10", "B10,30", "B30"]),
    ("later-plus-chains-by-strict", "A; B+", "a1 b1 x b2", ["A10 B20"]),
    ("plus-after-leading-negation-is-first", "C!; B+", "b1 x b2", ["B10", "B10,30", "B30"]),
    ("plus-after-skipped-optional-is-first", "A?; B+", "b1 x b2", ["B10", "B10,30", "B30"]),
    ("plus-after-taken-optional-is-not", "A; B+; C", "a1 b1 x b2 c1", ["A10 B20 C50"]),
    ("every-length-matches", "A, B+", "a1 b1 b2 b3", ["A10 B20", "A10 B20,30", "A10 B20,30,40"]),
    ("chain-next", "A; B;+", "a1 b1 x b2", ["A10 B20", "A10 B20,40"]),
    ("chain-any", "A, B:+", "a1 b1 b2 b3", ["A10 B20", "A10 B20,30", "A10 B20,30,40", "A10 B20,40"]),
    ("count-exact", "A, B{2}", "a1 b1 b2 b3", ["A10 B20,30"]),
    ("count-range", "A, B{1,2}", "a1 b1 b2 b3", ["A10 B20", "A10 B20,30"]),
    ("count-open", "A, B{2,}", "a1 b1 b2 b3", ["A10 B20,30", "A10 B20,30,40"]),
    ("count-from-zero-is-optional", "A, B{0,1}, C", "a1 b1 c1 a2 c2", ["A10 B20 C30", "A40 C50"]),
    ("group-iterates", "(A, B)+", "a1 b1 a2 b2", ["A10 B20", "A10,30 B20,40", "A30 B40"]),
    ("group-chains-its-last-to-its-first", "A; (B; C)+", "a1 b1 c1 x b2 c2", ["A10 B20 C30"]),
    ("two-paths-are-one-match", "(B+)+", "b1 b2", ["B10", "B10,20", "B20"]),
    ("skip-takes-its-left-operator", "A, B?; C", "a1 x c1", ["A10 C30"]),
    ("skip-of-the-first-takes-the-right-one", "X, (A?; B){1}", "x1 b1", ["B20 X10"]),
)
def test_repeats_and_optionals(seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events) == expected


def test_iterations_have_fresh_variables_but_join_with_sigma() -> None:
    fresh = {"A": EQUAL["A"], "B": "?b :kind :b . ?b :k ?k . BIND(?b AS ?own)"}
    assert matches("A, B+", "a1 b1 b1 b2", bodies=fresh) == ["A10 B20", "A10 B20,30"]


def test_a_variable_of_the_loop_alone_is_fresh() -> None:
    assert matches("A, B+", "a1 b2 b3", bodies={"B": EQUAL["B"]}) == ["A10 B20", "A10 B20,30"]


def test_after_the_loop_the_last_iteration_is_visible() -> None:
    same = {"B": EQUAL["B"], "C": EQUAL["C"]}
    assert matches("A, B+, C", "a1 b2 b3 c2 c3", bodies=same) == []
    assert matches("A, B+, C", "a1 b2 b3 c3", bodies=same) == ["A10 B20,30 C40"]


def test_prev_applies_from_the_second_iteration_on() -> None:
    assert matches("A; B+", "a9 b1 b2 b2", bodies=RISING) == ["A10 B20", "A10 B20,30"]


def test_prev_sees_the_innermost_repeat() -> None:
    assert matches("A; (B+, C)+", "a0 b5 c0 b1 c0", bodies=RISING) == ["A10 B20 C30", "A10 B20,40 C30,50"]


def test_stateful_filter_decides_which_event_is_next() -> None:
    assert matches("A; B", "a2 b1 b3 b4", bodies={"B": "+ FILTER(?kb > ?ka)"}) == ["A10 B30"]


def test_stateful_filter_of_a_partner() -> None:
    assert matches("A & B", "a2&b1 a1&b2", bodies={"A": "+ FILTER(?ka < ?kb)"}) == ["A20 B20"]


def test_stateful_filter_on_an_unbound_variable_is_false() -> None:
    body = {"A": "?a :kind :a . OPTIONAL { ?a :no ?ka }", "B": "+ FILTER(?kb > ?ka)"}
    assert matches("A; B", "a0 b1", bodies=body) == []


def test_unbound_joins_with_anything() -> None:
    body = {"A": "?a :kind :a . OPTIONAL { ?a :k ?k FILTER(?k > 1) }", "B": EQUAL["B"]}
    assert matches("A; B", "a1 b7 a2 b7 b2", bodies=body) == ["A10 B20", "A30 B50"]


@facts(
    ("absent-between", "A; B!; C", "a1 x c1", ["A10 C30"]),
    ("present-between", "A; B!; C", "a1 b1 c1", []),
    ("at-the-ends-does-not-count", "A; B!; C", "a1&b1 b1&c1", ["A10 C20"]),
    ("right-operator-counts", "A, B!; C", "a1 x c1", ["A10 C30"]),
    ("all-must-be-absent", "A; B!; D!; C", "a1 d1 c1", []),
    ("conjunction-absent", "A; (B & D)!; C", "a1 b1 d1 c1 a1 b1&d1 c1", ["A10 C40"]),
    ("leading-since-the-stream-began", "B!; C", "x b1 c1", []),
    ("negation-inside-a-loop", "A; (B; D!; C)+", "a1 b1 c1 b1 d1 c1", ["A10 B20 C30"]),
    ("negation-between-iterations", "A; (D!; B)+", "a1 b1 x b2 d1 b3", ["A10 B20", "A10 B20,40"]),
)
def test_negation(seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events) == expected


@pytest.mark.parametrize(
    ("window", "seq", "events", "expected"),
    [
        ("WITHIN 20 SECONDS", "A; B", "a1@0 b1@19999999", ["A0 B19999999"]),
        ("WITHIN 20 SECONDS", "A; B", "x@0 a1@20000000 b1@39999999", ["A20000000 B39999999"]),
        ("WITHIN 20 SECONDS", "A; B", "a1@0 b1@20000000", []),
        ("WITHIN 20 SECONDS SLIDING", "A; B", "a1@0 b1@20000000", ["A0 B20000000"]),
        ("WITHIN 20 SECONDS SLIDING", "A; B", "a1@0 b1@20000001", []),
        ("WITHIN 2 EVENTS", "A; B", "a1 b1 a2 x b2", ["A10 B20"]),
        ("WITHIN 2 EVENTS SLIDING", "A : B", "a1 b1 b2 b3", ["A10 B20", "A10 B30"]),
        ("WITHIN 20 SECONDS", "A; B!", "x@0 a1@1 b1@20000000", ["A1"]),
        ("WITHIN 20 SECONDS", "A; B!", "a1@0 b1@19999999", []),
        ("WITHIN 20 SECONDS SLIDING", "A; B!", "a1@0 b1@20000000", []),
        ("WITHIN 20 SECONDS SLIDING", "A; B!", "a1@0 b1@20000001", ["A0"]),
        ("WITHIN 20 SECONDS SLIDING", "B!; A", "b1@0 a1@20000000 a2@20000001", ["A20000001"]),
        ("WITHIN 20 SECONDS", "B!; A", "b1@0 a1@1 x@20000000 a2@20000001", ["A20000001"]),
        ("WITHIN 1 EVENTS SLIDING", "A; B!", "a1 x b1 a1 b1", ["A10"]),
    ],
)
def test_window(window: str, seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events, window=window) == expected


def test_start_moves_the_windows_and_hides_what_was_before() -> None:
    window = "WITHIN 20 MILLISECONDS"
    assert matches("A; B", "a1@5000 b1@19000 a1@21000 b1@39000", window=window, start=0) == [
        "A21000 B39000",
        "A5000 B19000",
    ]
    assert matches("A; B", "a1@5000 b1@19000 a1@21000 b1@39000", window=window, start=10_000) == []
    assert matches("B!; A", "b1@5 a1@20", start=10) == ["A20"]


def test_late_events_are_dropped_and_an_event_at_the_watermark_is_not_late() -> None:
    assert matches("A; B", "a1@10 b1@20 b1@15") == ["A10 B20"]
    assert matches("A; B", "a1@10 b1@20 b1@15", lateness=5) == ["A10 B15"]
    assert matches("A; B", "a1@10 b1@20 b1@14", lateness=5) == ["A10 B20"]


def test_graphs_of_one_time_are_one_event() -> None:
    body = {"A": "?a :kind :a . ?b :kind :b"}
    assert matches("A", "a1@10 b1@10", bodies=body) == ["A10"]
    assert matches("A", "a1@10 2:b1@10", bodies=body) == []


def test_kb_solutions_are_mappings() -> None:
    body = {"A": "+ GRAPH :g { ?y :of ?ka . ?y :name ?n }"}
    kb = "PREFIX : <http://e/> :g { :y :of 01 ; :name 'x', 'z' }"
    assert matches("A", "a1 a2", bodies=body, kb=kb) == ["A10", "A10"]


def test_stateful_filter_on_a_kb_variable() -> None:
    body = {"A": "+ GRAPH :g { :limit :is ?n }", "B": "+ FILTER(?kb > ?n)"}
    assert matches("A; B", "a0 b2 b4", bodies=body, kb="PREFIX : <http://e/> :g { :limit :is 1, 3 }") == [
        "A10 B20",
        "A10 B30",
    ]
