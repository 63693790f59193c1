"""Ladders: queries whose edges stand once in an automaton, since they differ in a threshold of their first event, or,
where matches are counted, in the length of their windows.

That each finds what it finds alone is tested at random in test_among_others.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from engine_runs import STREAM, Reading, query, readings_batch
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.automaton.queries import JoinedQuery
from oxiseq.engine.bounds import BOUNDS
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output import counted_rows
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.plan.thresholds import ladder_of
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sharing.shared import SharedRuns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.sequences.explain import explain

SLIDING = "WITHIN PT0.00003S SLIDING"
COUNTS = "SELECT (ENDTIME() AS ?t) (COUNT(*) AS ?n)"
TERMS = TermDictionary()


def plan(sequence: str = "A; B", window: str = SLIDING, select: str = "SELECT *", **gpms: str) -> QueryPlan:
    return compile_query(load(query(sequence, window, select, **gpms)), TERMS)


class Queries:
    """Registered together, and their lonely twins."""

    def __init__(self, *texts: str, capacities: Capacities | None = None) -> None:
        self.terms = TermDictionary()
        self.runs = SharedRuns(self.terms)
        self._kb, self._capacities = StoreKb(Store()), capacities
        self.shared, self.alone = list[QueryRun](), list[QueryRun]()
        self.add(*texts)

    def add(self, *texts: str) -> None:
        """More come."""
        for text in texts:
            for runs in (self.shared, self.alone):
                plan = compile_query(load(text), self.terms)
                runs.append(QueryRun(plan, self.terms, self._kb, capacities=self._capacities))
            self.runs.add(self.shared[-1])

    def push(self, *readings: tuple[int, str, float]) -> list[int]:
        """How many matches each has found; the twins the same."""
        batch = readings_batch(self.terms, [Reading(time, kind, 1, value) for time, kind, value in readings])
        outcomes = {outcome.run: outcome.matches for outcome in self.runs.push(STREAM, batch)}
        for run in self.alone:
            run.push(STREAM, batch)
        found = [rows_of(outcomes.get(run, ())) for run in self.shared]
        assert found == [rows_of(run.advance()) for run in self.alone]
        return [*map(len, found)]


def rows_of(batches: Iterable[MatchBatch]) -> list[tuple[int, ...]]:
    """Ends and values, in any order."""
    return sorted((int(b.time[m]), *b.values[m].tolist()) for b in batches for m in range(len(b)))


def counting(sequence: str, *bounds: int, window: str = SLIDING) -> list[str]:
    """Counts of ends, of which some have a bound, too."""
    behind = " GROUP BY (ENDTIME())"
    return [
        query(sequence, window, COUNTS, A=f"FILTER(?av >= {bound})", B=f"FILTER(?bv >= {bound})") + behind
        for bound in bounds
    ]


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
    assert ladder_of(plan(sequence, window, select, **{"A": "FILTER(?av > 5)", **gpms})) is None


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


def threshold(a: str) -> tuple[str, str, object]:
    """That of A."""
    kind = ladder_of(plan("A; B", A=a))
    assert kind is not None and kind.threshold is not None
    return kind.threshold.variable.value, kind.threshold.operator, kind.threshold.strictness


def test_what_a_threshold_is() -> None:
    assert threshold("FILTER(?av > 5)") == ("av", ">", 5)
    assert threshold("FILTER(7 <= ?av)") == ("av", ">=", 7)
    assert threshold("FILTER(?av < 5) FILTER(?av > 1)") == ("av", "<", -5)
    assert threshold("FILTER(STRLEN(STR(?av)) = 2 && -2.5 > ?av)") == threshold("FILTER(?av < -2.50)")


@pytest.mark.parametrize(
    "condition",
    ["?av = 5", "?av != 5", "?av > 5.0e0", "?av > ?ak", "?av + 1 > 5", '?av > "5"', "?av > 5 || ?av < 3", "5 > 3"],
)
def test_what_none_is(condition: str) -> None:
    assert ladder_of(plan("A; B", A=f"FILTER({condition})")) is None


# --- matches that are counted -------------------------------------------------------------------------


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()])
def test_counts_of_windows_of_other_lengths_are_of_edges_that_stand_once(capacities: Capacities | None) -> None:
    """The longest window may come later, and go; who leaves takes the runs that began after it came."""
    lengths = (9, 8, 3, 20, 7, 40)
    texts = [counting("A; B", 0, window=f"WITHIN PT0.0000{length:02}S SLIDING")[0] for length in lengths]
    *texts, last = [text.replace("?bv >= 0", "?bv < ?av") for text in texts]  # no window of these is composed
    queries = Queries(*texts, capacities=capacities)
    assert queries.push((1, "a", 9), (2, "a", 4), (6, "b", 1), (7, "x", 0)) == [1, 1, 0, 1, 1]
    assert places(queries)[2:] == [places(queries)[1]] * 3
    assert queries.push((10, "a", 9), (15, "x", 0)) == [0] * 5
    queries.add(last)
    assert queries.push((26, "x", 0), (27, "x", 0)) == [0] * 6
    assert queries.push((28, "a", 2), (29, "x", 0)) == [0] * 6
    assert queries.push((30, "b", 1), (31, "x", 0)) == [1] * 6
    assert places(queries)[5] == places(queries)[1]
    assert queries.push((40, "a", 9), (41, "x", 0)) == [0] * 6
    for gone in (5, 3):
        queries.runs.remove(queries.shared.pop(gone))
        queries.alone.pop(gone)
    queries.runs.settle(queries.shared[1])
    queries.alone[1].settle()
    assert queries.push((44, "b", 1), (46, "x", 0)) == [1, 1, 0, 1]
    assert places(queries)[1] != places(queries)[2]


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()])
def test_counts_are_of_matches_whose_first_event_passes_a_query_s_threshold(capacities: Capacities | None) -> None:
    """Windows may differ, too; several events begin at one instant, and who leaves takes what its threshold passes."""
    texts = [
        query("A; B", f"WITHIN PT0.0000{size:02}S SLIDING", COUNTS, A=f"FILTER(?av >= {least})", B="FILTER(?bv < ?av)")
        + " GROUP BY (ENDTIME()) HAVING (COUNT(*) > 1)"
        for least, size in ((0, 9), (3, 9), (5, 20), (1, 30), (5, 9), (9, 90))
    ]
    queries = Queries(*texts, capacities=capacities)
    assert queries.push((1, "a", 9), (1, "a", 4), (1, "a", 4), (8, "b", 1), (9, "x", 0)) == [1, 1, 0, 1, 0, 0]
    assert places(queries) == [0, 1, 1, 1, 1, 1]
    assert queries.push((10, "a", 5), (10, "a", 6), (12, "a", 9), (15, "x", 0)) == [0] * 6
    queries.runs.settle(queries.shared[2])
    queries.alone[2].settle()
    assert queries.push((20, "b", 1), (22, "x", 0)) == [0, 0, 1, 1, 0, 0]
    assert places(queries)[2] != places(queries)[1]
    assert queries.push((31, "a", 2), (31, "a", 9), (32, "a", 9), (33, "b", 1), (34, "x", 0)) == [1, 1, 1, 1, 1, 1]


def test_few_that_are_on_no_ladder_together_compose_their_windows() -> None:
    """And those of which some are saved, or bounded."""
    queries = Queries(*(counting("A; B", 0, window=f"WITHIN PT0.00000{length}S SLIDING")[0] for length in (3, 5, 7)))
    assert queries.push((1, "a", 9), (5, "b", 1), (7, "x", 0)) == [0, 1, 1]
    assert places(queries) == [None] * 3


@pytest.mark.slow
@pytest.mark.parametrize("capacities", [None, Capacities.smallest()])
def test_matches_are_counted_for_each_query_and_numbers_may_be_large(capacities: Capacities | None) -> None:
    """2^70 - 1 for one and fewer for the others; who leaves goes on with its own."""
    windows = (60, 90, 100, 200)
    texts = [counting("A; B:+; C", 0, window=f"WITHIN PT0.000{length:03}S SLIDING")[0] for length in windows]
    queries = Queries(*texts, capacities=capacities)
    many = [(2 + n, "b", 4) for n in range(70)]
    assert queries.push((1, "a", 9), *many, (80, "c", 1), (81, "x", 0)) == [0, 1, 1, 1]
    assert queries.push((82, "a", 6), (83, "b", 7), (84, "c", 1), (85, "c", 1), (86, "x", 0)) == [1] * 4
    queries.push((87, "a", 9), (88, "b", 9), (89, "x", 0))
    queries.runs.settle(queries.shared[1])
    queries.alone[1].settle()
    queries.alone[1].advance()
    assert queries.push((90, "b", 5), (91, "c", 1), (92, "x", 0)) == [1] * 4


def test_rows_of_counts_are_made_for_all_queries_of_one_form_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose rows have another order, or show something else, have theirs."""
    monkeypatch.setattr(counted_rows, "FEW", 1)
    made = list[int]()
    usual = counted_rows.CountedRows.rows
    monkeypatch.setattr(
        counted_rows.CountedRows,
        "rows",
        lambda self, found, bounds: (made.append(len(bounds) - 1), usual(self, found, bounds))[1],
    )
    texts = counting("A; B", *range(10))
    others = [text.replace("?n)", "?m)") for text in counting("A : B", *range(9))]
    queries = Queries(*texts, *others, *(f"{text} LIMIT 1" for text in counting("A: B;+", 1, 2, 3)))
    queries.push((1, "a", 12), (2, "b", 12), (3, "x", 0))
    assert sorted(count for count in made if count > 1) == [3, 9, 10]


def test_explain_says_that_windows_may_differ() -> None:
    counted = compile_query(load(counting("A; B", 5)[0]), TERMS).runner.otherwise
    assert counted is not None
    differ = "stand once for queries that differ in the number in ?av >= 5 or in the length of their windows"
    assert differ in explain(counted).sharing
