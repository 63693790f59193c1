"""In memory, in a folder, at a server: one face. What is said here holds for all three."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from opened_stores import KINDS, opened
from query_forms import QUERIES, E, S

import oxiseq
from oxiseq.journal import ConflictError, UnknownError

GRAPH = f"<{E}x> a <{E}T> ; <{E}p> {{}} ."
PAIRS = QUERIES["SPAseq"][1]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with opened(request.param, tmp_path) as found:
        yield found


def pushed(store: Any, times: range) -> None:
    """An event a second."""
    for t in times:
        store.stream(S).push(GRAPH.format(t), 1_000_000 * t)


def eventually(found: Any, count: int) -> oxiseq.Matches:
    """All matches, when there are so many."""
    end = time.monotonic() + 60
    while len(matches := found.matches()) < count and time.monotonic() < end:
        time.sleep(0.02)
    assert len(matches) == count
    return matches


@pytest.mark.parametrize("kind", KINDS)
def test_every_language_finds_the_same_everywhere(kind: str, tmp_path: Path) -> None:
    events = [(1_000_000 * t, GRAPH.format(t)) for t in range(1, 5)]
    with opened(kind, tmp_path) as store:
        queries = {}
        for name, (language, text) in QUERIES.items():
            names: dict[str, Any] = {"stream_names": {"S": S}} if language == "ceql" else {}
            queries[name] = store.register(text, language=language, name=name.replace(", ", "-"), **names)
        assert store.stream(S).extend(events) == 4
        store.advance(10_000_000)
        for name, (language, text) in QUERIES.items():
            names = {"stream_names": {"S": S}} if language == "ceql" else {}
            expected = oxiseq.run(text, {S: events}, language=language, **names)
            expected_here = [m for m in expected if m.at_us <= 10_000_000]
            found = eventually(queries[name], len(expected_here))
            assert list(found) == expected_here, name
            assert [m.graph for m in found] == [m.graph for m in expected_here], name
            assert sorted(m.id or 0 for m in found) == list(range(1, len(found) + 1)), name
            assert found.to_arrow().drop_columns([]).equals(expected.to_arrow().slice(0, len(found))), name
            assert (queries[name].match_count, queries[name].variables) == (len(found), expected.variables), name


def test_iteration_waits_and_goes_on_behind_the_cursor(store: Any) -> None:
    query = store.register(PAIRS, name="pairs")
    assert (query.name, query.query.text, query.reads, query.variables) == ("pairs", PAIRS, (S,), ("x", "a", "b", "o"))
    assert list(query.poll("50ms")) == []
    pushed(store, range(1, 3))
    store.advance(3_000_000)
    first = next(iter(query))
    assert (first.id, query.cursor, first["a"].value, first["b"].value) == (1, 1, "1", "2")
    later = threading.Timer(0.2, pushed, (store, range(3, 5)))
    later.start()
    second = next(query.poll("30s"))
    later.join()
    assert (second.id, second.end, second["b"].value) == (2, datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC), "3")
    store.advance(9_000_000)
    eventually(query, 3)
    query.cursor = 0
    assert [match.id for match in query.poll("300ms")] == [1, 2, 3]
    assert [match.id for match in query.matches(after=1)] == [2, 3]
    assert [match.id for match in query.matches(after=1, limit=1)] == [2]
    assert (len(query.matches(after=3)), len(query.matches(limit=0))) == (0, 0)
    for time_ in (second.end, "1970-01-01T00:00:03Z", 2.5):  # a time, as `since` of `why` is
        with pytest.raises(oxiseq.ArgumentTypeError, match=r"matches\(\): after is int, not"):
            query.matches(after=time_)
    with pytest.raises(oxiseq.ArgumentValueError, match="after is a whole number, 0 or more"):
        query.matches(after=-1)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "server"])
def test_where_this_process_works_counts_and_matches_have_all_that_was_pushed(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        query = store.register(PAIRS)
        for number in range(1, 6):
            pushed(store, range(number, number + 1))
            assert query.events == number
            store.advance(1_000_000 * number + 1)
            assert query.match_count == number - 1 == len(query.matches())


def test_asynchronously_and_by_callback(store: Any) -> None:
    query = store.register(PAIRS)
    seen: list[int | None] = []
    closed: list[oxiseq.Match] = []
    listening = query.subscribe(lambda match: seen.append(match.id))
    query.subscribe(closed.append).close()
    time.sleep(0.3)  # a reader elsewhere has to be there first

    async def three() -> list[int | None]:
        asyncio.get_running_loop().run_in_executor(None, pushed, store, range(1, 6))
        found = []
        async for match in query:
            found.append(match.id)
            if len(found) == 3:
                break
        return found

    assert asyncio.run(asyncio.wait_for(three(), 60)) == [1, 2, 3]
    end = time.monotonic() + 30
    while len(seen) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    assert seen[:3] == [1, 2, 3] and closed == []
    with listening:
        pass
    earlier: list[int | None] = []
    with query.subscribe(lambda match: earlier.append(match.id), after=1):
        while len(earlier) < 2 and time.monotonic() < end:
            time.sleep(0.02)
    assert earlier[:2] == [2, 3]
    store.advance(9_000_000)
    eventually(query, 4)
    time.sleep(0.3)
    assert set(seen) <= {1, 2, 3, 4}


def test_the_knowledge_base_is_a_store_of_pyoxigraph(store: Any) -> None:
    ann, name, people = (ox.NamedNode(E + each) for each in ("ann", "name", "people"))
    quads = [ox.Quad(ann, name, ox.Literal("Ann")), ox.Quad(ann, name, ox.Literal("A", language="en"), people)]
    store.extend(quads)
    store.update(f"INSERT DATA {{ <{E}bob> <{E}name> 'Bob' }}")
    store.load(f"<{E}cy> <{E}name> 'Cy' .".encode(), ox.RdfFormat.TURTLE, to_graph=people)
    assert len(store) == 4 and quads[0] in store and ox.Quad(ann, name, ann) not in store
    assert set(store.quads_for_pattern(ann, None, None)) == set(quads)
    assert set(store.quads_for_pattern(None, None, None, ox.DefaultGraph())) == {
        quads[0],
        ox.Quad(ox.NamedNode(E + "bob"), name, ox.Literal("Bob")),
    }
    assert set(store.quads_for_pattern(ann, None, None, people)) == {quads[1]}
    assert [row["n"].value for row in store.query("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }")] == ["2"]
    assert bool(store.query("ASK { ?s ?p 'Bob' }")) and not bool(store.query("ASK { ?s ?p 'Dan' }"))
    assert [t.object for t in store.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o = 'Ann') }")] == [
        ox.Literal("Ann")
    ]
    assert list(store.named_graphs()) == [people] and store.contains_named_graph(people)
    store.remove(quads[0])
    store.clear_graph(people)
    assert len(store) == 1 == len(list(store))
    assert b"Bob" in store.dump(format=ox.RdfFormat.N_QUADS)
    store.add(quads[0])
    store.clear()
    assert len(store) == 0
    for ask, text in ((store.query, "SELECT nothing"), (store.update, "INSERT nothing")):
        with pytest.raises(oxiseq.OxiseqError, match=r"column 8"):
            ask(text)
    with pytest.raises(AttributeError):
        store.nothing  # noqa: B018


def test_queries_are_enriched_from_the_knowledge_base(store: Any) -> None:
    store.update(f"INSERT DATA {{ GRAPH <{E}k> {{ <{E}x> <{E}name> 'Ex' }} }}")
    text = f"""PREFIX : <{E}> SELECT ?a ?name FROM STREAM S <{S}>
        WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?a GRAPH :k {{ ?x :name ?name }} }} }}"""
    query = store.register(text)
    pushed(store, range(1, 2))
    store.advance(2_000_000)
    assert next(query.poll("30s"))["name"] == ox.Literal("Ex")


def test_names_are_taken_once(store: Any) -> None:
    query = store.register(PAIRS, name="pairs")
    assert store.find("pairs").query.text == PAIRS and [each.name for each in store.queries] == ["pairs"]
    with pytest.raises(ConflictError, match="pairs"):
        store.register(QUERIES["SPAseq, ASK"][1], name="pairs")
    with pytest.raises(UnknownError):
        store.find("nobody")
    with pytest.raises(oxiseq.OxiseqError):
        store.register(PAIRS, name="")
    with pytest.raises(oxiseq.QueryError) as told:
        store.register(PAIRS.replace("SEQ(A; B)", "SEQ(A; C)"))
    assert told.value.line == 1 or told.value.line is not None
    query.close()


def test_one_takes_the_place_of_another_if_that_is_said(store: Any) -> None:
    store.register(PAIRS, name="pairs")
    other = QUERIES["SPAseq, ASK"][1]
    with pytest.raises(oxiseq.QueryError):
        store.register(PAIRS.replace("SEQ(A; B)", "SEQ(A; C)"), name="pairs", replace=True)
    assert store.find("pairs").query.text == PAIRS
    with store.register(other, name="pairs", replace=True) as query:
        assert [each.query.text for each in store.queries] == [other] == [query.query.text]
        assert (query.language, query.status["text"], query.sinks) == ("spaseq", other, ())


def test_all_three_are_one_class_each(store: Any) -> None:
    query, standing = store.register(PAIRS), store.register("SELECT * { ?s ?p ?o }", language="sparql")
    kinds = (oxiseq.Store, oxiseq.ContinuousQuery, oxiseq.StandingQuery, oxiseq.Stream)
    assert tuple(map(type, (store, query, standing, store.stream(S)))) == kinds
    assert (store.find(query.name).name, store.find(standing.name).text) == (query.name, standing.text)
    before = standing.snapshot().number
    store.update(f"INSERT DATA {{ <{E}a> <{E}b> 1 }}")
    standing.catch_up()
    assert (standing.number, standing.first, standing.cursor) == (before + 1, before, before)
    assert "SELECT" in str(standing.explain()) and str(query.explain()) == str(query.query.explain())
    assert standing.findings == () and "1" in standing._repr_html_()
    pushed(store, range(1, 4))
    store.advance(9_000_000)
    eventually(query, 2)
    view = query.live()
    assert "3 events, 0 late, 2 matches" in view.html()
    view.stop()
    assert query.name in store._repr_html_() and PAIRS.split()[0] in query._repr_html_()
    query.delete()
    assert query.closed and store.queries == ()


@pytest.mark.parametrize("kind", KINDS)
def test_what_needs_a_journal_is_told_apart(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        query = store.register(PAIRS)
        if kind != "memory":
            query.pause()
            assert query.status["state"] == "paused"
            query.resume()
            return
        for call in (query.pause, query.resume, lambda: query.sink("s", kind="webhook", url="http://e")):
            with pytest.raises(oxiseq.OxiseqError, match="a store in a folder or at a server"):
                call()


def test_arguments_that_are_none(store: Any) -> None:
    query = store.register(PAIRS, name="pairs")
    wrong: list[tuple[Any, str]] = [
        (lambda: query.matches(limit=-1), "limit is a whole number, 0 or more"),
        (lambda: query.poll(timeout=1), "a duration has a unit"),
        (lambda: store.register(PAIRS, name=""), "name"),
        (lambda: store.stream(S).retain(-1), "events is a whole number"),
        (lambda: store.register(PAIRS, colour="red"), "there is no option 'colour'"),
    ]
    for call, message in wrong:
        with pytest.raises(oxiseq.OxiseqError, match=message):
            call()


@pytest.mark.parametrize("time_", [1, datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1)])
def test_times_as_elsewhere(store: Any, time_: Any) -> None:
    one = f"PREFIX : <{E}> SELECT ?a FROM STREAM S <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?a }} }}"
    query = store.register(one)
    store.stream(S).push([ox.Triple(ox.NamedNode(E + "x"), ox.NamedNode(E + "p"), ox.Literal(1))], time_)
    later = time_ + 1 if isinstance(time_, int) else time_ + timedelta(seconds=1)
    store.stream(S).advance(later)
    (match,) = [next(query.poll("30s"))]
    expected = datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC) if time_ == 1 else datetime(2024, 5, 1, tzinfo=UTC)
    assert match.at == expected
    assert [stream.iri for stream in store.streams] == [S] and store.stream(S).events == 1


@pytest.mark.parametrize("graph", ["<x", "<http://e/a> <http://e/b> .", 3, None, [3]])
def test_what_is_no_graph_is_refused_and_nothing_is_stored(store: Any, graph: Any) -> None:
    stream = store.stream(S)
    with pytest.raises((oxiseq.OxiseqError, TypeError)):
        stream.push(graph, 1)
    with pytest.raises((oxiseq.OxiseqError, TypeError)):
        stream.extend([(1, GRAPH.format(1)), (2, graph)])
    assert stream.events == 0


def test_a_push_under_a_key_is_taken_once(store: Any) -> None:
    stream = store.stream(S)
    for _ in range(2):
        stream.push(GRAPH.format(1) + f" _:a <{E}q> _:b .", 1_000_000, key="one")
        stream.push(GRAPH.format(1), 1_000_000, key="two")
    for other, at in ((GRAPH.format(2), 1_000_000), (GRAPH.format(1), 2_000_000)):
        with pytest.raises(ConflictError, match="'two'"):
            stream.push(other, at, key="two")
    for key in ("", "\u00e4", "a\nb", " a ", "x" * 201, 5):
        with pytest.raises(oxiseq.OxiseqError, match="key"):
            stream.push(GRAPH.format(1), 1, key=key)
    assert stream.events == 2


def test_pushing_beside_other_tasks(store: Any) -> None:
    async def work() -> int:
        stream = store.stream(S)
        await stream.push_async(GRAPH.format(1), 1_000_000, key="one")
        return int(await stream.extend_async([(2_000_000, GRAPH.format(2)), (3_000_000, GRAPH.format(3))]))

    assert asyncio.run(work()) == 2 and store.stream(S).events == 3


@pytest.mark.parametrize("wrong", [1, 0.5, "soon", -1, float("nan"), "-5s"])
def test_a_bare_number_is_no_duration(store: Any, wrong: Any) -> None:
    query = store.register(PAIRS)
    with pytest.raises(oxiseq.OxiseqError, match="timeout"):
        list(query.poll(wrong))
    with pytest.raises(oxiseq.OxiseqError, match="lateness"):
        store.register(PAIRS, lateness=wrong)


def test_late_events_are_counted(store: Any) -> None:
    query = store.register(PAIRS)
    pushed(store, range(5, 7))
    store.advance(7_000_000)
    pushed(store, range(1, 2))
    end = time.monotonic() + 30
    while query.late_count == 0 and time.monotonic() < end:
        time.sleep(0.05)
    assert query.late_count == 1
    (late,) = query.drain_late_events()
    assert (late.stream, late.time_us, len(late.graph)) == (S, 1_000_000, 2)
    assert query.drain_late_events() == []


@pytest.mark.filterwarnings("ignore")
def test_events_that_a_language_cannot_take_are_counted_and_named(store: Any) -> None:
    language, text = QUERIES["CEQL"]
    query = store.register(text, language=language, stream_names={"S": S})
    store.stream(S).push(f"<{E}x> a <{E}T> . <{E}y> a <{E}T> .", 1_000_000)
    store.advance(2_000_000)
    end = time.monotonic() + 30
    while query.ignored_count == 0 and time.monotonic() < end:
        time.sleep(0.05)
    assert (query.ignored_count, len(query.ignored_events)) == (1, 1)


def test_a_timeout_is_kept_and_what_is_there_is_handed_out(store: Any) -> None:
    query = store.register(PAIRS)
    pushed(store, range(1, 60))
    store.advance(900_000_000)
    eventually(query, 58)
    assert [match.id for match in query.poll("0s")] == list(range(1, 59))
    query.cursor = 0
    slow = query.poll("200ms")
    first = next(slow).id
    time.sleep(0.4)
    assert [first, *(match.id for match in slow)] == list(range(1, 59))
    query.cursor = 57
    begun = time.monotonic()
    timer = threading.Timer(2.4, lambda: (pushed(store, range(1000, 1002)), store.advance(2_000_000_000)))
    timer.start()
    found = [match.id for match in query.poll("3s")]
    took = time.monotonic() - begun
    timer.join()
    assert found[0] == 58 and took < 4.5


def test_a_line_s_end_inside_of_a_value(store: Any) -> None:
    query = store.register(f"""PREFIX : <{E}> SELECT ?a FROM STREAM S <{S}>
        WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :p ?a }} }}""")
    ends = "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg\u001eh\ri\nj\tk"
    store.stream(S).push([ox.Triple(ox.NamedNode(E + "x"), ox.NamedNode(E + "p"), ox.Literal(ends))], 1)
    store.advance(5)
    eventually(query, 1)
    assert [match["a"].value for match in query.matches()] == [ends]
    assert [match["a"].value for match in query.poll("1s")] == [ends]


def test_terms_are_told_as_they_were_given(store: Any) -> None:
    query = store.register(f"PREFIX : <{E}> SELECT ?a FROM STREAM S <{S}> {{ ?x :p ?a }}", "epsparql")
    inside = ox.Triple(ox.NamedNode(E + "\u00e4"), ox.NamedNode(E + "p"), ox.Literal('"\\\n', language="de"))
    terms = [
        ox.Literal("x", language="ar", direction=ox.BaseDirection.RTL),
        ox.Literal("x", language="ar"),
        inside,
        ox.Triple(inside.subject, inside.predicate, inside),
        ox.Literal(""),
        ox.Literal("q", datatype=ox.NamedNode(E)),
        ox.Literal("x", language="en", direction=ox.BaseDirection.LTR),
    ]
    for n, term in enumerate(terms, 1):
        store.stream(S).push([ox.Triple(ox.NamedNode(E + "x"), ox.NamedNode(E + "p"), term)], n)
    store.advance(100)
    assert [match["a"] for match in eventually(query, len(terms))] == terms
    assert [match["a"] for match in query.poll("0s")] == terms


def test_an_epsparql_query_that_names_no_stream(store: Any) -> None:
    store.stream(S)
    text = f"PREFIX : <{E}> SELECT ?a ?b {{ {{ ?x :p ?a }} SEQ {{ ?x :p ?b }} }}"
    query = store.register(text, "epsparql", rules=[f"PREFIX : <{E}> CONSTRUCT {{ ?x :r ?a }} {{ ?x :p ?a }}"])
    pushed(store, range(1, 3))
    store.advance(100_000_000)
    assert [(match["a"].value, match["b"].value) for match in eventually(query, 1)] == [("1", "2")]
    assert query.reads == (S,) and [match.id for match in query.poll("0s")] == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_why_is_told_the_same_everywhere(kind: str, tmp_path: Path) -> None:
    events = [(1_000_000 * t, GRAPH.format(t)) for t in range(1, 5)]
    asked: dict[str, Any] = {"since": 1_000_000, "until": 5_000_000, "limit": 2}
    with opened(kind, tmp_path) as store:
        store.stream(S).retain(100)
        queries = {
            name: store.register(text, language=language, **_named(language))
            for name, (language, text) in QUERIES.items()
        }
        store.stream(S).extend(events)
        for name, (language, text) in QUERIES.items():
            eventually_seen(queries[name], len(events))
            told = queries[name].why(**asked)
            expected = oxiseq.Query(text, language).why({S: events}, **asked, **_named(language))
            assert told.to_json() == expected.to_json(), name
            assert str(told) == str(expected)
            assert [(type(m), m.time, m.bindings, len(m.events)) for m in told.matches] == [
                (type(m), m.time, m.bindings, len(m.events)) for m in expected.matches
            ]
            assert told.to_prov().count("wasDerivedFrom") == expected.to_prov().count("wasDerivedFrom")


def _named(language: str) -> dict[str, Any]:
    return {"stream_names": {"S": S}} if language == "ceql" else {}


def eventually_seen(query: Any, count: int) -> None:
    """So many events have come."""
    end = time.monotonic() + 60
    while query.events < count and time.monotonic() < end:
        time.sleep(0.02)


def test_completion_offers_what_is_there_and_nothing_that_only_oxiseq_uses(store: Any) -> None:
    query, standing = store.register(PAIRS), store.register("SELECT * { ?s ?p ?o }", language="sparql")
    for thing in (store, query, standing, store.stream(S)):
        names = [name for name in dir(thing) if not name.startswith("_")]
        assert len(names) == len(set(names)) and all(hasattr(thing, name) for name in names)
        assert not {"lock", "kb", "receive", "settle", "told_of_loss", "lose", "push_batch", "listened"} & set(names)
    assert {"query", "update", "load", "quads_for_pattern", "register", "stream"} <= set(dir(store))
    assert {"poll", "matches", "subscribe", "why", "match_count"} <= set(dir(query))
    assert {"snapshot", "changes", "poll", "on_change"} <= set(dir(standing))
    assert {"push", "extend", "retain"} <= set(dir(store.stream(S)))
