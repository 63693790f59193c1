"""Queries that stand over the store as users have them: what is told, when, to whom; limits, failures, ends."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pyoxigraph as ox
import pytest

import oxiseq
from oxiseq.api.standing.query import Constructed
from oxiseq.engine.errors import LimitError, OxiseqError, QueryError
from oxiseq.engine.standing.run import StoreRun
from oxiseq.journal import CursorError

E = "http://e/"
P = f"PREFIX : <{E}> "
KNOWS = P + "SELECT ?x ?y WHERE { ?x :knows ?y }"


def iri(name: str) -> ox.NamedNode:
    return ox.NamedNode(E + name)


def knows(one: str, other: str) -> ox.Quad:
    return ox.Quad(iri(one), iri("knows"), iri(other))


def named(rows: object) -> list[str]:
    """Rows of IRIs, their last parts."""
    return sorted(" ".join(str(t.value)[len(E) :] for t in row.values()) for row in rows)  # type: ignore[attr-defined]


@pytest.fixture
def store() -> Iterator[oxiseq.Store]:
    made = oxiseq.Store()
    made.add(knows("a", "b"))
    yield made
    for query in made.standing:
        query.close()


def stand(store: oxiseq.Store, text: str = KNOWS, **more: Any) -> oxiseq.StandingQuery:
    return store.register(text, language="sparql", **more)


def test_a_change_is_one_transaction(store: oxiseq.Store) -> None:
    query = stand(store)
    store.update(P + "DELETE DATA { :a :knows :b } ; INSERT DATA { :b :knows :c . :c :knows :a }")
    (change,) = query.poll()
    assert (named(change.added), named(change.removed)) == (["b c", "c a"], ["a b"])
    assert (change.after, change.number, len(change)) == (0, 3, 3)
    assert abs(change.at.timestamp() - time.time()) < 60


def test_what_changes_nothing_is_not_told(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT DISTINCT ?x WHERE { ?x :knows ?y }")
    store.add(knows("a", "c"))
    store.add(ox.Quad(iri("a"), iri("likes"), iri("b")))
    store.update(P + "INSERT DATA { :b :knows :a } ; DELETE DATA { :b :knows :a }")
    assert query.poll() == []


def test_rows_come_as_often_as_they_are_there(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT ?x WHERE { ?x :knows ?y }", keep=2, most_rows=4)
    store.extend([knows("a", "c"), knows("a", "d")])
    (change,) = query.poll()
    assert named(change.added) == ["a", "a"]
    assert (change.number, len(change)) == (2, 2)
    assert named(query.snapshot()) == ["a", "a", "a"]
    store.add(knows("a", "e"))
    assert (query.snapshot().number, query.first, query.state) == (3, 2, "followed")
    store.add(knows("a", "f"))
    query.catch_up()
    assert query.state == "failed"
    with pytest.raises(LimitError):
        query = stand(store, query.text, most_rows=4)


def test_ask_tells_true_and_false(store: oxiseq.Store) -> None:
    query = stand(store, P + "ASK { :b :knows ?x }")
    assert query.snapshot().answer is False
    store.add(knows("b", "c"))
    store.add(knows("b", "d"))
    store.update(P + "DELETE WHERE { :b :knows ?x }")
    assert [change.answer for change in query.poll()] == [True, False]


def test_construct_tells_triples_once(store: oxiseq.Store) -> None:
    query = stand(store, P + "CONSTRUCT { ?x a :Person } WHERE { ?x :knows ?y }")
    store.add(knows("a", "c"))
    store.update(P + "DELETE WHERE { :a :knows ?x }")
    (change,) = query.poll()
    assert [(t.subject, t.object) for t in change.removed] == [(iri("a"), iri("Person"))]  # type: ignore[union-attr]


def test_blank_nodes_of_a_template_are_a_solutions_own(store: oxiseq.Store) -> None:
    query = stand(store, P + "CONSTRUCT { [] :of ?x ; :to ?y } WHERE { ?x :knows ?y }")
    first = {t.subject for t in query.snapshot().rows}  # type: ignore[union-attr]
    store.add(knows("a", "c"))
    store.remove(knows("a", "b"))
    added, removed = query.poll()
    assert {t.subject for t in removed.removed} == first  # type: ignore[union-attr]
    assert len({t.subject for t in added.added}) == 1  # type: ignore[union-attr]
    assert first.isdisjoint(t.subject for t in added.added)  # type: ignore[union-attr]


def test_blank_nodes_and_triple_terms_are_the_stores(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT ?y ?g WHERE { GRAPH ?g { :a :says ?y } }")
    said = ox.Triple(ox.BlankNode("who"), iri("knows"), iri("b"))
    for term in (ox.BlankNode("own"), said):
        store.add(ox.Quad(iri("a"), iri("says"), term, ox.BlankNode("place")))
    told = [row for change in query.poll() for row in change.added]
    assert [dict(row) for row in told] == [  # type: ignore[arg-type]
        {"y": ox.BlankNode("own"), "g": ox.BlankNode("place")},
        {"y": said, "g": ox.BlankNode("place")},
    ]
    store.remove_graph(ox.BlankNode("place"))
    assert len(query.snapshot()) == 0


def test_literals_are_compared_as_the_store_has_them(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT ?x WHERE { ?x :age 07 }")
    store.update(P + "INSERT DATA { :a :age 007 . :b :age 7.0 }")
    assert named(query.poll()[0].added) == ["a"]


# --- reading --------------------------------------------------------------------------------------


def test_changes_wait_for_the_next_one(store: oxiseq.Store) -> None:
    query = stand(store)
    threading.Timer(0.05, lambda: store.add(knows("b", "c"))).start()
    change = next(query.changes(timeout="30s"))
    assert named(change.added) == ["b c"]
    assert [*query.changes(timeout="0s")] == []


def test_since_reads_again_and_a_snapshot_counts_as_read(store: oxiseq.Store) -> None:
    query = stand(store)
    for name in "cde":
        store.add(knows("a", name))
    assert [change.number for change in query.changes(after=1, timeout="0s")] == [2, 3]
    assert query.snapshot().number == 3
    assert query.poll() == []
    assert [change.number for change in query.poll(after=0)] == [1, 2, 3]


def test_who_is_too_late_is_told_so(store: oxiseq.Store) -> None:
    query = stand(store, keep=2)
    for name in "cdef":
        store.add(knows("a", name))
    with pytest.raises(CursorError):
        query.poll(after=0)
    with pytest.raises(CursorError):
        query.poll()
    assert query.first == 2
    assert [change.number for change in query.poll()] == [3, 4]


def test_callbacks_come_in_order_and_their_errors_harm_nobody(store: oxiseq.Store) -> None:
    query, told = stand(store), list[int]()
    done = threading.Event()

    def fail(change: oxiseq.StoreChange) -> None:
        raise ValueError(change)

    def tell(change: oxiseq.StoreChange) -> None:
        told.append(change.number)
        if change.number == 22:
            done.set()

    store.add(knows("z", "y"))
    store.add(knows("z", "x"))
    query.on_change(fail)
    query.on_change(tell, after=1)
    for number in range(20):
        store.add(knows("a", f"n{number}"))
    assert done.wait(30)
    assert told == [*range(2, 23)]


def test_callbacks_come_from_a_thread_of_their_own(store: oxiseq.Store) -> None:
    """Who catches up may hold the store's lock, for which the callback waits."""
    query, threads = stand(store), list[threading.Thread]()
    done = threading.Event()

    def tell(change: oxiseq.StoreChange) -> None:
        threads.append(threading.current_thread())
        store.add(knows("a", f"n{change.number}"))
        if len(threads) == 3:
            query.close()
            done.set()

    store.add(knows("b", "c"))
    query.catch_up()
    with store.lock:
        query.on_change(tell, after=0)
        assert len(query.snapshot()) == 2
    assert done.wait(30)
    assert threading.current_thread() not in threads


