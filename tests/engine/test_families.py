"""Queries whose matches are counted, and that differ in constants of thresholds: which are one family, what it keeps,
who leaves it.

That each finds what it finds alone is tested at random in test_shared_runs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from engine_runs import STREAM, Reading, query, readings_batch
from loaded import load
from pyoxigraph import Store

from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.plan.thresholds import chains, family_of, strictness, thresholds
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.sharing.alike import to_share, why_no_family
from oxiseq.engine.sharing.shared import SharedRuns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.sequences.explain import explain

KEYED = "KEYED"
SLIDING = "WITHIN PT0.00003S SLIDING"
TERMS = TermDictionary()


def plan(sequence: str = "A; B", window: str = SLIDING, select: str = "SELECT *", **gpms: str) -> QueryPlan:
    return compile_query(load(query(sequence, window, select, **gpms)), TERMS)


def above(a: object, b: object = 0) -> QueryPlan:
    return plan(A=f"FILTER(?av > {a})", B=f"FILTER({b} <= ?bv)")


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
    select, behind = "SELECT (ENDTIME() AS ?t) (COUNT(*) AS ?n)", " GROUP BY (ENDTIME())"
    return [
        query(sequence, window, select, A=f"FILTER(?av >= {bound})", B=f"FILTER(?bv >= {bound})") + behind
        for bound in bounds
    ]


def test_what_a_threshold_is() -> None:
    [a, b] = thresholds(above(5, 7))
    assert (a.name, a.variable.value, a.operator, a.strictness) == ("A", "av", ">", 5)
    assert (b.name, b.variable.value, b.operator, b.strictness) == ("B", "bv", ">=", 7)
    [less] = thresholds(plan("A", A="FILTER(?av < 5) FILTER(?av > 1)"))
    assert (less.operator, less.strictness) == ("<", -5)
    assert strictness(plan("A", A="FILTER(STRLEN(STR(?av)) = 2 && -2.5 > ?av)")) == strictness(
        plan("A", A="FILTER(?av < -2.50)")
    )


@pytest.mark.parametrize(
    "condition",
    ["?av = 5", "?av != 5", "?av > 5.0e0", "?av > ?ak", "?av + 1 > 5", '?av > "5"', "?av > 5 || ?av < 3", "5 > 3"],
)
def test_what_none_is(condition: str) -> None:
    assert thresholds(plan("A", A=f"FILTER({condition})")) == ()


def counted(sequence: str, window: str = SLIDING, select: str = "SELECT (COUNT(*) AS ?n)", **gpms: str) -> QueryPlan:
    """A query of counts, as it finds them together with others."""
    found = plan(sequence, window, select, **gpms)
    return found.runner.otherwise or found


def test_who_is_in_no_family_and_why() -> None:
    filtered = {"A": "FILTER(?av > 5)"}
    assert why_no_family(counted("A; B", **filtered)) is None
    assert why_no_family(counted("A; B", "", **filtered)) is None
    assert "not counted" in str(why_no_family(plan("A; B", **filtered)))
    assert "compares its variable" in str(why_no_family(counted("A; B")))
    assert "compares its variable" in str(why_no_family(counted("A; B", A="FILTER(?av = 5)")))
    composed = plan("A; B", select="SELECT (COUNT(*) AS ?n)", **filtered)
    assert "not counted" in str(why_no_family(to_share(composed))), "what is so far is composed by each"
    summed = plan("A; B+", "WITHIN PT0.00003S", "SELECT (SUM(SUM(?bv)) AS ?n)", **filtered)
    assert "not counted" in str(why_no_family(summed))
    assert "not counted" in str(why_no_family(counted("A; B WITHIN PT0.000003S", **filtered)))
    assert "begins with a negation" in str(why_no_family(counted("N!; A", "WITHIN PT0.00003S", **filtered)))
    assert thresholds(plan("A; N!; B", N="FILTER(?nv > 5)")) == (), "what is negated is the same for all"
    assert thresholds(plan("A & B", **filtered)) == ()


def test_families_are_chains() -> None:
    """Where one is stricter in A and another in B, they are of two; three here are so, each beside each."""
    plans = [above(5, 5), above(1, 9), above(1, 1), above(9, 9), above(9, 1)]
    found = chains(plans)
    assert sorted(number for chain in found for number in chain) == [0, 1, 2, 3, 4]
    for chain in found:
        how = [strictness(plans[number]) for number in chain]
        assert all(a <= b for one, other in pairwise(how) for a, b in zip(one, other, strict=True))
    assert len(found) == 3


def test_ranked_are_only_letters_whose_thresholds_differ() -> None:
    family = family_of([above(5, 5), above(5, 7), above(5, 7), above(5, 8)])
    assert family is not None
    [ranked] = family.ranked
    assert (ranked.letter, ranked.counts, len(ranked.conditions)) == (("B",), (1, 2, 3), 3)
    assert family_of([above(5, 5), above(5, 5)]) is None


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()])
def test_what_a_lenient_query_takes_is_still_awaited_by_the_strict_one(capacities: Capacities | None) -> None:
    """`;` is the next event that a query takes: b = 4 is the next for >= 1 alone, b = 6 for >= 5, too."""
    queries = Queries(*counting("A; B", 1, 5, 9), capacities=capacities)
    assert queries.push((1, "a", 9), (2, "b", 4), (3, "b", 6), (4, "b", 9), (5, "b", 9), (6, "x", 0)) == [1, 1, 1]
    first, second, third = queries.shared
    assert first.finder is second.finder is third.finder
    assert first.finder.plan.runner.family is not None
    assert len({id(run.teller) for run in queries.shared}) == 3
    assert queries.push((10, "a", 4), (11, "a", 9), (12, "b", 5), (13, "b", 9), (14, "x", 0)) == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("capacities", [None, Capacities.smallest()])
def test_matches_are_counted_for_each_query_and_numbers_may_be_large(capacities: Capacities | None) -> None:
    """2^70 - 1 for one and fewer for the others; who leaves goes on with its own."""
    queries = Queries(*counting("A; B:+; C", 1, 5, 9, window="WITHIN PT0.0002S SLIDING"), capacities=capacities)
    many = [(2 + n, "b", 4 if n < 50 else 6 if n < 68 else 9) for n in range(70)]
    assert queries.push((1, "a", 9), *many, (80, "c", 1), (81, "x", 0)) == [1, 1, 1]
    first, second, third = queries.shared
    assert first.finder is second.finder is third.finder
    assert first.finder.plan.runner.sequence.members == 3
    assert queries.push((82, "a", 6), (83, "b", 7), (84, "c", 1), (85, "c", 1), (86, "x", 0)) == [1, 1, 0]
    queries.push((87, "a", 9), (88, "b", 9), (89, "x", 0))
    queries.runs.settle(second)
    queries.alone[1].settle()
    assert queries.alone[1].advance() == []
    assert second.finder is not first.finder
    assert queries.push((90, "b", 5), (91, "c", 1), (92, "x", 0)) == [1, 1, 1]


def test_rows_of_counts_are_made_for_all_who_asked_the_last_time() -> None:
    """Those who show something else have theirs."""
    texts = [*counting("A; B", 1, 5, 9), *(text.replace("AS ?n)", "AS ?m)") for text in counting("A; B", 3, 7))]
    queries = Queries(*texts)
    for time in range(0, 60, 10):
        queries.push(*[(time + n, "ab"[n % 2], n + 1) for n in range(9)])
    assert len({id(run.finder) for run in queries.shared}) == 1
    assert [len(form.asked) for form in queries.shared[0].finder.joint._forms.values()] == [3, 2]


def test_several_that_come_at_once_are_next_together() -> None:
    """And the rest waits for the strictest of those that none of them satisfied."""
    queries = Queries(*counting("A; B", 1, 5, 9))
    assert queries.push((1, "a", 9), (2, "b", 4), (2, "b", 6), (3, "b", 9), (4, "x", 0)) == [1, 1, 1]


@pytest.mark.slow
def test_who_leaves_goes_on_alone_and_the_last_ones_are_no_family() -> None:
    queries = Queries(*counting("A; B;+", 1, 5, 9, 9))
    queries.push((1, "a", 9), (2, "a", 6), (3, "b", 4), (4, "b", 9), (5, "a", 9), (6, "x", 0))
    first, second, third, fourth = queries.shared
    queries.runs.settle(second)
    queries.alone[1].settle()
    assert queries.alone[1].advance() == []
    assert second.finder is not first.finder
    assert second.finder.plan.runner.family is None
    assert second.finder.plan.query.gpms == second.plan.query.gpms
    assert first.finder is third.finder is fourth.finder
    queries.push((7, "b", 9), (8, "b", 3), (9, "b", 7), (10, "x", 0))
    queries.runs.remove(first)
    queries.shared, queries.alone = queries.shared[1:], queries.alone[1:]
    assert third.finder is fourth.finder
    assert third.finder.plan.runner.family is None
    assert queries.push((11, "b", 9), (12, "a", 9), (13, "b", 9), (14, "x", 0)) != [0, 0, 0]


def test_values_that_are_no_numbers_are_in_no_query_and_ids_that_go_are_looked_up_again() -> None:
    queries = Queries(*counting("A", 1, 5))
    queries.push((1, "a", 7), (2, "a", 3), (3, "x", 0))
    queries.terms.generation += 1
    assert queries.push((4, "a", 3), (5, "a", 7), (6, "x", 0)) == [2, 1]


def test_both_thresholds_and_windows_may_differ() -> None:
    """The finder has the most lenient thresholds and the longest window, of whichever queries these are."""
    short, long = "WITHIN PT0.000005S SLIDING", "WITHIN PT0.00005S SLIDING"
    queries = Queries(*counting("A; B", 1, 9, window=short), *counting("A; B", 5, 9, window=long))
    assert queries.push((1, "a", 9), (8, "b", 9), (9, "a", 9), (10, "b", 7), (11, "b", 9), (12, "x", 0)) == [1, 1, 2, 2]
    finder = queries.shared[0].finder
    assert all(run.finder is finder for run in queries.shared)
    assert finder.plan.window == queries.shared[2].plan.window


def test_explain_says_which_numbers_may_differ() -> None:
    behind = " GROUP BY (ENDTIME())"
    text = query("A; B", SLIDING, "SELECT (COUNT(*) AS ?n)", A="FILTER(?av > 5)", B="FILTER(7 <= ?bv)") + behind
    shared = explain(compile_query(load(text), TERMS)).sharing
    assert "or in the number in ?av > 5 and 7 <= ?bv where each is stricter" in shared
    assert (
        "of the same constants since its matches are not counted one by one"
        in explain(plan("A; B+", "WITHIN PT0.00003S", "SELECT (SUM(SUM(?bv)) AS ?n)", A="FILTER(?av > 5)")).sharing
    )
