"""A FILTER behind SEQ beside SELECT NEXT, LAST, MAX and CONSUME BY: these go by the matches that pass (semantics.md
2.5b). Random situations of tests/test_differential.py have it, too."""

from __future__ import annotations

import pytest
from engine_runs import Driven, Reading, Row, query

from oxiseq.engine.errors import LimitError
from oxiseq.engine.output import sieve

A_B_C = [Reading(1, "a", value=1), Reading(2, "a", value=5), Reading(3, "b", value=2), Reading(4, "b", value=9)]
READINGS = [*A_B_C, Reading(5, "c", value=3), Reading(6, "b", value=1), Reading(7, "c", value=4)]


def text(sequence: str, condition: str, select: str = "SELECT *", window: str = "", **filters: str) -> str:
    written = query(sequence, window, select, **filters)
    return written.replace(f"SEQ({sequence})", f"SEQ({sequence})\n  FILTER({condition})")


def events(rows: list[Row]) -> list[str]:
    """Matches of one end stand in the order of the alphabet."""
    texts = (("".join(f"{name}{time}" for name, time in found), at) for at, _, found in rows)
    return [text for text, _ in sorted(texts, key=lambda each: (each[1], each[0]))]


@pytest.mark.parametrize("window", ["", "WITHIN 1 SECONDS SLIDING"])
@pytest.mark.parametrize(
    ("strategy", "condition", "expected"),
    [
        ("NEXT", "?av > 1", ["A2B3C5", "A2B3C7"]),
        ("NEXT", "?bv > 5", ["A1B4C5", "A1B4C7"]),
        ("LAST", "?bv > 1", ["A2B4C5", "A2B4C7"]),
        ("LAST", "?av + ?bv < 4", ["A1B3C5", "A1B6C7"]),
        ("NEXT", "?cv > 100", []),
    ],
)
def test_a_strategy_chooses_among_those_that_pass(
    strategy: str, condition: str, expected: list[str], window: str
) -> None:
    driven = Driven(text("A : B : C", condition, f"SELECT {strategy} *", window))
    assert events(driven.answer(READINGS)) == expected


def test_the_largest_ones_among_those_that_pass() -> None:
    driven = Driven(text("A : B:+ : C", "SUM(?bv) < 4", "SELECT MAX *"))
    assert events(driven.answer(READINGS)) == ["A1B3C5", "A2B3C5", "A1B3B6C7", "A2B3B6C7"]


def test_limit_counts_those_that_pass() -> None:
    driven = Driven(text("A : B : C", "?bv < 3", "SELECT MAX *") + " LIMIT 2")
    found = driven.answer(READINGS)
    assert [time for time, _, _ in found] == [5, 5, 7, 7]
    assert not any("B4" in each for each in events(found))


def test_consume_by_is_moved_by_those_that_pass_only() -> None:
    """The matches that end at 5 do not pass, so what has started stays."""
    consumed = query("A : C", "CONSUME BY ANY")
    assert events(Driven(consumed).answer(READINGS)) == ["A1C5", "A2C5"]
    driven = Driven(consumed.replace("SEQ(A : C)", "SEQ(A : C)\n  FILTER(?cv > 3)"))
    assert events(driven.answer(READINGS)) == ["A1C7", "A2C7"]


def test_a_strategy_waits_for_trailing_negations_of_those_that_pass() -> None:
    sequence, window = "A : B; N! WITHIN PT0.000002S", ""
    driven = Driven(text(sequence, "?bv != 2", "SELECT LAST *", window))
    assert events(driven.answer([*A_B_C, Reading(9, "c")])) == ["A2B4"]
    driven = Driven(text(sequence, "?av = 1", "SELECT LAST *", window))
    assert events(driven.answer([*A_B_C, Reading(9, "c")])) == ["A1B3", "A1B4"]


def test_one_of_the_mappings_of_the_knowledge_base_may_pass() -> None:
    kb = "".join(
        f'<http://e/x{n}> <http://e/limit> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/g> .\n'
        for n in (2, 7, 8)
    )
    written = text(
        "A : B", "?limit > 6 && ?bv < ?limit", "SELECT NEXT ?av ?bv ?limit", A="GRAPH :g { ?l :limit ?limit }"
    )
    found = Driven(written, kb=kb).answer(
        [Reading(1, "a", value=1), Reading(2, "b", value=7), Reading(3, "b", value=8)]
    )
    assert [columns[2] for _, columns, _ in found] == ['"8"^^<http://www.w3.org/2001/XMLSchema#integer>']


def test_groups_are_made_of_those_that_pass() -> None:
    select = "SELECT NEXT (COUNT(*) AS ?n) (SUM(?bv) AS ?s)"
    found = Driven(text("A : B : C", "?av > 1", select) + " GROUP BY (ENDTIME())").answer(READINGS)
    assert [tuple(value.split('"')[1] for value in columns) for _, columns, _ in found] == [("1", "2"), ("1", "2")]


def test_too_many_at_one_instant_are_a_limit_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "MOST_LOOKED_AT", 1000)
    readings = [Reading(1, "a"), *(Reading(2 + n, "b") for n in range(12)), Reading(20, "c")]
    with pytest.raises(LimitError, match="FILTER behind SEQ"):
        Driven(text("A : B:+ : C", "SUM(?bv) > 3", "SELECT NEXT *")).answer(readings)
