"""`φ{n,m}` of CEQL is `φ+` with n to m iterations."""

from __future__ import annotations

import time

import pytest

import oxiseq
from oxiseq.grammar import parse, render
from oxiseq.grammar.checks import load
from oxiseq.grammar.errors import QueryError

HEAD = "VOCAB <http://e/> SELECT * FROM S WHERE"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
ALL = "ABAACABBAACBAAAB"


def found(formula: str, types: str = ALL, more: str = "WITHIN 9 EVENTS") -> list[tuple[int, ...]]:
    events = [(1_000_000 * at, f"_:e {TYPE} <http://e/{each}> .") for at, each in enumerate(types)]
    matches = oxiseq.run(f"{HEAD} {formula} {more}", streams={"http://e/S": events}, language="ceql")
    return sorted(tuple(match.positions.all) for match in matches)


@pytest.mark.parametrize("operator", ["", ":"])
@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 3), (2, 2), (2, 4), (3, None)])
def test_it_is_a_plus_of_so_many_iterations(operator: str, least: int, most: int | None) -> None:
    plus = found(f"A{operator}+ AS x; B")
    wanted = [each for each in plus if least < len(each) <= (most or 99) + 1]
    given = "" if most == least else f",{most or ''}"
    assert wanted and found(f"A{operator}{{{least}{given}}} AS x; B") == wanted


def test_what_is_repeated_may_be_several_events() -> None:
    pairs = found("(A; B){2}")
    assert pairs and pairs == found("A; B; A; B")
    assert all("".join(ALL[p] for p in each) == "ABAB" for each in pairs)


def test_its_text_comes_back_unfolded() -> None:
    query = load(f"{HEAD} (A AS x; B){{2,3}} AS y WITHIN 9 EVENTS", "ceql")
    assert parse(render(query), "ceql") == query


def test_the_largest_one_is_registered_and_runs() -> None:
    begun = time.process_time()
    assert found("A{1,50}; B", "A" * 4 + "B") == found("A+; B", "A" * 4 + "B")
    assert time.process_time() - begun < 20


@pytest.mark.parametrize("formula", ["(((A{50}){50}){50}){50}", "; ".join(["A{50}"] * 100), "(A{50}){41}"])
def test_what_would_unfold_to_too_much_is_refused_before_it_is(formula: str) -> None:
    begun = time.process_time()
    with pytest.raises(QueryError, match="more than 2,000 events"):
        load(f"{HEAD} {formula} WITHIN 9 EVENTS", "ceql")
    assert time.process_time() - begun < 2
