"""Facts about PARTITION BY, selection strategies, CONSUME BY and LIMIT in SPAseq (semantics.md 2.1 and 3)."""

from __future__ import annotations

from collections import Counter

import pytest

from oxiseq.grammar.algebra import Limit
from reference.choose import is_choice
from reference.facts import answer, matches, query_text

KEYED = {n: f"?{n.lower()} :kind :{n.lower()} ; :k ?k" for n in "ABCN"}
"""Each GPM X binds ?x and the key ?k."""


@pytest.mark.parametrize(
    ("seq", "events", "expected"),
    [
        # an event of another partition, or of none, does not break contiguity
        ("A, B", "a1 b2 x b1", ["A10 B40"]),
        ("A, B", "a1 a1 b1", ["A20 B30"]),
        # one event may belong to several partitions
        ("A, B", "a1&a2 b1 b2", ["A10 B20", "A10 B30"]),
        ("A, B", "a1 a2&b2 b1", ["A10 B30"]),
        # negated GPMs put events into partitions as well
        ("A, N!; B", "a1 n1 b1", []),
        ("A, N!; B", "a1 n2 b1", ["A10 B30"]),
        ("A, B, N!; C", "a1 n1 b1 c1", []),
        # a loop stays in its partition
        ("A, B+", "a1 b2 b1 b1", ["A10 B30", "A10 B30,40"]),
    ],
)
def test_partition(seq: str, events: str, expected: list[str]) -> None:
    window = "WITHIN 1 SECOND PARTITION BY ?k"
    assert matches(seq, events, bodies=KEYED, window=window) == expected


def test_filters_do_not_decide_the_partition() -> None:
    bodies = KEYED | {"C": "?c :kind :c ; :k ?k FILTER(?k > 5)"}
    assert matches("A, (B | C)", "a1 c1 b1", bodies=bodies, window="PARTITION BY ?k") == []
    assert matches("A, B", "a1 c1 b1", bodies=bodies, window="PARTITION BY ?k") == ["A10 B30"]


def test_kb_patterns_do_not_decide_the_partition() -> None:
    bodies = {
        "A": "?a :kind :a ; :k ?k",
        "B": KEYED["B"],
        "C": "?c :kind :c ; :k ?k GRAPH :g { :good :is ?k }",
    }
    kb = "PREFIX : <http://e/> :g { :good :is 2 }"
    window = "PARTITION BY ?k"
    assert matches("A, (B | C)", "a1 b1 a2 c2", bodies=bodies, window=window, kb=kb) == ["A10 B20", "A30 C40"]
    assert matches("A, (B | C)", "a1 c1 b1", bodies=bodies, window=window, kb=kb) == []  # C's event is in the partition


def test_mappings_of_another_partition_are_invisible() -> None:
    bodies = KEYED | {"N": "?n :kind :n ; :k ?k"}
    assert matches("A; N!; B", "a1 n2&b2 b1", bodies=bodies, window="PARTITION BY ?k") == ["A10 B30"]


def test_a_gpm_that_should_bind_the_key_and_does_not_is_in_no_partition() -> None:
    bodies = {"A": KEYED["A"], "B": "?b :kind :b OPTIONAL { ?b :none ?k }"}
    assert matches("A; B", "a1 b1", bodies=bodies, window="PARTITION BY ?k") == []


def test_a_negated_gpm_without_the_key_sees_the_events_of_the_partition() -> None:
    bodies = KEYED | {"N": "?n :kind :n"}
    window = "PARTITION BY ?k"
    assert matches("A; N!; B", "a1 n2 b1", bodies=bodies, window=window) == ["A10 B30"]
    assert matches("A; N!; B", "a1 n2&a1 b1", bodies=bodies, window=window) == ["A20 B30"]


def test_several_variables_need_one_mapping() -> None:
    bodies = {n: f"?{n.lower()} :kind :{n.lower()} ; :k ?k . BIND(?k * 2 AS ?j)" for n in "AB"}
    assert matches("A, B", "a1 b2&a2 b1", bodies=bodies, window="PARTITION BY ?k ?j") == ["A10 B30"]
    bodies = {n: f"?{n.lower()} :kind ?t ; :k ?k FILTER(?t = :{n.lower()})" for n in "AB"}
    assert matches("A; B", "a1 b1", bodies=bodies, window="PARTITION BY ?k ?t") == []


def test_tumbling_windows_begin_where_the_query_s_do() -> None:
    window = "WITHIN 20 SECONDS PARTITION BY ?k"
    assert matches("A; B", "x@0 a1@15000000 b1@25000000", bodies=KEYED, window=window) == []
    assert matches("A; B", "x@0 a1@20000000 b1@39000000", bodies=KEYED, window=window) == ["A20000000 B39000000"]


