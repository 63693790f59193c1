"""Queries that are asked, and for long: who changes the store waits for none of them, nor do other queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyoxigraph as ox
import pytest

import oxiseq
from oxiseq.api.standing.standings import AT_ONCE
from oxiseq.engine.errors import LimitError
from oxiseq.engine.standing import Question, Solutions, asked

P = "PREFIX : <http://e/> "
KNOWS = P + "SELECT ?x ?y WHERE { ?x :knows ?y }"
LARGE = P + "SELECT (COUNT(*) AS ?n) WHERE { ?a :edge ?b . ?c :edge ?d . ?e :edge ?f FILTER(?a != ?e) }"
"""To count 150^3 rows takes the store a second or more."""


@pytest.fixture
def store() -> Iterator[oxiseq.Store]:
    made = oxiseq.Store()
    made.update(P + "INSERT DATA { :a :knows :b }")
    yield made
    for query in made.standing:
        query.close()


class Slow:
    """Asks the store as usual, but answers only when it is told to."""

    def __init__(self, store: oxiseq.Store) -> None:
        self._store = store
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.running = self.most = 0

    def __call__(self, question: Question) -> Solutions:
        self.running += 1
        self.most = max(self.most, self.running)
        found = asked(self._store.inner, question)
        self.begun.release()
        assert self.go_on.acquire(timeout=60)
        self.running -= 1
        return found


def stand(store: oxiseq.Store, text: str = KNOWS, most_triples: int = 0) -> oxiseq.StandingQuery:
    return store.register(text, language="sparql", most_triples=most_triples)


def insert(store: oxiseq.Store, what: str) -> None:
    store.update(P + f"INSERT DATA {{ {what} }}")


def added(query: oxiseq.StandingQuery, wait: bool = True) -> list[list[str]]:
    return [[str(row["y"].value)[9:] for row in change.added] for change in query.poll(wait=wait)]  # type: ignore[call-overload]


def test_updates_and_other_queries_do_not_wait(store: oxiseq.Store) -> None:
    query, other = stand(store), stand(store, most_triples=100)
    slow = Slow(store)
    store.ask_by(lambda usual: slow)
    insert(store, ":a :knows :c")
    assert slow.begun.acquire(timeout=60)
    for name in "defg":
        insert(store, f":a :knows :{name}")
    assert added(other) == [["c"], ["d"], ["e"], ["f"], ["g"]]
    assert len(query.snapshot(wait=False)) == 1
    assert added(query, wait=False) == []
    late = stand(store, most_triples=100)
    assert len(late.snapshot()) == 6
    slow.go_on.release(2)
    assert [sorted(names) for names in added(query)] == [["c"], ["d", "e", "f", "g"]]


def test_a_change_while_it_is_asked_is_asked_for_again(store: oxiseq.Store) -> None:
    query, slow = stand(store), Slow(store)
    store.ask_by(lambda usual: slow)
    insert(store, ":a :knows :c")
    assert slow.begun.acquire(timeout=60)
    store.update(P + "DELETE DATA { :a :knows :b }")
    slow.go_on.release(2)
    rows = query.snapshot()
    assert [row["y"].value for row in rows] == ["http://e/c"]  # type: ignore[call-overload]
    assert [len(change) for change in query.poll(after=0)] == [1, 1]


def test_few_are_asked_at_once_and_all_in_the_end(store: oxiseq.Store) -> None:
    queries = [stand(store) for _ in range(3 * AT_ONCE)]
    slow = Slow(store)
    store.ask_by(lambda usual: slow)
    insert(store, ":a :knows :c")
    for _ in range(AT_ONCE):
        assert slow.begun.acquire(timeout=60)
    slow.go_on.release(len(queries))
    assert [added(query) for query in queries] == [[["c"]]] * len(queries)
    assert slow.most == AT_ONCE


@pytest.mark.parametrize("end", ["close", "restart", "touch"])
def test_a_question_that_nobody_waits_for_any_more(store: oxiseq.Store, end: str) -> None:
    query, slow = stand(store), Slow(store)
    store.ask_by(lambda usual: slow)
    insert(store, ":a :knows :c")
    assert slow.begun.acquire(timeout=60)
    slow.go_on.release(2)
    ends: dict[str, Callable[[], None]] = {"close": query.close, "restart": query.restart, "touch": store.touch}
    ends[end]()
    if end != "close":
        assert len(query.snapshot()) == 2
        insert(store, ":a :knows :d")
        slow.go_on.release(1)
        assert len(query.snapshot()) == 3


def test_what_takes_too_long_fails_and_holds_nothing_up(store: oxiseq.Store) -> None:
    """The store itself is at work here; in this process, so its thread is left behind."""
    query = store.register(LARGE, language="sparql", most_triples=0, most_asking="50ms")
    others = [stand(store), stand(store, most_triples=100)]
    insert(store, " . ".join(f":s{i} :edge :o{i}" for i in range(150)))
    for number in range(20):
        insert(store, f":a :knows :n{number}")
    assert [sum(map(len, added(other))) for other in others] == [20, 20]
    query.catch_up()
    assert query.state == "failed"
    assert "seconds of evaluation on the store" in query.reason
    with pytest.raises(LimitError, match="seconds of evaluation on the store"):
        store.register(LARGE, language="sparql", most_triples=0, most_asking="50ms")
    assert len(store.standing) == 3


def test_a_reader_of_changes_waits_no_longer_than_it_said(store: oxiseq.Store) -> None:
    query, slow = stand(store), Slow(store)
    store.ask_by(lambda usual: slow)
    insert(store, ":a :knows :c")
    assert [*query.changes(timeout="0s")] == []
    slow.go_on.release(1)
    assert len(next(query.changes(timeout="60s"))) == 1


def test_an_answer_of_the_store_is_as_it_was_when_asked() -> None:
    """What all of this rests on."""
    store = oxiseq.Store()
    store.extend(ox.Quad(ox.NamedNode(f"http://e/{i}"), ox.NamedNode("http://e/p"), ox.Literal(i)) for i in range(100))
    quads, graphs = store.quads_for_pattern(None, None, None), store.named_graphs()
    store.update("DELETE WHERE { ?s ?p ?o } ; INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/p> 1 } }")
    assert len(list(quads)) == 100
    assert list(graphs) == []
