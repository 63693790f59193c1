"""ORDER BY START and SAMPLE in CEQL: of the complex events that end at one event those that the reference allows."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from cea_runs import Answer, Driven, answers
from ceql_strategies import CeqlOptions, CeqlSituation, as_tuples, ceql_situations
from hypothesis import given
from hypothesis import strategies as st
from reference.ceql import evaluate_ceql

import oxiseq
from oxiseq.engine.cea import picking
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.errors import LimitError
from oxiseq.grammar import load
from oxiseq.languages.ceql.explain import explain_ceql

TAILS = ("ORDER BY START", "ORDER BY START DESC", "ORDER BY START DESC\nLIMIT 1", "ORDER BY START ASC\nLIMIT 2",
         "SAMPLE 1", "SAMPLE 2 SEED 3", "ORDER BY START DESC\nSAMPLE 2")  # fmt: skip


def told(text: str, situation: CeqlSituation, capacities: Capacities | None, batch: int) -> list[Answer]:
    """In their order."""
    driven, events = Driven(text, capacities), as_tuples(situation.events)
    return [each for low in range(0, len(events), batch) for each in answers(driven.feed(events[low : low + batch]))]


@given(ceql_situations(CeqlOptions(limits=False)), st.sampled_from(TAILS))
def test_random_queries(situation: CeqlSituation, tail: str) -> None:
    text = f"{situation.text}\n{tail}"
    query = load(text, "ceql")
    every: dict[int, list[Answer]] = {}
    for c in evaluate_ceql(query, as_tuples(situation.events)):
        every.setdefault(c.end, []).append((c.start, c.end, c.positions))
    found = told(text, situation, None, 100)
    assert [end for _, end, _ in found] == sorted(end for _, end, _ in found)
    for end, known in every.items():
        here = [each for each in found if each[1] == end]
        starts = sorted((start for start, _, _ in known), reverse=query.order is not None and query.order.descending)
        wanted = query.sample.count if query.sample is not None else query.limit.count if query.limit else len(known)
        assert not Counter(here) - Counter(known)
        assert len(here) == min(wanted, len(known))
        if query.order is not None:
            of_all = starts if query.sample is None else [s for s in starts if s in {h[0] for h in here}]
            assert [start for start, _, _ in here] == of_all[: len(here)] or query.sample is not None
            assert [h[0] for h in here] == sorted([h[0] for h in here], reverse=query.order.descending)
    assert {end for _, end, _ in found} == set(every)
    assert told(text, situation, Capacities.smallest(), 2) == found


LOOP = "VOCAB <http://e/> SELECT * FROM S WHERE A AS x; B+ AS y; C AS z {}"


def loop(tail: str, count: int) -> list[oxiseq.Match]:
    """One A, so many B's, one C: 2^count - 1 complex events."""
    kinds = ["A", *["B"] * count, "C"]
    rows = pa.table({"type": kinds, "time": [1_000_000 * i for i in range(len(kinds))]})
    return list(oxiseq.run(LOOP.format(tail), streams={"S": rows}, language="ceql"))


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


def test_explain_says_so() -> None:
    query = load(LOOP.format("ORDER BY START DESC SAMPLE 3"), "ceql")
    text = str(explain_ceql(compile_ceql(query)))
    assert "order: START DESC, among those that end at one event" in text
    assert "sample: 3, among those that end at one event" in text
