"""Matches that wait: for others of their end they keep their rows, however many events come to other partitions
meanwhile; those whose windows close at one clock come in order of their ends, in whatever pieces the events came."""

from __future__ import annotations

from engine_runs import Driven, Reading, Row, query, random_readings
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.engine.sequence.memory import Capacities


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


def test_matches_of_one_window_come_in_order_of_their_ends() -> None:
    text = query("A; B; N!", "WITHIN PT0.000015S", A="KEYED", B="KEYED")
    readings = [Reading(0, "a", 1), Reading(5, "a", 2), Reading(9, "b", 1), Reading(13, "b", 2), Reading(16, "c")]
    readings += [Reading(17, "a", 2), Reading(18, "a", 1), Reading(19, "b", 1), Reading(20, "b", 2)]
    assert [row[0] for row in Driven(text, start=0).answer(readings)] == [9, 13, 19, 20]


@given(
    st.sampled_from(["A : B; N!", "A; B : N!", "A : B:+; N!", "A : (B | C; N!)", "A | (B : C; N!)"]),
    st.sampled_from(
        [
            "WITHIN PT0.000012S",
            "WITHIN PT0.000008S SLIDING",
            "WITHIN 7 EVENTS",
            "WITHIN 5 EVENTS SLIDING",
            "PARTITION BY ?k WITHIN 5 EVENTS",
            "PARTITION BY ?k WITHIN PT0.000012S",
        ]
    ),
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.booleans(),
)
def test_their_order_does_not_depend_on_pieces(sequence: str, window: str, seed: int, piece: int, small: bool) -> None:
    keyed = "ABCN" if "PARTITION" in window else "AN"
    text = query(sequence, window, **dict.fromkeys(keyed, "KEYED"))
    readings = random_readings(seed, 40, "aabbcn", keys=2)
    whole = Driven(text, start=0).answer(readings)
    driven = Driven(text, Capacities.smallest() if small else None, start=0)
    found: list[Row] = []
    for low in range(0, len(readings), piece):
        driven.push(readings[low : low + piece])
        found += driven.advance()
    assert found + driven.finish() == whole
    if window.startswith("WITHIN PT0.000012S") and "|" not in sequence:
        assert [row[0] for row in whole] == sorted(row[0] for row in whole)  # window after window
