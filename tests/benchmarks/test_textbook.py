"""The textbook's NFA finds the matches that oxiseq finds, event for event."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from benchmarks import queries, sequences, shapes
from benchmarks.data import START, Events, plain, quotes, stock_events
from benchmarks.drive import Prepared
from benchmarks.rivals import textbook
from benchmarks.textbook import Nfa, Step
from oxiseq.engine.terms.dictionary import TermDictionary

MANY = 1 << 40


def times(prepared: Prepared, events: Events) -> Counter[tuple[int, ...]]:
    """Each match as the times of its events."""
    return Counter(
        tuple(batch.event_time[low:high].tolist())
        for batch in prepared.run(events.batches)
        for low, high in pairwise(batch.ends.tolist())
    )


@pytest.mark.parametrize(("steps", "seconds"), [(3, 10), (3, 400), (6, 50)])
def test_any_later_event_over_stock_events(steps: int, seconds: int) -> None:
    terms = TermDictionary()
    events = stock_events(terms, 600, every=100)
    found = sequences.nfa(steps, seconds).run(plain(events, by_number=False), MANY)
    assert found.seen == len(events)
    assert Counter(found.matches) == times(Prepared.of(sequences.query(steps, seconds), terms), events)
    assert found.matches


@pytest.mark.parametrize("moves", shapes.MOVES)
@pytest.mark.parametrize("window", [20, 200])
@pytest.mark.parametrize("name", [*shapes.V_SHAPE, *shapes.KLEENE])
@pytest.mark.parametrize("companies", [1, 4])
def test_next_events_and_iterations_over_quotes(companies: int, name: str, window: int, moves: str) -> None:
    terms = TermDictionary()
    events = quotes(terms, 250, companies, moves)
    shape = {**shapes.V_SHAPE, **shapes.KLEENE}[name]
    found = shape.nfa(window).run(plain(events, by_number=True), MANY).matches
    clock = Counter(tuple(START + 1_000_000 * number for number in match) for match in found)
    assert clock == times(Prepared.of(shape.query(window), terms), events)
    assert found or (name in shapes.V_SHAPE and moves == "falling")


@pytest.mark.parametrize("kind", queries.KINDS)
def test_every_registered_query_has_its_own_nfa(kind: str) -> None:
    events, rows = queries.readings(TermDictionary(), kind, 30_000)
    total = 0
    for number in range(3):
        found = queries.nfa(kind, number, 3).run(rows, MANY).matches
        assert Counter(found) == times(Prepared.of(queries.query(kind, number, 3), events.terms), events)
        total += len(found)
    assert total


def test_it_stops_at_the_same_event_each_time_and_says_so() -> None:
    terms = TermDictionary()
    events = quotes(terms, 300, 2)
    rival = textbook(
        shapes.v_shape_nfa(100), plain(events, by_number=True), Prepared.of(shapes.v_shape(100), terms), events, 1_000
    )
    assert 0 < rival.events < 300 and not rival.whole
    assert rival.task() == rival.task()


def test_other_matches_than_oxiseqs_are_refused() -> None:
    terms = TermDictionary()
    events = quotes(terms, 300, 2)
    other = Nfa([Step(lambda event, _: True)], 100)
    with pytest.raises(AssertionError, match="textbook: 300 matches"):
        textbook(other, plain(events, by_number=True), Prepared.of(shapes.v_shape(100), terms), events, MANY)


def test_plain_events_hold_numbers_and_texts() -> None:
    terms = TermDictionary()
    events = quotes(terms, 20, 2)
    rows = plain(events, by_number=True)
    assert [row[0] for row in rows] == list(range(20))
    prices = events.terms.columns.number[events.batches[0].object[1::3]]
    assert np.array_equal([row[2] for row in rows], prices)
    assert {row[1] for row in rows} == {"http://example.org/company/0", "http://example.org/company/1"}
