"""Ladders: queries whose edges stand once in an automaton, since they differ in a threshold of their first event.

That each finds what it finds alone is tested at random in test_among_others.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_runs import STREAM, Reading, query, readings_batch
from loaded import load
from test_families import SLIDING, TERMS, Queries, plan

from oxiseq.engine.automaton.queries import JoinedQuery
from oxiseq.engine.bounds import BOUNDS
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.plan.thresholds import beginning
from oxiseq.languages.sequences.explain import explain


def texts(sequence: str, *least: int) -> list[str]:
    return [query(sequence, SLIDING, A=f"FILTER(?av >= {each})") for each in least]


def places(queries: Queries) -> list[int | None]:
    """Of each query the number of its edges in the automaton, which those of a ladder have in common."""
    joined = [run.finder.away for run in queries.shared]
    return [each.span.query if isinstance(each, JoinedQuery) else None for each in joined]


@pytest.mark.parametrize(
    ("sequence", "window", "select", "gpms"),
    [
        ("A; B", "WITHIN PT0.00003S", "SELECT *", {}),
        ("A; B", SLIDING, "SELECT DISTINCT ?b", {}),
        ("A; B", SLIDING, "SELECT NEXT *", {}),
        ("A+; B", SLIDING, "SELECT *", {}),
        ("A?; B", SLIDING, "SELECT *", {}),
        ("A & B; C", SLIDING, "SELECT *", {}),
        ("N!; A; B", SLIDING, "SELECT *", {}),
        ("A; B; N!", SLIDING, "SELECT *", {}),
        ("A; B WITHIN PT0.000003S", SLIDING, "SELECT *", {}),
        ("B; A", SLIDING, "SELECT *", {}),
        ("A; B", SLIDING, "SELECT *", {"A": "FILTER(?av = 5)"}),
    ],
)
def test_who_is_on_none(sequence: str, window: str, select: str, gpms: dict[str, str]) -> None:
    assert beginning(plan(sequence, window, select, **{"A": "FILTER(?av > 5)", **gpms})) is None


def test_edges_stand_once_for_all_but_the_first_that_has_come() -> None:
    """A query that comes later is on the ladder, too, even if it is looser; and one that leaves takes its runs."""
    queries = Queries(*texts("A; B", 5, 7, 3, 9))
    assert queries.push((1, "a", 8), (2, "b", 1), (3, "a", 4), (4, "x", 0)) == [1, 1, 1, 0]
    assert places(queries) == [0, 1, 1, 1]
    queries.add(*texts("A; B", 1, 4))
    assert queries.push((5, "a", 2), (6, "b", 1), (7, "x", 0)) == [0, 0, 1, 0, 1, 0]
    assert queries.push((8, "a", 9), (9, "x", 0)) == [0] * 6
    assert places(queries) == [0, 1, 1, 1, 1, 1]
    queries.runs.settle(queries.shared[3])
    queries.alone[3].settle()
    assert queries.push((12, "b", 1), (13, "x", 0)) == [1] * 6
    assert places(queries)[:3] == [0, 1, 1]
    assert places(queries)[3] != 1


def test_a_run_of_before_a_query_came_is_none_of_its_own() -> None:
    queries = Queries(*texts("A; B", 5, 5, 4))
    assert queries.push((1, "a", 8), (2, "x", 0)) == [0, 0, 0]
    queries.add(*texts("A; B", 1))
    assert queries.push((3, "b", 1), (4, "x", 0)) == [1, 1, 1, 0]


def test_a_bound_is_that_of_each_query() -> None:
    """Too many matches end for the loosest ones: the others have theirs."""
    queries = Queries(*texts("A: B", 0, 1, 7, 3, 9))
    queries.terms.bounds = replace(BOUNDS, matches=4)
    begun = [Reading(time, "a", 1, value) for time, value in enumerate([1, 9, 8, 2, 5, 3, 7], 1)]
    for more in ([*begun, Reading(20, "x", 1), Reading(21, "b", 1), Reading(22, "x", 1)], [Reading(23, "b", 1)]):
        batch = readings_batch(queries.terms, [*more, Reading(more[-1].time + 1, "x", 1)])
        outcomes = {each.run: each for each in queries.runs.push(STREAM, batch)}
        told = [outcomes[run] for run in queries.shared]
        assert [sum(map(len, each.matches)) for each in told] == [0, 0, 3, 0, 1]
        assert [each.error is None for each in told] == [False, False, True, False, True]


def test_explain_says_in_which_number_they_may_differ() -> None:
    text = query("A; B", SLIDING, A="FILTER(?av > 5)", B="FILTER(7 <= ?bv)")
    shared = explain(compile_query(load(text), TERMS)).sharing
    assert "stand once for queries that differ in the number in ?av > 5" in shared
    assert "7 <=" not in shared
