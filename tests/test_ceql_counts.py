"""The counts of `ceql_count` against the sets of `ceql`, on random queries; and the text of those queries."""

from __future__ import annotations

from collections import Counter

import pytest
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, as_tuples, ceql_situations
from hypothesis import given
from loaded import load
from pyoxigraph import RdfFormat, parse
from reference.ceql import evaluate_ceql
from reference.ceql_count import count_ends
from reference.tuples import TupleEvent, tuple_events

from oxiseq.grammar import render
from oxiseq.grammar.parser import parse as parse_query

COUNTABLE = CeqlOptions(strategies=False, consumption=False, limits=False, falling_clocks=False)


@given(ceql_situations(COUNTABLE))
def test_as_many_are_counted_as_the_definition_gives(situation: CeqlSituation) -> None:
    query, events = load(situation.text, "ceql"), as_tuples(situation.events)
    ends = Counter(c.end for c in evaluate_ceql(query, events))
    assert count_ends(query, events).tolist() == [ends[e.position] for e in events]


@given(ceql_situations())
def test_rendered_query_parses_to_itself(situation: CeqlSituation) -> None:
    query = load(situation.text, "ceql")
    assert parse_query(render(query), "ceql") == query


@given(ceql_situations())
def test_events_are_the_same_as_graphs(situation: CeqlSituation) -> None:
    arrivals = [
        [
            (e.time, [q.triple for q in parse(e.graph.encode(), format=RdfFormat.N_TRIPLES)])
            for e in situation.events
            if e.stream == name
        ]
        for name in situation.streams
    ]
    as_graphs, as_given = tuple_events(arrivals), as_tuples(situation.events)
    assert as_graphs == as_given
    assert [e.values for e in as_graphs] == [e.values for e in as_given]


@given(ceql_situations())
def test_strategies_and_consumption_only_take_away(situation: CeqlSituation) -> None:
    query, events = load(situation.text, "ceql"), as_tuples(situation.events)
    lines = [line for line in situation.text.split("\n") if not line.startswith("CONSUME")]
    for strategy in ("NEXT ", "LAST ", "MAX ", "STRICT "):
        lines = [line.replace(f"SELECT {strategy}", "SELECT ") for line in lines]
    everything = set(evaluate_ceql(load("\n".join(lines), "ceql"), events))
    found = evaluate_ceql(query, events)
    assert set(found) <= everything
    assert len(found) == len(set(found))
    if query.consumption is None and (query.selection is None or query.selection.strategy.value != "STRICT"):
        assert {c.end for c in found} == {c.end for c in everything}


def test_numbers_are_exact_beyond_what_can_be_listed() -> None:
    query = load(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A+", "ceql")
    events = [TupleEvent(n, n, f"{VOCAB}A") for n in range(70)]
    assert count_ends(query, events).tolist() == [2**n % 2**64 for n in range(70)]


@pytest.mark.parametrize("clause", ["CONSUME BY ANY", "LIMIT 1"])
def test_only_all_complex_events_can_be_counted(clause: str) -> None:
    with pytest.raises(ValueError, match="only all complex events"):
        count_ends(load(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A {clause}", "ceql"), [])
