"""Places for evaluations: who stays long makes room."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from oxiseq.sparql import evaluation
from oxiseq.sparql.evaluation import Lane, Ticket
from oxiseq.sparql.messages import Problem
from oxiseq.sparql.querying import is_plain


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody may stay in a quick place."""
    monkeypatch.setattr(evaluation, "GRACE", 0.0)
    yield


def stay(ticket: Ticket) -> list[str]:
    """What is done with a ticket."""
    told: list[str] = []
    ticket.stay(lambda: told.append("moved"))
    return told


def test_who_stays_moves_to_a_slow_place_and_leaves_the_quick_one() -> None:
    lane = Lane(1, 0.0, slow=1)
    first = lane.enter()
    assert stay(first) == ["moved"]
    assert stay(first) == []
    second = lane.enter()
    with pytest.raises(Problem, match="too busy"):
        lane.enter()
    first.leave()
    assert stay(second) == ["moved"]


def test_without_a_slow_place_one_goes_for_each_that_waits() -> None:
    lane = Lane(2, 5.0)
    tickets = [lane.enter(), lane.enter()]
    assert [stay(ticket) for ticket in tickets] == [[], []]  # nobody waits
    entered: list[Ticket] = []
    waiting = threading.Thread(target=lambda: entered.append(lane.enter()))
    waiting.start()
    while not lane._waiting:
        time.sleep(0.01)
    with pytest.raises(Problem, match="others wait"):
        stay(tickets[0])
    assert stay(tickets[1]) == []  # one is enough
    tickets[0].leave()
    waiting.join(5)
    assert len(entered) == 1
    for ticket in (tickets[1], *entered):
        ticket.leave()
    assert [lane.enter() for _ in range(2)]


def test_a_place_is_waited_for_as_long_as_patience_lasts() -> None:
    lane = Lane(1, 0.2)
    lane.enter()
    begin = time.monotonic()
    with pytest.raises(Problem) as told:
        lane.enter()
    assert 0.15 < time.monotonic() - begin < 2
    assert told.value.headers == (("Retry-After", "5"),)


@pytest.mark.parametrize(
    "text",
    [
        "ASK {}",
        "SELECT * { ?s ?p ?o } LIMIT 5",
        "PREFIX : <http://e/> BASE <http://e/> SELECT ?s ?o WHERE { ?s a :class . }",
        "select ?p $o { <a> ?p $o }",
        "SELECT ?g { GRAPH ?g { ?s ?p 'x' } }  # and no more",
        "ASK { GRAPH <g> { <a> <p> 12 } }",
    ],
)
def test_a_single_pattern_is_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p ?o . ?a ?b ?c }",
        "SELECT * { ?s ?p ?o , 2 }",
        "SELECT * { ?s ?p ?o ; ?q 2 }",
        "SELECT * { ?s ?p ?o FILTER(?o = 3) }",
        "SELECT * { ?s <p>* ?o }",
        "SELECT * { ?s <p>/<q> ?o }",
        "SELECT * { ?s ?p ?s }",
        "SELECT DISTINCT ?p { ?s ?p ?o }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT * { ?s ?p ?o } ORDER BY ?o",
        "SELECT * { ?s ?p ?o } LIMIT 1 OFFSET 1000000",
        "SELECT * { ?s ?p ?o } OFFSET 1000000 LIMIT 1",
        "SELECT * { { SELECT * { ?s ?p ?o } } }",
        "SELECT * { ?s ?p ?o } VALUES ?s { <a> }",
        "SELECT * { ?s ?p [] }",
        "SELECT * FROM <g> { ?s ?p ?o }",
        "SELECT * { SERVICE <g> { ?s ?p ?o } }",
        "DESCRIBE <a>",
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "INSERT DATA { <a> <b> <c> }",
        "SELECT * { ?s ?p ?o",
        "",
    ],
)
def test_anything_else_is_not(text: str) -> None:
    assert not is_plain(text)
