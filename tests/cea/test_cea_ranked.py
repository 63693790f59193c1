"""ORDER BY, LIMIT with OFFSET, and SAMPLE in CEQL: of the complex events that end at one event those that the reference
allows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from math import comb

import pyarrow as pa
import pytest
from ceql_strategies import CeqlOptions, CeqlSituation, as_tuples, ceql_situations, with_order
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import NIGHTLY
from reference.ceql import ComplexEvent, evaluate_ceql
from reference.ceql_ranking import Told, objection
from reference.ceql_totals import is_settled
from tuple_runs import batches_of

import oxiseq
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.errors import LimitError
from oxiseq.engine.matches import frozen
from oxiseq.engine.output import picking
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.languages.sequences.explain import explain

RANKABLE = CeqlOptions(limits=False, falling_clocks=False, most=10)


def told(situation: CeqlSituation, capacities: Capacities | None, size: int, tables: bool) -> list[Told]:
    """In their order."""
    found = []
    for batch, _ in batches_of(situation, capacities, size, tables):
        assert isinstance(batch, ComplexEvents)
        for i, (start, end) in enumerate(zip(batch.start.tolist(), batch.end.tolist(), strict=True)):
            found.append((start, end, frozenset(batch.positions[batch.ends[i] : batch.ends[i + 1]].tolist())))
    return found


@given(ceql_situations(RANKABLE), st.integers(0, 2**32), st.booleans())
def test_random_queries(situation: CeqlSituation, seed: int, tables: bool) -> None:
    events = as_tuples(situation.events)
    ordered = with_order(situation, seed)
    query = load(ordered.text, "ceql")
    if not is_settled(query, events):
        lines = ["ORDER BY START DESC" if line.startswith("ORDER") else line for line in ordered.text.split("\n")]
        ordered = replace(ordered, text="\n".join(lines))
        query = load(ordered.text, "ceql")
    found = told(ordered, None, 100, tables)
    known: dict[int, list[ComplexEvent]] = {}
    for c in evaluate_ceql(query, events):
        known.setdefault(c.end, []).append(c)
    by_end = {end: list(some) for end, some in groupby(found, key=lambda each: each[1])}
    assert list(by_end) == sorted(by_end) and by_end.keys() <= known.keys()
    for end, complex_events in known.items():
        assert objection(query, complex_events, by_end.get(end, []), events) is None
    assert told(ordered, Capacities.smallest(), 2, tables) == found


LOOP = "VOCAB <http://e/> SELECT * FROM S WHERE A AS x; B+ AS y; C AS z {}"


def loop(tail: str, count: int, where: str = LOOP) -> list[oxiseq.Match]:
    """One A, so many B's whose v is 1, 2, 4..., one C: 2^count - 1 complex events."""
    kinds = ["A", *["B"] * count, "C"]
    rows = pa.table(
        {
            "type": kinds,
            "time": [1_000_000 * i for i in range(len(kinds))],
            "v": [0, *(1 << i % 20 for i in range(count)), 0],
        }
    )
    return list(oxiseq.run(where.format(tail), streams={"S": rows}, language="ceql"))


def chosen(match: oxiseq.Match) -> tuple[int, ...]:
    """The positions of the B's."""
    return tuple(position for position in match.positions.all if position in match.positions.by["y"])


def test_the_best_of_very_many() -> None:
    found = loop("ORDER BY SUM(y[v]) DESC, START LIMIT 3 OFFSET 1", 20)
    everything = set(range(1, 21))
    assert [everything - set(chosen(m)) for m in found] == [{1}, {2}, {1, 2}]
    assert [len(chosen(m)) for m in loop("ORDER BY COUNT(y) DESC, SUM(y[v]) LIMIT 2", 200)] == [200, 199]
    assert [chosen(m) for m in loop("ORDER BY COUNT(y), SUM(y[v]) DESC LIMIT 2", 20)] == [(20,), (19,)]


def test_a_key_that_is_no_sum_is_worked_out_for_each() -> None:
    found = loop("ORDER BY AVG(y[v]) DESC LIMIT 2", 10)
    assert [chosen(m) for m in found] == [(10,), (9, 10)]
    with pytest.raises(LimitError, match="ORDER BY compares one by one"):
        loop("ORDER BY MAX(y[v]) LIMIT 2", 30)