def test_a_callback_may_change_the_store(store: oxiseq.Store) -> None:
    query = stand(store)
    done = threading.Event()

    def tell(change: oxiseq.StoreChange) -> None:
        if change.number < 5:
            store.add(knows("a", f"n{change.number}"))
        else:
            done.set()

    query.on_change(tell)
    store.add(knows("b", "c"))
    assert done.wait(30)
    assert len(query.snapshot()) == 6


def test_closing_ends_who_waits(store: oxiseq.Store) -> None:
    query = stand(store)
    threading.Timer(0.05, query.close).start()
    assert [*query.changes(timeout="30s")] == []
    assert query.state == "closed"
    assert store.standing == ()
    store.add(knows("b", "c"))
    assert query.number == 0


def test_a_query_that_is_closed_calls_nobody_back(store: oxiseq.Store) -> None:
    query, other = stand(store), stand(store)
    called, go_on, last = list[int](), threading.Event(), threading.Event()

    def tell(change: oxiseq.StoreChange) -> None:
        called.append(change.number)
        go_on.wait(30)

    query.on_change(tell)
    other.on_change(lambda change: last.set() if change.number == 3 else None)
    for name in "cde":
        store.add(knows("a", name))
    while not called:
        time.sleep(0.001)
    other.catch_up()
    query.close()
    go_on.set()
    assert last.wait(30)
    assert called == [1]


