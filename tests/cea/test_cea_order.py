"""Neither batches, nor capacities, nor when the automaton's table is emptied change the answer or its order."""

from __future__ import annotations

import pytest
from cea_runs import Answer, Driven, answers
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, as_tuples, ceql_events, ceql_situations
from hypothesis import given
from profiles import crossed
from reference.tuples import TupleEvent
from strategies import Dice

from oxiseq.engine.cea.memory import Capacities

QUERIES = [
    "A; B; C WITHIN 9 EVENTS",
    "A; B+; C WITHIN 0.000009 SECONDS",
    "A; (B OR C)+; A AS x WITHIN 6 EVENTS LIMIT 3",
    "A : (B OR C AS y):+ : A",
    "(A; B)+; C WITHIN 8 [t]",
    "A AS x; A AS y; A AS z FILTER x[v > 1] AND (y[w = 2] OR z[k = 'x']) PARTITION BY [k] WITHIN 12 EVENTS",
    "A; B; C PARTITION BY [v], [k] CONSUME BY PARTITION",
    "A; B; C WITHIN 0.00003 SECONDS CONSUME BY ANY",
]


def found(text: str, events: list[TupleEvent], capacities: Capacities | None, batch: int) -> list[Answer]:
    driven = Driven(text, capacities)
    return [a for low in range(0, len(events), batch) for a in answers(driven.feed(events[low : low + batch]))]


@given(ceql_situations(CeqlOptions(most=12)))
def test_random_queries(situation: CeqlSituation) -> None:
    events = as_tuples(situation.events)
    expected = found(situation.text, events, None, 100)
    assert found(situation.text, events, Capacities.smallest(), 1) == expected


@pytest.mark.parametrize(("formula", "select"), crossed(QUERIES, ["*", "STRICT *", "A"]))
def test_long_streams(formula: str, select: str) -> None:
    text = f"VOCAB <{VOCAB}> SELECT {select} FROM S WHERE {formula}"
    if "WITHIN" not in formula and "CONSUME" not in formula:
        text += " LIMIT 20"
    options = CeqlOptions(most=150)
    events = as_tuples(ceql_events(Dice(len(text)), ("S",), options))
    expected = found(text, events, None, 1000)
    assert expected or select != "*"
    assert found(text, events, Capacities.smallest(), 7) == expected
