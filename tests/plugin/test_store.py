"""The store: pyoxigraph's, with streams and queries; a change of the content holds for later events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox
import pytest
from live_queries import KB, NAMED, E, S, paid, query

import oxiseq
from oxiseq.api.store import _CHANGES

NAME = ox.NamedNode(E + "name")
PEOPLE = ox.NamedNode(E + "people")
CAT = ox.Quad(ox.NamedNode(E + "cat"), NAME, ox.Literal("Cat"), PEOPLE)


def filled() -> oxiseq.Store:
    store = oxiseq.Store()
    store.load(KB.encode(), format=ox.RdfFormat.N_QUADS)
    return store


def names(found: oxiseq.ContinuousQuery[oxiseq.Match]) -> list[str]:
    """The names in the matches so far."""
    return [str(m["name"]).strip('"') for m in found.poll("0s")]


@pytest.mark.parametrize("name", [n for n in dir(ox.Store) if not n.startswith("_")])
def test_every_method_of_the_store_behind_is_there(name: str) -> None:
    assert callable(getattr(oxiseq.Store(), name))


def test_unknown_attributes_are_told_as_usual() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = oxiseq.Store().nonsense


def test_reading_goes_to_the_store_behind() -> None:
    store = filled()
    assert len(store) == 2
    assert {q.object for q in store} == {ox.Literal("Ann"), ox.Literal("Bob")}
    assert [str(q.object) for q in store.quads_for_pattern(ox.NamedNode(E + "ann"), None, None)] == ['"Ann"']
    assert bool(store.query(f"ASK {{ GRAPH <{E}people> {{ ?s ?p 'Bob' }} }}"))
    assert list(store.named_graphs()) == [PEOPLE]
    assert CAT not in store
    store.add(CAT)
    assert CAT in store
    assert b"Cat" in store.dump(format=ox.RdfFormat.N_QUADS)
    assert len(store.inner) == 3
    assert "3 quads" in repr(store)


def test_a_durable_store(tmp_path: Path) -> None:
    store = oxiseq.Store(str(tmp_path / "kb"))
    store.add(CAT)
    store.flush()
    del store
    assert len(oxiseq.Store(str(tmp_path / "kb"))) == 1


CHANGES: dict[str, Callable[[oxiseq.Store], object]] = {
    "add": lambda s: s.add(CAT),
    "extend": lambda s: s.extend([CAT]),
    "bulk_extend": lambda s: s.bulk_extend([CAT]),
    "update": lambda s: s.update(f"INSERT DATA {{ GRAPH <{E}people> {{ <{E}cat> <{E}name> 'Cat' }} }}"),
    "load": lambda s: s.load(f"{CAT} .\n".encode(), format=ox.RdfFormat.N_QUADS),
    "bulk_load": lambda s: s.bulk_load(f"{CAT} .\n".encode(), format=ox.RdfFormat.N_QUADS),
}
REMOVALS: dict[str, Callable[[oxiseq.Store], object]] = {
    "remove": lambda s: s.remove(CAT),
    "clear": lambda s: s.clear(),
    "clear_graph": lambda s: s.clear_graph(PEOPLE),
    "remove_graph": lambda s: s.remove_graph(PEOPLE),
    "update": lambda s: s.update("DROP ALL"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_added_holds_for_later_events(change: str) -> None:
    store = filled()
    live = store.register(NAMED)
    stream = store.stream(S)
    stream.push(paid(1, "cat"), 1)
    CHANGES[change](store)
    stream.push(paid(2, "cat"), 2)
    stream.push(paid(3, "ann"), 3)
    assert [(m.at_us, m["name"]) for m in live.poll("0s")] == [
        (2, ox.Literal("Cat")),
        (3, ox.Literal("Ann")),
    ]


@pytest.mark.parametrize("change", REMOVALS)
def test_what_is_removed_held_for_earlier_events(change: str) -> None:
    store = filled()
    store.add(CAT)
    live = store.register(NAMED)
    stream = store.stream(S)
    stream.push(paid(1, "cat"), 1)
    REMOVALS[change](store)
    stream.push(paid(2, "cat"), 2)
    assert [m.at_us for m in live.poll("0s")] == [1]


def test_several_changes_between_events() -> None:
    store = filled()
    live = store.register(NAMED)
    stream = store.stream(S)
    for time, name in enumerate(["x", "y", "z"], 1):
        stream.push(paid(1), time)
        store.update(f"DELETE WHERE {{ GRAPH <{E}people> {{ <{E}ann> <{E}name> ?n }} }}")
        store.update(f"INSERT DATA {{ GRAPH <{E}people> {{ <{E}ann> <{E}name> '{name}' }} }}")
    stream.push(paid(1), 4)
    assert names(live) == ["Ann", "x", "y", "z"]


def test_a_match_keeps_the_name_its_event_had() -> None:
    """The name is looked up when the match is written out, long after the change."""
    store = filled()
    live = store.register(query("SELECT ?name", a="GRAPH :people { ?who :name ?name }"))
    stream = store.stream(S)
    stream.push(paid(1), 1)
    stream.advance(2)
    store.clear()
    stream.push(paid(2), 2)
    assert names(live) == ["Ann"]


def test_patterns_evaluated_in_place_keep_the_old_answer_too() -> None:
    store = filled()
    live = store.register(query("SELECT ?name", "A", a="OPTIONAL { GRAPH :people { ?who :name ?name } }"))
    stream = store.stream(S)
    stream.push(paid(1), 1)
    store.clear()
    stream.push(paid(2), 2)
    assert [m.get("name") for m in live.poll("0s")] == [ox.Literal("Ann"), None]


READS = {
    "backup",
    "contains_named_graph",
    "dump",
    "flush",
    "named_graphs",
    "optimize",
    "quads_for_pattern",
    "query",
    "read_only",
}


def test_every_way_to_write_is_known_as_one() -> None:
    """A method of another pyoxigraph has to be looked at: changes must be told before they are made."""
    methods = {name for name in dir(ox.Store) if not name.startswith("_")}
    assert methods - READS == _CHANGES


IN_WINDOWS = f"""PREFIX : <{E}> REGISTER RSTREAM :o AS SELECT ?name
FROM NAMED WINDOW :w ON <{S}> [RANGE 1]
WHERE {{ WINDOW :w {{ ?who :paid ?first }} GRAPH :people {{ ?who :name ?name }} }}"""


@pytest.mark.parametrize("change", [*CHANGES, *REMOVALS])
def test_every_way_to_write_has_its_place_in_windows_too(change: str) -> None:
    store = filled()
    removes = change in REMOVALS and change not in CHANGES
    if removes:
        store.add(CAT)
    live = store.register(IN_WINDOWS, language="rspql")
    stream = store.stream(S)
    stream.push(paid(1, "cat"), 1)
    (REMOVALS if removes else CHANGES)[change](store)
    stream.push(paid(2, "cat"), 2)
    assert [m.at_us for m in live.poll("0s")] == [1 if removes else 2]


def test_touch_keeps_what_has_been_asked_for_events_that_wait() -> None:
    store = filled()
    live = store.register(NAMED)
    stream = store.stream(S)
    stream.push(paid(1), 1)
    stream.push(paid(2), 2)  # the first has been answered, the second waits
    store.inner.clear()
    store.touch()
    stream.push(paid(3), 3)
    assert names(live) == ["Ann", "Ann"]


def test_touch_after_a_change_behind_its_back() -> None:
    store = filled()
    live = store.register(NAMED)
    stream = store.stream(S)
    stream.push(paid(1, "cat"), 1)
    stream.advance(2)
    store.inner.add(CAT)
    store.touch()
    stream.push(paid(2, "cat"), 2)
    assert names(live) == ["Cat"]


def test_a_change_that_fails_is_told_and_changes_nothing() -> None:
    store = filled()
    with pytest.raises(SyntaxError) as told:
        store.update("INSERT NONSENSE")
    assert isinstance(told.value, oxiseq.QueryError) and (told.value.line, told.value.column) == (1, 8)
    assert "1 | INSERT NONSENSE\n    |        ^" in told.value.msg == str(told.value)
    assert len(store) == 2


def test_streams_and_queries_are_listed() -> None:
    store = oxiseq.Store()
    assert store.stream(S) is store.stream(S)
    live = store.register(query())
    assert list(store.queries) == [live]
    assert [s.iri for s in store.streams] == [S]
    live.close()
    assert list(store.queries) == []


def test_registering_refuses_wrong_queries_and_negative_lateness() -> None:
    store = oxiseq.Store()
    with pytest.raises(oxiseq.QueryError):
        store.register("SELECT nonsense")
    with pytest.raises(oxiseq.OxiseqError, match="out of range"):
        store.register(query(), lateness="-1us")
    assert store.queries == ()
