"""Matches that wait for others of their end keep their rows, however many events come to other partitions meanwhile."""

from __future__ import annotations

from engine_runs import Driven, Reading, query


def test_rows_of_a_match_that_waits_are_kept() -> None:
    clauses, keyed = "PARTITION BY ?k WITHIN 5 EVENTS SLIDING", {"A": "KEYED", "B": "KEYED", "N": "KEYED"}
    text = query("A : B : N!", clauses, "SELECT NEXT ?av ?bv", **keyed)
    mine = [Reading(1, "a", value=7), Reading(2, "b", value=8), *(Reading(n, "a") for n in range(3, 8))]
    rest = [Reading(100_000 + n, "a") for n in range(9)]
    many = [Reading(100 + n, "a", 2, n % 50) for n in range(50_000)]
    expected = Driven(text).answer([*mine, *rest])
    assert [(time, [c[:3] for c in columns]) for time, columns, _ in expected] == [(2, ['"7"', '"8"'])]
    driven = Driven(text)
    found = []
    for part in (mine, many[:10_000], many[10_000:], rest):
        driven.push(part)
        found += driven.advance()
    assert found + driven.finish() == expected
