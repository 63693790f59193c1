"""Facts about rows (semantics.md 2.1 and 2.6, readings 9, 11 and 12), one each."""

from __future__ import annotations

from reference.facts import answer, columns, query_text


def test_star_shows_all_positive_variables() -> None:
    (row,) = columns("SELECT *", "A; B!; C", "a1 c2")
    assert row == {"a": "http://e/a1e0", "ka": "1", "c": "http://e/c2e1", "kc": "2"}


def test_projection_keeps_duplicates_and_distinct_does_not() -> None:
    assert columns("SELECT ?ka", "A; B", "a1 b1&b2") == [{"ka": "1"}, {"ka": "1"}]
    assert columns("SELECT DISTINCT ?ka", "A; B", "a1 b1&b2") == [{"ka": "1"}]


def test_distinct_compares_the_end_time_too() -> None:
    assert columns("SELECT DISTINCT ?ka", "A : B", "a1 b1 b2") == [{"ka": "1"}, {"ka": "1"}]


def test_a_kleene_variable_means_the_last_iteration() -> None:
    assert columns("SELECT ?kb", "A, B{2}", "a0 b1 b2") == [{"kb": "2"}]


def test_aggregates_see_all_iterations() -> None:
    select = "SELECT (SUM(?kb) AS ?s) (MIN(?kb) AS ?l) (MAX(?kb) AS ?m) (AVG(?kb) AS ?v) (COUNT(?kb) AS ?n)"
    assert columns(select, "A, B{3}", "a0 b1 b4 b2") == [
        {"s": "7", "l": "1", "m": "4", "v": "2.333333333333333333", "n": "3"}
    ]


def test_aggregates_of_a_skipped_loop() -> None:
    select = "SELECT (SUM(?kb) AS ?s) (MIN(?kb) AS ?l) (COUNT(?kb) AS ?n) (COUNT(B) AS ?m)"
    assert columns(select, "A, B{0,2}", "a0 x") == [{"s": "0", "n": "0", "m": "0"}]


def test_other_variables_of_an_aggregate_are_the_match_s() -> None:
    assert columns("SELECT (SUM(?kb - ?ka) AS ?s)", "A, B{2}", "a1 b3 b4") == [{"s": "5"}]


def test_distinct_aggregate() -> None:
    assert columns("SELECT (SUM(DISTINCT ?kb) AS ?s)", "A, B{3}", "a1 b3 b4 b3") == [{"s": "7"}]


def test_group_concat_is_in_order_of_time() -> None:
    select = "SELECT (GROUP_CONCAT(?kb ; SEPARATOR='-') AS ?s)"
    assert columns(select, "A, B{3}", "a1 b3 b4 b1") == [{"s": "3-4-1"}]


def test_functions_of_the_match() -> None:
    select = "SELECT (STARTTIME() AS ?s) (ENDTIME() AS ?e) (DURATION() AS ?d) (TIMEOF(B) AS ?t) (COUNT(B) AS ?n)"
    assert columns(select, "A, B{2}; C", "a1@0 b1@500000 b2@1000000 c1@90000000") == [
        {
            "s": "1970-01-01T00:00:00Z",
            "e": "1970-01-01T00:01:30Z",
            "d": "PT1M30S",
            "t": "1970-01-01T00:00:01Z",
            "n": "2",
        }
    ]


def test_time_of_an_absent_gpm_is_unbound() -> None:
    assert columns("SELECT (TIMEOF(B) AS ?t)", "A; B?; C", "a1 c1") == [{}]


def test_an_error_leaves_the_column_unbound() -> None:
    assert columns("SELECT (?ka / 0 AS ?x) (?ka + 1 AS ?y) (?y * 2 AS ?z)", "A", "a1") == [{"y": "2", "z": "4"}]


def test_construct_leaves_out_incomplete_triples() -> None:
    text = query_text("A; B?; C", select="CONSTRUCT { ?a :then ?c ; :over ?b ; :sum (?ka + ?kc) }")
    (row,) = answer(text, "a1 c2").rows
    assert sorted(t.predicate.value for t in row.graph) == ["http://e/sum", "http://e/then"]


def test_ask_has_no_columns() -> None:
    assert [(r.end, r.bindings) for r in answer(query_text("A", select="ASK"), "a1 a2").rows] == [
        (10, {}),
        (20, {}),
    ]


def test_late_events_are_counted() -> None:
    assert answer(query_text("A"), "a1@20 a2@10 a3@20").late == 1


def test_two_readings_of_one_match_are_told() -> None:
    text = query_text("(C?; (B; D?)+)+")
    assert answer(text, "c1 b1 b2").ambiguous
    assert not answer(query_text("(B+)+"), "b1 b2").ambiguous
