"""Strategies against another way to say the same: an order of whole sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oxiseq.grammar.algebra import Selection, Strategy
from reference.choose import Candidate, chosen

SIZE = 6
sets = st.lists(st.frozensets(st.integers(0, SIZE - 1)), max_size=8)


def kept(strategy: Strategy, drawn: list[frozenset[int]]) -> set[frozenset[int]]:
    candidates = [Candidate(0, 9, d, (), n) for n, d in enumerate(drawn)]
    found = chosen(candidates, Selection(strategy))
    assert {c.positions for c in candidates if c not in found}.isdisjoint({c.positions for c in found})
    return {c.positions for c in found}


@given(sets)
def test_next_is_the_greatest_when_read_from_the_left(drawn: list[frozenset[int]]) -> None:
    best = max(([n in d for n in range(SIZE)] for d in drawn), default=None)
    assert kept(Strategy.NEXT, drawn) == {d for d in drawn if [n in d for n in range(SIZE)] == best}


@given(sets)
def test_last_is_the_greatest_number_in_binary(drawn: list[frozenset[int]]) -> None:
    best = max((sum(2**n for n in d) for d in drawn), default=None)
    assert kept(Strategy.LAST, drawn) == {d for d in drawn if sum(2**n for n in d) == best}


@given(sets)
def test_next_and_last_are_maximal(drawn: list[frozenset[int]]) -> None:
    assert kept(Strategy.NEXT, drawn) | kept(Strategy.LAST, drawn) <= kept(Strategy.MAX, drawn)


@given(sets)
def test_strict_are_intervals(drawn: list[frozenset[int]]) -> None:
    intervals = {frozenset(range(i, j)) for i in range(SIZE + 1) for j in range(i, SIZE + 1)}
    assert kept(Strategy.STRICT, drawn) == set(drawn) & intervals
