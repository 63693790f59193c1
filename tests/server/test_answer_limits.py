"""Answers that are too many, too late or too much at once."""

from __future__ import annotations

import threading
import time

import pytest
from asking import ask, column, endpoint, limited, problem, update

from oxiseq.sparql import Interrupted

MANY = "INSERT DATA {" + " ".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(2000)) + "}"
NUMBERS = "SELECT ?o { ?s ?p ?o }"
PAIRS = "SELECT ?o ?q { ?s ?p ?o . ?t ?p ?q }"
SLOW = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o . ?t ?p ?q . ?u ?p ?r FILTER(CONCAT(STR(?s), STR(?t), STR(?u)) = '') }"


@pytest.mark.parametrize("accept", ["application/json", "text/xml", "text/csv", "text/tsv"])
def test_a_row_more_than_allowed_is_an_error(accept: str) -> None:
    rows = " ".join(f"'{i}'" for i in range(10))
    query = f"SELECT ?x {{ VALUES ?x {{ {rows} }} }}"
    assert ask(endpoint(limited(rows=10)), query, accept=accept).status == 200
    assert ask(endpoint(limited(rows=9)), query, accept=accept).status == 403


def test_a_triple_more_than_allowed_is_an_error() -> None:
    query = "CONSTRUCT WHERE { ?s ?p ?o }"
    assert ask(endpoint(limited(rows=2)), query).status == 200
    assert ask(endpoint(limited(rows=1)), query).status == 403


def test_a_long_answer_that_exceeds_its_rows_is_broken_off() -> None:
    response = ask(endpoint(limited(rows=100_000), MANY), PAIRS)
    assert response.status == 200
    with pytest.raises(Interrupted, match="at most 100000 rows"):
        response.content()


def test_a_long_answer_comes_whole() -> None:
    response = ask(endpoint(limited(rows=500_000), MANY), f"{PAIRS} LIMIT 500000", accept="text/csv")
    assert not isinstance(response.body, bytes)
    assert response.content().count(b"\n") == 500_001


def test_the_client_is_answered_at_the_time_limit_though_the_store_goes_on() -> None:
    to = endpoint(limited(seconds=0.3), MANY)
    begin = time.monotonic()
    details = problem(ask(to, SLOW.replace("?u ?p ?r", "")))
    assert details["status"] == 503
    assert time.monotonic() - begin < 5
    assert column(ask(to, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")) == ["2000"]


def test_a_long_answer_is_broken_off_at_the_time_limit_and_its_work_ends() -> None:
    to = endpoint(limited(seconds=0.5), MANY)
    response = ask(to, "SELECT * { ?s ?p ?o . ?t ?p ?q . ?u ?p ?r }")
    with pytest.raises(Interrupted, match="time limit"):
        response.content()
    wait_until(lambda: to.evaluations.running == 0)


def test_work_ends_when_nobody_reads_on() -> None:
    to = endpoint(limited(seconds=None), MANY)
    response = ask(to, "SELECT * { ?s ?p ?o . ?t ?p ?q . ?u ?p ?r }")
    assert not isinstance(response.body, bytes)
    next(iter(response.body))
    assert to.evaluations.running == 1
    response.body.close()
    wait_until(lambda: to.evaluations.running == 0)


def test_too_many_at_a_time_are_sent_away() -> None:
    to = endpoint(limited(running=1, patience=0.05), MANY)
    first = ask(to, "SELECT * { ?s ?p ?o . ?t ?p ?q . ?u ?p ?r }")
    assert ask(to, NUMBERS).status == 200  # a single pattern has places of its own
    second = ask(to, f"{NUMBERS} ORDER BY ?o")
    assert (second.status, second.header("retry-after")) == (503, "5")
    assert not isinstance(first.body, bytes)
    first.body.close()
    wait_until(lambda: to.evaluations.running == 0)
    assert ask(to, f"{NUMBERS} ORDER BY ?o").status == 200


def test_queries_and_updates_at_once_see_whole_updates_only() -> None:
    to = endpoint(data="INSERT DATA { <http://e/a> <http://e/p> 0 , 0.5 }")
    seen: list[int] = []

    def read() -> None:
        for _ in range(30):
            seen.append(len(column(ask(to, NUMBERS))))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        text = f"DELETE WHERE {{ ?s ?p ?o }}; INSERT DATA {{ <http://e/a> <http://e/p> {number} , {number}.5 }}"
        assert update(to, text).status == 204
    for thread in threads:
        thread.join()
    assert set(seen) == {2}


def wait_until(true: object, seconds: float = 10) -> None:
    """Fails when it does not become true in time."""
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]  # a function
        assert time.monotonic() < end
        time.sleep(0.01)