def test_windows_of_events_count_in_the_partition() -> None:
    for sliding, expected in (("", ["A10 B40"]), (" SLIDING", ["A10 B40", "A40 B50"])):
        window = f"WITHIN {1 if sliding else 2} EVENTS{sliding} PARTITION BY ?k"
        assert matches("A; B", "a1 a2 x a1&b1 b1", bodies=KEYED, window=window) == expected


@pytest.mark.parametrize(
    ("strategy", "seq", "events", "expected"),
    [
        ("ALL", "A; B", "a1 a1 b1", ["A10 B30", "A20 B30"]),
        ("NEXT", "A; B", "a1 a1 b1", ["A10 B30"]),
        ("LAST", "A; B", "a1 a1 b1", ["A20 B30"]),
        ("MAX", "A; B", "a1 a1 b1", ["A10 B30", "A20 B30"]),
        ("MAX", "A; B;+; C", "a1 b1 b1 c1", ["A10 B20,30 C40"]),
        ("NEXT", "A : B : C", "a1 b1 b1 c1", ["A10 B20 C40"]),
        ("LAST", "A : B : C", "a1 b1 b1 c1", ["A10 B30 C40"]),
        # each end is decided by itself
        ("NEXT", "A : B", "a1 a1 b1 b1", ["A10 B30", "A10 B40"]),
        # matches of the same instants are kept together
        ("NEXT", "A; B", "a1&a2 a3 b1", ["A10 B30", "A10 B30"]),
        ("NEXT", "A & B | C", "a1&b1&c1", ["A10 B10", "C10"]),
    ],
)
def test_strategy(strategy: str, seq: str, events: str, expected: list[str]) -> None:
    assert matches(seq, events, select=f"SELECT {strategy} *") == expected


def test_strategies_choose_in_the_window_and_in_the_partition() -> None:
    select = "SELECT NEXT *"
    assert matches("A; B", "a1 a1 x b1", select=select, window="WITHIN 2 EVENTS SLIDING") == ["A20 B40"]
    found = matches("A; B", "a1 a2 b1&b2", select=select, bodies=KEYED, window="PARTITION BY ?k")
    assert found == ["A10 B30", "A20 B30"]


def test_a_strategy_chooses_among_what_a_trailing_negation_leaves() -> None:
    bodies = {"N": "?n :kind :n ; :k ?ka"}
    window = "WITHIN 1 SECOND"
    assert matches("A; B; N!", "a1 a2 b1 n1", select="SELECT NEXT *", bodies=bodies, window=window) == ["A20 B30"]


@pytest.mark.parametrize(
    ("clauses", "events", "expected"),
    [
        ("CONSUME BY NONE", "a1 b1 a1 b1", ["A10 B20", "A10 B40", "A30 B40"]),
        ("CONSUME BY ANY", "a1 b1 a1 b1", ["A10 B20", "A30 B40"]),
        ("CONSUME BY ANY", "a1 a1 b1 b1", ["A10 B30", "A20 B30"]),
        ("CONSUME BY ANY", "a1 b1&a1 b1", ["A10 B20"]),
        ("CONSUME BY ANY PARTITION BY ?k", "a1 a2 b1 b2", ["A10 B30"]),
        ("CONSUME BY ANY PARTITION BY ?k", "a1 a2 b1&b2", ["A10 B30", "A20 B30"]),
        ("CONSUME BY PARTITION PARTITION BY ?k", "a1 a2 b1 b2 b1", ["A10 B30", "A20 B40"]),
        ("CONSUME BY PARTITION", "a1 a2 b1 b2", ["A10 B30"]),
    ],
)
def test_consumption(clauses: str, events: str, expected: list[str]) -> None:
    assert matches("A : B", events, bodies=KEYED, window=clauses) == expected


def test_consumption_forgets_matches_not_events() -> None:
    window = "CONSUME BY ANY"
    assert matches("N!; A : B", "a1 b1 a2 b2", window=window) == ["A10 B20", "A30 B40"]
    assert matches("N!; A : B", "n1 a1 b1 a2 b2", window=window) == []
    assert matches("N!; A : B", "a1 b1 n1 a2 b2", window=window) == ["A10 B20"]


def test_limit_is_a_choice_of_each_end() -> None:
    result = answer(query_text("A : B", bodies=KEYED) + " LIMIT 1", "a1 a1 b1 b1")
    assert len(result.rows) == 4  # which of them are reported is free
    groups: dict[int, Counter[object]] = {}
    for row in result.rows:
        groups.setdefault(row.end, Counter())[str(row.events)] += 1
    first, second = (sorted(groups[t].elements()) for t in sorted(groups))
    limit = Limit(1)
    assert is_choice(Counter([first[1], second[0]]), groups.values(), limit)
    assert not is_choice(Counter([first[1]]), groups.values(), limit)
    assert not is_choice(Counter([first[0], first[1]]), groups.values(), limit)
    assert not is_choice(Counter([*first, *second]), groups.values(), limit)
    assert is_choice(Counter([*first, *second]), groups.values(), None)
