"""Facts about SUPPRESS, worked out by hand from semantics.md 2.6c."""

from __future__ import annotations

from reference.facts import columns

COUNTED = "SELECT ?ka (SUPPRESSED() AS ?n)"


def rows(suppress: str, seq: str, events: str, *, select: str = COUNTED, tail: str = "", **more: str) -> list[str]:
    window = f"{more.pop('window', '')} SUPPRESS {suppress}"
    found = columns(select, seq, events, window=window, tail=tail, **more)
    return [" ".join(f"{name}{value}" for name, value in sorted(row.items())) for row in found]


def test_fixed_and_not_extended() -> None:
    assert rows("PT0.000010S", "A", "a1@10 a2@15 a3@19 a4@20 a5@29") == ["ka1 n0", "ka4 n2"]
    assert rows("PT0.000010S", "A", "a1@10 a2@15 a3@20 a4@31") == ["ka1 n0", "ka3 n1", "ka4 n0"]


def test_keys() -> None:
    assert rows("PT0.000030S BY ?ka", "A", "a1 a2 a1 a1 a2") == ["ka1 n0", "ka2 n0", "ka1 n1", "ka2 n0"]
    bodies = {"A": "?a :kind :a ; :k ?ka"}
    assert rows("PT1S", "A", "a1 a2 a1", window="PARTITION BY ?ka", bodies=bodies) == ["ka1 n0", "ka2 n0"]
    unbound = "SELECT ?ka ?kb (SUPPRESSED() AS ?n)"
    assert rows("PT1S BY ?kb", "A; B?", "a1 b1 a2", select=unbound) == ["ka1 n0", "ka1 kb1 n0"]


def test_one_instant() -> None:
    assert rows("PT0.000001S", "A", "a1&a2&a1@20 a2@21") == ["ka1 n0", "ka2 n1"]


def test_limit_has_room_for_what_is_not_covered() -> None:
    assert rows("PT1S BY ?ka", "A", "a1 a1&a2&a3", tail=" LIMIT 1") == ["ka1 n0", "ka2 n0"]
    assert rows("PT1S BY ?ka", "A", "a1 a1&a2&a3 a3", tail=" LIMIT 1") == ["ka1 n0", "ka2 n0", "ka3 n0"]


def test_order_by_says_which_is_first() -> None:
    assert rows("PT1S", "A", "a1&a2&a3", tail=" ORDER BY DESC(?ka) LIMIT 2") == ["ka3 n0"]
    assert rows("PT1S BY ?ka", "A", "a1&a2&a3", tail=" ORDER BY DESC(?ka) LIMIT 2") == ["ka3 n0", "ka2 n0"]


def test_distinct_comes_behind() -> None:
    select = "SELECT DISTINCT ?ka"
    assert rows("PT1S BY ?b", "A & B", "a1&b1&b2", select=select) == ["ka1"]


def test_time_is_when_a_match_is_decided() -> None:
    assert rows("PT0.000006S", "A; N! WITHIN PT0.000005S", "a1@10 a2@14 a3@16 n@30") == ["ka1 n0", "ka3 n1"]


def test_groups() -> None:
    select = "SELECT ?ka (COUNT(*) AS ?c) (SUPPRESSED() AS ?n)"
    tail = " GROUP BY ?ka HAVING (COUNT(*) > 1) REPORT ON CONTENT CHANGE"
    assert rows("PT0.000025S", "A", "a1 a1 a1 a2 a1 a2", select=select, tail=tail) == [
        "c2 ka1 n0",
        "c4 ka1 n1",
        "c2 ka2 n0",
    ]
    assert rows("PT1S", "A", "a1 a1 a2", select="SELECT (COUNT(*) AS ?c)", tail="") == ["c1"]  # one key for all


def test_strategies_do_not_look_for_another() -> None:
    assert rows("PT0.000015S", "A : B", "a1 b a2 b", select="SELECT LAST ?ka (SUPPRESSED() AS ?n)") == [
        "ka1 n0",
        "ka2 n0",
    ]
    assert rows("PT0.000025S", "A : B", "a1 b a2 b", select="SELECT LAST ?ka (SUPPRESSED() AS ?n)") == ["ka1 n0"]


def test_a_dropped_match_consumes() -> None:
    consuming = rows("PT0.000020S", "A : B", "a1 b b b", window="CONSUME BY ANY")
    assert consuming == ["ka1 n0"]
    assert rows("PT0.000020S", "A : B", "a1 b b b") == ["ka1 n0", "ka1 n1"]