@pytest.mark.slow
def test_every_set_of_a_sample_is_as_likely() -> None:
    """Chi-square on samples (10^5 every night) of 2 of the 7 complex events of 3 B's: 21 sets. It does not depend on
    luck: what is drawn is fixed by the text and the times."""
    rounds = 100_000 if NIGHTLY else 20_000
    kinds = ["A", "B", "B", "B", "C"] * rounds
    rows = pa.table({"type": kinds, "time": list(range(len(kinds)))})
    text = "VOCAB <http://e/> SELECT * FROM S WHERE A AS x : (B+ AS y) ; C AS z WITHIN 4 EVENTS SAMPLE 2 SEED 5"
    text = text.replace("A AS x : (B+ AS y)", "A AS x; B+ AS y")
    drawn: Counter[frozenset[tuple[int, ...]]] = Counter()
    matches = list(oxiseq.run(text, streams={"S": rows}, language="ceql"))
    for first, second in zip(matches[::2], matches[1::2], strict=True):
        assert first.positions.last == second.positions.last
        drawn[frozenset(tuple(p % 5 for p in m.positions.all) for m in (first, second))] += 1
    sets = comb(7, 2)
    assert len(drawn) == sets and sum(drawn.values()) == rounds
    expected = rounds / sets
    assert sum((n - expected) ** 2 / expected for n in drawn.values()) < 45.3  # 20 degrees of freedom, 0.1 %


@pytest.mark.parametrize("first", range(4, 13))
def test_room_for_the_set_grows_at_any_point(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Also while finals are put below one root."""
    text = "VOCAB <http://e/> SELECT * FROM S WHERE (A AS x; B AS y; C) OR (B AS x; B AS y; C) OR (A AS y; C) {}"
    tail = "ORDER BY START DESC, SUM(y[v]) LIMIT 9"
    usual = loop(tail, 6, text)
    monkeypatch.setattr(frozen, "_FIRST", first)
    assert [m.positions for m in loop(tail, 6, text)] == [m.positions for m in usual]
    assert len(loop("SAMPLE 100", 6, text)) == 6 + 15 + 1


def test_a_sample_of_very_many() -> None:
    first = loop("SAMPLE 5", 200)
    assert len({str(each) for each in first}) == 5
    assert list(map(str, loop("SAMPLE 5", 200))) == list(map(str, first))
    assert list(map(str, loop("SAMPLE 5 SEED 1", 200))) != list(map(str, first))


def test_the_first_of_very_many() -> None:
    assert len(loop("ORDER BY START DESC LIMIT 3", 200)) == 3


def test_too_many_are_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "MOST_ORDERED", 1_000)
    assert len(loop("ORDER BY START", 9)) == 511
    with pytest.raises(LimitError, match="write a smaller LIMIT"):
        loop("ORDER BY START", 12)


@pytest.mark.parametrize(
    ("where", "tail", "said"),
    [
        (
            "A AS x; B+ AS y",
            "ORDER BY START DESC SAMPLE 3",
            "ORDER BY START DESC SAMPLE 3: drawn from the matches of an",
        ),
        ("A AS x; B+ AS y", "SAMPLE 3", "SAMPLE 3: drawn from the matches of an instant without listing the others"),
        (
            "A AS x; B+ AS y",
            "ORDER BY SUM(y[v]) - COUNT(x) LIMIT 2 OFFSET 1",
            "ORDER BY SUM(y[v]) - COUNT(x) ASC LIMIT 2 OFFSET 1: found among the matches of an instant without listing",
        ),
        ("A AS x; B+ AS y", "ORDER BY SUM(y[v]) LIMIT 2 OFFSET 1", "LIMIT 2 OFFSET 1: found among the matches of an"),
        ("A AS x; B+ AS y", "LIMIT 2", "LIMIT 2: ends the enumeration"),
        (
            "A AS x; B+ AS y",
            "ORDER BY MAX(y[v])",
            "at most: MAX(y[v]) is no sum over the events of a complex event",
        ),
        ("A+ AS x; A+ AS y", "ORDER BY COUNT(y)", "100000 at most: several variables may hold an event"),
    ],
)
def test_explain_says_so(where: str, tail: str, said: str) -> None:
    text = f"VOCAB <http://e/> SELECT * FROM S WHERE {where} {tail}"
    assert said in str(explain(compile_ceql(load(text, "ceql"))))


@pytest.mark.parametrize(("variable", "first"), [("x", [0, 2]), ("y", [2, 0])])
def test_variables_that_only_the_whole_of_a_complex_event_decides_are_summed(variable: str, first: list[int]) -> None:
    """An A is x where a B follows it, y where a D follows at once; the two that end at the C begin at two places."""
    kinds = [*"ABADC"]
    rows = pa.table({"type": kinds, "time": [1_000_000 * i for i in range(len(kinds))], "v": [1, 2, 3, 4, 5]})
    text = f"""VOCAB <http://e/> SELECT x, y FROM S WHERE (A AS x; B; C) OR (A AS y : D : C) WITHIN 1 MINUTES
    ORDER BY SUM({variable}[v]) DESC"""
    found = oxiseq.run(text, streams={"S": rows}, language="ceql")
    assert [match.start_us // 1_000_000 for match in found] == first