def test_many_threads_change_and_register(store: oxiseq.Store) -> None:
    def work(name: str) -> None:
        for number in range(25):
            store.add(knows(name, f"n{number}"))
            if number % 10 == 5:
                stand(store)

    threads = [threading.Thread(target=work, args=(name,)) for name in "pqr"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for query in store.standing:
        rows = query.snapshot()
        assert len(rows) == 76
        numbers = [change.number for change in query.poll(after=0)]
        assert numbers == [*range(1, rows.number + 1)]


# --- limits and failures --------------------------------------------------------------------------


def test_too_many_triples_are_asked_for(store: oxiseq.Store) -> None:
    store.extend([knows("a", f"n{i}") for i in range(10)])
    query = stand(store, P + "SELECT ?x ?z WHERE { ?x :knows ?y . ?y :knows ?z }", most_triples=5)
    assert query.state == "asked"
    assert "evaluated on the store" in str(query.explain())
    store.add(knows("n1", "c"))
    store.add(ox.Quad(iri("a"), iri("likes"), iri("b")))
    assert [named(change.added) for change in query.poll()] == [["a c"]]
    store.update(P + "DELETE WHERE { :n1 ?p ?o }")
    assert named(query.poll()[0].removed) == ["a c"]


def test_what_is_asked_for_too_long_fails_and_holds_nobody_up(store: oxiseq.Store) -> None:
    text = P + "SELECT ?x ?z WHERE { ?x :knows ?y . ?y :knows ?z }"
    query = stand(store, text, most_triples=5, most_asking="0s")
    other, patient = stand(store), stand(store, text, most_triples=5, most_asking=None)
    for number in range(6):
        store.add(knows("b", f"n{number}"))
    for each in (query, other, patient):
        each.catch_up()
    assert (query.state, other.state, patient.state) == ("failed", "followed", "asked")
    assert "seconds of evaluation on the store: 1 given, at most 0 allowed" in query.reason
    patient.poll()
    other.poll()
    store.add(knows("n1", "c"))
    assert [named(change.added) for each in (other, patient) for change in each.poll()] == [["n1 c"], ["b c"]]
    with pytest.raises(oxiseq.LimitError, match="seconds of evaluation on the store"):
        stand(store, text, most_triples=5, most_asking="0s")
    with pytest.raises(oxiseq.OxiseqError, match="most_asking"):
        stand(store, text, most_asking="x")


@pytest.mark.parametrize("text", ["?x :knows ?y . ?y :knows ?z", ":a :likes ?x . ?x :knows ?z"])
def test_too_many_triples_are_asked_for_also_when_they_come_later(store: oxiseq.Store, text: str) -> None:
    """The second query is told only of what it joins with, which is nothing."""
    query = stand(store, P + f"SELECT ?x ?z WHERE {{ {text} }}", most_triples=5)
    other = stand(store)
    for number in range(4):
        store.add(knows("b", f"n{number}"))
        query.catch_up()
        assert query.state == "followed"
    store.add(knows("b", "n4"))
    query.catch_up()
    assert (query.state, other.state) == ("asked", "followed")
    assert "6 given, at most 5" in query.reason
    store.update(P + "INSERT DATA { :a :likes :n4 . :n4 :knows :c }")
    assert "c" in {name.split()[-1] for change in query.poll() for name in named(change.added)}
    query.close()
    assert store._backend._standings.records["quads"] == 0


def test_too_many_rows_are_refused(store: oxiseq.Store) -> None:
    store.extend([knows("a", f"n{i}") for i in range(10)])
    with pytest.raises(LimitError):
        stand(store, P + "SELECT * WHERE { ?x :knows ?y . ?v :knows ?w }", most_rows=50)
    assert store.standing == ()
    query = stand(store)
    store.add(knows("b", "c"))
    assert len(query.poll()) == 1


def test_joins_of_too_many_rows_are_refused_and_not_asked_for(store: oxiseq.Store) -> None:
    """Though the answer is small: to ask for it might take for ever."""
    count = P + "SELECT (COUNT(*) AS ?n) WHERE { ?x :knows ?y . ?v :knows ?w . ?s :knows ?t }"
    query = stand(store, count, most_rows=50)
    store.extend([knows("a", f"n{i}") for i in range(10)])
    with pytest.raises(LimitError):
        stand(store, count, most_rows=50)
    query.catch_up()
    assert query.state == "failed"
    query.restart()
    assert query.state == "failed"


def test_paths_that_connect_too_much_are_asked_for(store: oxiseq.Store) -> None:
    store.extend([knows(f"n{i}", f"n{i + 1}") for i in range(20)])
    query = stand(store, P + "SELECT ?y WHERE { :n15 :knows+ ?y }", most_rows=100)
    assert query.state == "asked"
    assert "pairs" in query.reason
    store.add(knows("n20", "a"))
    assert named(query.poll()[0].added) == ["a", "b"]


def test_findings_warn_of_products(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT * WHERE { ?x :knows ?y . ?v :knows ?w }")
    assert [finding.code for finding in query.findings] == ["cross-product"]


def test_a_query_that_grows_too_large_fails_alone(store: oxiseq.Store) -> None:
    large = stand(store, P + "SELECT * WHERE { ?x :knows ?y . ?v :knows ?w }", most_rows=50)
    other = stand(store)
    store.extend([knows("a", f"n{i}") for i in range(10)])
    assert len(other.poll()[0].added) == 10
    assert large.state == "failed"
    assert large.reason
    assert "failed" in str(large.explain())
    store.update(P + "DELETE WHERE { :a :knows ?x }")
    store.add(knows("b", "c"))
    assert len(large.snapshot()) in (1, 121)  # it stands still
    large.restart()
    assert large.state == "followed"
    assert len(large.snapshot()) == 1


def test_operators_that_fail_are_replaced_by_asking(store: oxiseq.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    query, other = stand(store), stand(store, P + "SELECT ?x WHERE { ?x :likes ?y }")

    def fail(self: StoreRun) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(StoreRun, "step", fail)
        store.add(knows("b", "c"))
        assert named(query.poll()[0].added) == ["b c"]
    assert (query.state, other.state) == ("asked", "followed")
    assert "a fault of ours" in query.reason
    store.add(knows("c", "d"))
    assert named(query.poll()[0].added) == ["c d"]
    query.restart()
    assert query.state == "followed"


def test_a_change_that_cannot_be_told_harms_one_query(store: oxiseq.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [P + "CONSTRUCT { ?y :of ?x } WHERE { ?x :knows ?y }", KNOWS]
    query, other = [stand(store, text) for text in texts]

    def fail(self: Constructed, solutions: object) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(Constructed, "take", fail)
        store.add(knows("b", "c"))
        assert named(other.poll()[0].added) == ["b c"]
        assert (query.state, other.state) == ("failed", "followed")
    assert "a fault of ours" in query.reason
    with pytest.raises(CursorError):
        query.poll(after=0)
    query.restart()
    assert query.state == "followed"
    store.add(knows("c", "d"))
    assert len(query.snapshot()) == len(other.snapshot()) == 3


@pytest.mark.parametrize("way", [StoreRun.close, StoreRun.begin], ids=["close", "begin"])
def test_a_query_that_cannot_begin_anew_harms_nobody(
    store: oxiseq.Store, monkeypatch: pytest.MonkeyPatch, way: Callable[..., object]
) -> None:
    query, other = stand(store), stand(store, P + "SELECT ?x WHERE { ?x :knows ?y }")

    def fail(self: StoreRun, *given: object) -> object:
        if self is query._backend.upheld.run:
            raise RuntimeError("a fault of ours")
        return way(self, *given)

    monkeypatch.setattr(StoreRun, way.__name__, fail)
    store.inner.add(knows("b", "c"))
    store.touch()
    assert named(other.poll()[0].added) == ["b"]
    assert (query.state, other.state) == ("failed" if way.__name__ == "begin" else "followed", "followed")


def test_changes_that_are_not_told_are_found(store: oxiseq.Store) -> None:
    query = stand(store)
    store.inner.add(knows("b", "c"))
    store.inner.remove(knows("a", "b"))
    store.touch()
    store.add(knows("c", "d"))
    changes = query.poll()
    assert sorted(row for change in changes for row in named(change.added)) == ["b c", "c d"]
    assert [row for change in changes for row in named(change.removed)] == ["a b"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT * WHERE { ?x :knows ?y FILTER(NOW() > 1) }", "another value at each moment"),
        ("SELECT (NOW() AS ?t) WHERE { ?x :knows ?y }", "NOW"),
        ("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 5] WHERE { WINDOW :w { ?x :knows ?y } }", "stream"),
        ("REGISTER ISTREAM <http://e/o> AS SELECT ?x WHERE { ?x :knows ?y }", "REGISTER"),
        ("SELECT ?x WHERE { ?x :knows", "unexpected|end"),
        ("DESCRIBE :a", "DESCRIBE"),
        ("SELECT * WHERE { ?x :knows ?y FILTER(" + "!" * 400 + "?y) }", "nested too deeply"),
    ],
)
def test_what_cannot_stand_is_refused(store: oxiseq.Store, text: str, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        stand(store, P + text)


def test_arguments_of_streams_and_names_that_are_taken_are_refused(store: oxiseq.Store) -> None:
    with pytest.raises(OxiseqError, match="no stream"):
        store.register(KNOWS, lateness="5s", language="sparql")  # type: ignore[call-overload]
    store.register(KNOWS, language="sparql", name="one")
    with pytest.raises(OxiseqError, match="already"):
        store.register(KNOWS, language="sparql", name="one")


@pytest.mark.parametrize(
    ("language", "given"),
    [
        ("sparql", {"keep": -1}),
        ("sparql", {"keep": "x"}),
        ("sparql", {"keep": True}),
        ("sparql", {"name": ""}),
        ("sparql", {"most_triples": -1}),
        ("sparql", {"most_rows": 1.5}),
        ("sparql", {"name": 5}),
        ("rspql", {"most_rows": 5}),
    ],
)
def test_arguments_that_make_no_sense_are_refused(store: oxiseq.Store, language: str, given: dict[str, object]) -> None:
    (what,) = given
    with pytest.raises(OxiseqError, match=what):
        store.register(KNOWS, language=language, **given)  # type: ignore[call-overload]


def test_a_store_that_nobody_holds_is_closed_at_once() -> None:
    made = oxiseq.Store()
    stand(made)
    made.add(knows("a", "b"))
    made.standing[0].catch_up()
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_leaves_are_held_once(store: oxiseq.Store) -> None:
    store.extend([knows("a", f"n{i}") for i in range(100)])
    texts = [P + f"SELECT ?x ?y WHERE {{ ?x :likes :n{i} . ?x :knows ?y }}" for i in range(20)]
    queries = [stand(store, text) for text in texts]
    standings = store._backend._standings
    assert standings.records["quads"] == 101
    for query in queries[1:]:
        query.close()
    store.update(P + "INSERT DATA { :a :likes :n0 }")
    assert len(queries[0].poll()[0].added) == 101
    queries[0].close()
    assert standings.records == {"quads": 0, "rows": 0, "answers": 0}


def test_nothing_is_left_of_gates_that_have_closed(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT * WHERE { :a :likes ?y . ?y :knows ?z }")
    for text in ("INSERT DATA { :a :likes :b . :b :knows :c }", "DELETE DATA { :a :likes :b }"):
        store.update(P + text)
        query.catch_up()
    query.close()
    assert (store._backend._standings._engine._gates._open, store._backend._standings._engine._gates._held) == ({}, {})


def test_explanations_show_operators(store: oxiseq.Store) -> None:
    query = stand(store, P + "SELECT ?x WHERE { ?x :knows ?y MINUS { GRAPH ?g { ?x :hides ?z } } }")
    explained = query.explain()
    assert "quads  ?x :knows" in str(explained)
    assert explained.json()["state"] == "followed"
    assert "store" in explained.dot()
    assert "<svg" in str(explained.svg())
    assert "followed" in query._repr_html_()
