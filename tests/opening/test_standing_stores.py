"""Queries over the knowledge base, in memory, in a folder, at a server: one face."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from opened_stores import KINDS, opened

import oxiseq
from oxiseq.api.standing import StoreChange

E = "http://e/"
COUNTS = f"PREFIX : <{E}> SELECT ?who (COUNT(*) AS ?n) WHERE {{ ?who :knows ?whom }} GROUP BY ?who"
ROWS = f"PREFIX : <{E}> SELECT ?who ?name WHERE {{ ?who :knows ?x OPTIONAL {{ ?who :name ?name }} }}"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with opened(request.param, tmp_path) as found:
        yield found


def insert(store: Any, *triples: str) -> None:
    store.update(f"PREFIX : <{E}> INSERT DATA {{ {' . '.join(triples)} }}")


def told(change: StoreChange) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Rows that went and came, by lexical form."""
    return tuple(  # type: ignore[return-value]
        sorted(({k: v.value for k, v in row.items() if v is not None} for row in rows), key=str)  # type: ignore[union-attr]
        for rows in (change.removed, change.added)
    )


def test_a_snapshot_and_then_what_comes_and_goes(store: Any) -> None:
    insert(store, ":a :knows :b", ":b :knows :c")
    query = store.register(COUNTS, language="sparql", name="friends")
    assert (query.name, query.form, query.variables, query.state) == ("friends", "SELECT", ("who", "n"), "followed")
    snapshot = query.snapshot()
    assert {(row["who"].value, row["n"].value) for row in snapshot.rows} == {(E + "a", "1"), (E + "b", "1")}
    insert(store, ":a :knows :c")
    change = next(query.changes(timeout="30s"))
    assert told(change) == ([{"who": E + "a", "n": "1"}], [{"who": E + "a", "n": "2"}])
    assert list(query.changes(timeout="50ms")) == [] == query.poll()
    insert(store, ":d :knows :c")
    (taken,) = query.poll()
    assert told(taken) == ([], [{"who": E + "d", "n": "1"}]) and taken.number > change.number
    assert [each.number for each in query.poll(after=snapshot.number)] == [change.number, taken.number]
    assert [each.number for each in query.changes(after=change.number, timeout="50ms")] == [taken.number]
    assert [each.name for each in store.standing] == ["friends"]
    query.close()


def test_poll_waits_for_the_next_change_if_there_is_none(store: Any) -> None:
    query = store.register(COUNTS, language="sparql")
    before = query.snapshot().number
    later = threading.Timer(0.2, insert, (store, ":a :knows :b"))
    later.start()
    (change,) = query.poll("30s")
    later.join()
    assert told(change) == ([], [{"who": E + "a", "n": "1"}]) and query.poll("10ms") == []
    assert [each.number for each in query.poll("30s", after=before)] == [change.number]
    insert(store, ":b :knows :c")
    assert [each.number for each in query.poll("30s", after=change.number)] == [change.number + 1]
    assert [each.number for each in query.poll()] == [change.number + 1]  # with `after` nothing counts as returned


def test_unbound_variables_graphs_and_answers(store: Any) -> None:
    rows = store.register(ROWS, language="sparql")
    made = store.register(f"PREFIX : <{E}> CONSTRUCT {{ ?y :known ?x }} WHERE {{ ?x :knows ?y }}", language="sparql")
    asked = store.register(f"PREFIX : <{E}> ASK {{ ?x :knows :c }}", language="sparql")
    assert (len(rows.snapshot()), len(made.snapshot()), asked.snapshot().answer) == (0, 0, False)
    insert(store, ":a :knows :c")
    assert next(rows.changes(timeout="30s")).added == ({"who": ox.NamedNode(E + "a"), "name": None},)
    triple = ox.Triple(ox.NamedNode(E + "c"), ox.NamedNode(E + "known"), ox.NamedNode(E + "a"))
    assert next(made.changes(timeout="30s")).added == (triple,) == made.snapshot().rows
    assert next(asked.changes(timeout="30s")).answer is True and asked.snapshot().answer is True
    store.update("CLEAR ALL")
    assert next(made.changes(timeout="30s")).removed == (triple,)
    assert next(asked.changes(timeout="30s")).answer is False


def test_changes_add_up(store: Any) -> None:
    query = store.register(ROWS, language="sparql")
    seen: list[StoreChange] = []
    snapshot = query.snapshot()
    listening = query.on_change(seen.append, after=snapshot.number)
    for number in range(20):
        insert(store, f":p{number % 5} :knows :q{number}", f':p{number % 3} :name "n{number % 4}"')
    store.update(f"PREFIX : <{E}> DELETE WHERE {{ :p1 :knows ?x }}")
    sums = Counter(map(key, snapshot.rows))
    for change in query.poll():
        sums.update(map(key, change.added))
        sums.subtract(map(key, change.removed))
    assert +sums == Counter(map(key, query.snapshot().rows)) and min(sums.values()) >= 0
    end = time.monotonic() + 30
    while (not seen or seen[-1].number < query.snapshot().number) and time.monotonic() < end:
        time.sleep(0.02)
    assert seen[-1].number == query.snapshot().number
    listening.close()


def key(row: Any) -> frozenset[tuple[str, Any]]:
    return frozenset(row.items())


def test_what_is_refused(store: Any) -> None:
    for wrong in ("SELECT nothing", "INSERT DATA { <a:a> <a:b> 1 }", ""):
        with pytest.raises(oxiseq.OxiseqError):
            store.register(wrong, language="sparql")
    with pytest.raises(oxiseq.OxiseqError, match="reads no stream"):
        store.register(ROWS, language="sparql", lateness="1s")
