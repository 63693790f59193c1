"""What a store tells of its changes: before + change == after, of every change, done as pyoxigraph does it."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from profiles import drawn
from test_store import READS
from update_strategies import CHANGES, PREFIX, QUADS, E, G, H, calls, updates

import oxiseq
from oxiseq import changes
from oxiseq.changes import Anew, Change, Changed, limits, methods
from oxiseq.sparql import Request, SparqlEndpoint

FAILURES = (SyntaxError, RuntimeError, OSError, ValueError, TypeError)
INSERT = PREFIX + "INSERT DATA { :a :p 1 }"


def quad(s: str, p: str, o: str | int, graph: Any = None) -> ox.Quad:
    of = ox.Literal(o) if isinstance(o, int) else ox.NamedNode(E + o)
    return ox.Quad(ox.NamedNode(E + s), ox.NamedNode(E + p), of, graph)


class Watched:
    """A store whose changes are compared with what it holds before and after each of them."""

    def __init__(self, path: Path | None = None) -> None:
        self.store = oxiseq.Store(None if path is None else str(path))
        self.told: list[Changed] = []
        self.store.listen(self.told.append)

    def make(self, change: Callable[[Any], object]) -> Change:
        """What is told of a change: nothing where nothing has changed, or it has failed."""
        before = self.content()
        self.told.clear()
        try:
            change(self.store)
        except FAILURES:
            assert before == self.content()
            assert self.told == []
            raise
        after = self.content()
        if before == after:
            assert self.told == []
            return Change()
        (told,) = self.told
        assert isinstance(told, Change)
        assert_difference(before[0], after[0], told.removed, told.added)
        assert_difference(before[1], after[1], told.dropped, told.created)
        return told

    def content(self) -> tuple[set[Any], set[Any]]:
        """Quads, named graphs."""
        return set(self.store), set(self.store.named_graphs())


def assert_difference(before: set[Any], after: set[Any], gone: tuple[Any, ...], come: tuple[Any, ...]) -> None:
    assert set(gone) == before - after
    assert set(come) == after - before
    assert len(set(gone)) == len(gone)
    assert len(set(come)) == len(come)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No update is told by comparing the whole store; what is no SPARQL may try, for it changes nothing."""

    def compared(store: ox.Store, update: str, **options: Any) -> Changed:
        store.update(update, **options)
        raise AssertionError(f"not followed: {update}")

    monkeypatch.setattr(methods, "compared", compared)


# --- exactly what changes, as pyoxigraph changes it ---------------------------------------------------------


@pytest.mark.usefixtures("followed")
@drawn(100)
@given(st.lists(CHANGES, max_size=8))
def test_before_and_change_make_after(made: list[Callable[[Any], object]]) -> None:
    watched = Watched()
    for change in made:
        with suppress(*FAILURES):
            watched.make(change)


@pytest.mark.usefixtures("followed")
@drawn(100)
@given(st.lists(QUADS, max_size=8), updates())
def test_an_update_does_what_it_does_where_nobody_listens(quads: list[ox.Quad], update: str) -> None:
    note(f"{quads} {update}")
    watched, alone = Watched(), ox.Store()
    watched.store.extend(quads)
    alone.extend(quads)
    assert outcome(lambda: watched.make(calls("update", update))) == outcome(lambda: alone.update(update))
    if "UUID" in update:
        assert len(watched.store) == len(alone)
    else:
        assert without_names(watched.store) == without_names(alone)


def outcome(change: Callable[[], object]) -> str:
    try:
        change()
    except SyntaxError:  # ours says more of it than the store does
        return "SyntaxError"
    except FAILURES as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def without_names(store: Any) -> object:
    """The content, whatever the names of its blank nodes are."""
    found = ox.Dataset(store)
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    graphs = list(store.named_graphs())
    return set(found), len(graphs), {graph for graph in graphs if isinstance(graph, ox.NamedNode)}


@pytest.mark.usefixtures("followed")
@drawn(5)
@given(st.lists(CHANGES, max_size=8))
def test_on_disk_too(tmp_path_factory: pytest.TempPathFactory, made: list[Callable[[Any], object]]) -> None:
    watched = Watched(tmp_path_factory.mktemp("kb") / "store")
    for change in made:
        with suppress(*FAILURES):
            watched.make(change)


def test_each_operation_sees_what_the_ones_before_it_did(watched: Watched) -> None:
    update = (
        PREFIX
        + """INSERT DATA { :a :p 1 } ; INSERT { ?s :q ?o } WHERE { ?s :p ?o } ;
        DELETE WHERE { ?s :p ?o } ; COPY DEFAULT TO :g ; DELETE DATA { :a :q 1 }"""
    )
    told = watched.make(calls("update", update))
    assert (told.removed, told.added, told.created) == ((), (quad("a", "q", 1, G),), (G,))


def test_what_a_function_answers_anew_each_time_is_told_as_it_is_stored(watched: Watched) -> None:
    update = PREFIX + "INSERT { ?a :p ?b , [] } WHERE { BIND(UUID() AS ?a) BIND(RAND() AS ?b) }"
    told = watched.make(calls("update", update))
    assert set(told.added) == set(watched.store)
    assert len(told.added) == 2


LEXICAL = [
    ("01", "integer"),
    ("1.50", "decimal"),
    ("-0", "decimal"),
    ("1e0", "double"),
    ("+INF", "float"),
    ("1", "boolean"),
    ("+5", "int"),
    ("007", "byte"),
    ("2020-01-01T00:00:00.000+00:00", "dateTime"),
    ("24:00:00", "time"),
    ("P1Y12M", "duration"),
    ("PT60S", "dayTimeDuration"),
    ("nonsense", "integer"),
]


def test_terms_are_told_as_the_store_has_them(watched: Watched) -> None:
    rows = " ".join(f"('{text}' xsd:{of})" for text, of in LEXICAL)
    update = f"""PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {PREFIX}
        INSERT {{ :a :p ?x , <<( :a :p ?x )>> , ?y }}
        WHERE {{ VALUES (?text ?of) {{ {rows} }} BIND(STRDT(?text, ?of) AS ?x) BIND(STRLANG(?text, 'EN-gb') AS ?y) }}"""
    told = watched.make(calls("update", update))
    assert len(told.added) == 3 * len(LEXICAL)


OF_GRAPHS = [
    "INSERT { GRAPH ?g { :a :q 1 } } WHERE { BIND(:new AS ?g) } ; DROP NAMED",
    "INSERT { GRAPH ?g { :a :q 1 } } WHERE { BIND(:new AS ?g) } ; CLEAR ALL",
    "DELETE WHERE { ?s :p ?o GRAPH :none {} }",
    "DELETE { ?s :p ?o } WHERE { ?s :p ?o GRAPH :none {} }",
    "COPY DEFAULT TO :g",
    "COPY :none TO :g",
    "MOVE DEFAULT TO :g",
    "MOVE GRAPH :g TO :none",
    "MOVE SILENT :none TO :g",
    "ADD DEFAULT TO :g",
    "ADD :g TO GRAPH :g",
    "CREATE GRAPH :new ; DROP GRAPH :new",
    "INSERT { ?s :q 1 } USING :g WHERE { ?s :p ?o }",
    "WITH :g DELETE { ?s :p ?o } INSERT { ?s :q _:x } USING NAMED :g WHERE { GRAPH ?g { ?s :p ?o } }",
    "WITH :g DELETE { ?s :p ?o } WHERE { ?s :p ?o }",
]


@pytest.mark.usefixtures("followed")
@pytest.mark.parametrize("number", range(len(OF_GRAPHS)))
def test_operations_of_graphs_do_what_they_do_in_pyoxigraph(watched: Watched, number: int) -> None:
    alone = ox.Store()
    for store in (watched.store, alone):
        store.extend([quad("a", "p", 1), quad("b", "p", "a", G)])
    update = PREFIX + OF_GRAPHS[number]
    watched.make(calls("update", update))
    alone.update(update)
    assert without_names(watched.store) == without_names(alone)


def test_bases_prefixes_and_functions_of_the_caller_hold(watched: Watched) -> None:
    options: dict[str, Any] = {"base_iri": E, "prefixes": {"e": E}}
    functions = {ox.NamedNode(E + "one"): lambda _: ox.Literal(1)}
    update = "PREFIX f: <x/> BASE <y/> INSERT DATA { <a> e:p f:b } ; COPY DEFAULT TO <g>"
    told = watched.make(calls("update", update, **options))
    assert set(told.added) == {quad("y/a", "p", "x/b", graph) for graph in (None, ox.NamedNode(E + "y/g"))}
    update = "INSERT { ?s e:q ?n } WHERE { ?s e:p ?o BIND(e:one(?o) AS ?n) }"
    told = watched.make(calls("update", update, custom_functions=functions, **options))
    assert told.added == (quad("y/a", "q", 1),)


DOUBTFUL = [
    "DELETE { ?x :p ?y } WHERE { ?x :p ?y FILTER(?y<?x#>} ; DROP ALL\n) }",
    "DELETE { ?x :p ?y } WHERE { ?x :p ?y FILTER(?y<?x#>{\n||?y>0) } ; INSERT DATA { :z :p 1 }",
    "DELETE { ?x :p ?y } WHERE { ?x :p ?y FILTER(?y<?x#>{\n||?y>0) }",
    "DELETE { ?x :p ?y } WHERE { ?x :p ?y FILTER(?y<?x||?y>0) }",
    "INSERT { ?x :q '?y' , '''} ; # {''' } # }\nWHERE { ?x :p ?y # }\n}",
    "INSERT DATA { :a :c '}' } ; # CLEAR ALL ;\n INSERT DATA { :a :c\\,\\; 2 }",
    "INSERT { <http://example.org/\\u0041> :q ?y } WHERE { ?x :p ?y }",
    "INSERT DATA { <http://example.org/\\U0000007D> :q 1 } ; CREATE GRAPH <http://example.org/\\u0041>",
    "INSERT DATA { _:a :q 1 } ; INSERT DATA { _:a :q 2 }",
    "INSERT { ?x\u00b7 :q ?y } WHERE { ?x\u00b7 :p ?y }",
    "DELETE DATA { _:a :p 1 }",
    "VERSION '1.2' INSERT DATA { :a :q '''a''' } ;",
]
"""Where tokens may be led astray; some are no SPARQL."""


@pytest.mark.parametrize("number", range(len(DOUBTFUL)))
def test_texts_that_lead_tokens_astray_change_what_they_do(watched: Watched, number: int) -> None:
    alone = ox.Store()
    for store in (watched.store, alone):
        store.extend([quad("a", "p", 1), quad("b", "p", "a", G)])
    update = PREFIX + DOUBTFUL[number]
    assert outcome(lambda: watched.make(calls("update", update))) == outcome(lambda: alone.update(update))
    assert without_names(watched.store) == without_names(alone)


class Documents(BaseHTTPRequestHandler):
    """Serves two triples everywhere, but none at /empty, and nothing at /none."""

    def do_GET(self) -> None:
        body = b"" if self.path == "/empty" else f"<{E}a> <{E}p> 01 , [] .".encode()
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("content-type", "text/turtle")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Documents) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("followed")
def test_what_is_loaded_is_told(watched: Watched, address: str) -> None:
    update = PREFIX + f"CREATE GRAPH :h ; LOAD SILENT <{address}/none> ; LOAD <{address}/there> INTO GRAPH :g"
    told = watched.make(calls("update", update))
    assert set(told.created) == {G, H}
    assert quad("a", "p", 1, G) in told.added
    assert len(told.added) == 2
    alone = ox.Store()
    alone.update(f"LOAD <{address}/empty> INTO GRAPH <{E}e>")
    told = watched.make(calls("update", f"LOAD <{address}/empty> INTO GRAPH <{E}e>"))
    assert set(told.created) == set(alone.named_graphs())  # not every pyoxigraph makes a graph of nothing
    assert len(watched.make(calls("update", f"LOAD <{address}/there>")).added) == 2


def test_what_the_server_changes_is_told(watched: Watched) -> None:
    to = SparqlEndpoint(watched.store)

    def send(method: str, path: str, query: str, media_type: str = "", body: bytes = b"") -> Change:
        def change(_: object) -> None:
            answer = to.answer(Request(method, path, query, (("content-type", media_type),), body))
            assert answer.status in (201, 204)

        return watched.make(change)

    graph, turtle = f"graph={E}g", "text/turtle"
    assert send("PUT", "/store", graph, turtle, b"<a> <b> 1 , [] .").created == (G,)
    told = send("PUT", "/store", graph, turtle, b"<a> <b> [] .")
    assert (len(told.removed), len(told.added), told.created) == (2, 1, ())
    assert len(send("POST", "/store", graph, turtle, b"<a> <b> 1 , 2 .").added) == 2
    assert not send("POST", "/store", graph, turtle, b"<a> <b> 2 .")
    assert send("POST", "/store", f"graph={E}h", turtle).created == (H,)
    update = b"DELETE WHERE { GRAPH ?g { ?s ?p 2 } } ; INSERT DATA { <a> <b> 3 }"
    told = send("POST", "/update", "", "application/sparql-update", update)
    assert (len(told.removed), len(told.added)) == (1, 1)
    assert send("DELETE", "/store", graph).dropped == (G,)
    assert len(send("DELETE", "/store", "").removed) == 1


# --- nothing is told of what has not changed ------------------------------------------------------------------

FAILING: dict[str, Callable[[Any], object]] = {
    "syntax": calls("update", PREFIX + "INSERT DATA { :b :p 1 } ; NONSENSE"),
    "a graph that is not there": calls("update", PREFIX + "DELETE WHERE { ?s ?p ?o } ; DROP GRAPH :g"),
    "a graph that is not there to be moved": calls("update", PREFIX + "MOVE :none TO DEFAULT"),
    "a document that is not there": calls("update", PREFIX + "CLEAR ALL ; LOAD <http://127.0.0.1:9/none>"),
    "malformed RDF": calls("load", b"<http://e/a> <http://e/b> 1 . nonsense", ox.RdfFormat.TURTLE),
    "malformed RDF in bulk": calls("bulk_load", io.BytesIO(b"nonsense"), ox.RdfFormat.TURTLE),
    "a file that is not there": calls("load", path="/nowhere/at/all.ttl"),
    "no quad": calls("add", 5),
    "no quad among quads": calls("extend", [quad("b", "p", 1), 5]),
    "no option": calls("update", "CLEAR ALL", nonsense=True),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_change_that_fails_tells_nothing(watched: Watched, name: str) -> None:
    watched.store.add(quad("a", "p", 1))
    with pytest.raises(FAILURES):
        watched.make(FAILING[name])
    assert len(watched.store) == 1


@pytest.mark.parametrize("name", ["update", "extend", "clear"])
def test_a_store_for_reading_tells_nothing(tmp_path: Path, name: str) -> None:
    store = ox.Store(str(tmp_path))
    store.add(quad("a", "p", 1))
    del store
    store = oxiseq.Store(inner=ox.Store.read_only(str(tmp_path)))
    told: list[Changed] = []
    store.listen(told.append)
    given: dict[str, tuple[Any, ...]] = {"update": ("CLEAR ALL",), "extend": ([quad("b", "p", 1)],), "clear": ()}
    with pytest.raises((OSError, RuntimeError, ValueError)):
        getattr(store, name)(*given[name])
    assert told == []


def test_a_guard_that_refuses_tells_nothing(watched: Watched) -> None:
    def refuse() -> Any:
        raise oxiseq.OxiseqError("not now")

    watched.store.guard_changes(refuse)
    with pytest.raises(oxiseq.OxiseqError, match="not now"):
        watched.make(calls("update", INSERT))
    assert watched.told == []


def test_nothing_is_done_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    store = oxiseq.Store()
    listening = store.listen(lambda _: None)
    listening.close()
    monkeypatch.setattr("oxiseq.api.store.carried_out", None)
    store.update(INSERT)
    store.load(b"", ox.RdfFormat.TURTLE)
    assert len(store) == 1


# --- too much to be told ----------------------------------------------------------------------------------------

NQUADS = "".join(f'<{E}s{n}> <{E}p> "{n}" .\n' for n in range(10))
MANY: dict[str, Callable[[Any], object]] = {
    "add": calls("update", PREFIX + "INSERT DATA { :a :p 1 , 2 , 3 , 4 , 5 }"),
    "from a pattern": calls("update", PREFIX + "INSERT { GRAPH :g { ?s ?p ?o } } WHERE { ?s ?p ?o }"),
    "clear": calls("update", "CLEAR ALL"),
    "copy": calls("update", PREFIX + "COPY DEFAULT TO :g"),
    "method": calls("clear"),
    "graph": calls("remove_graph", ox.DefaultGraph()),
    "extend": calls("extend", (quad("x", "p", n) for n in range(9))),
    "bulk_extend": calls("bulk_extend", (quad("x", "p", n) for n in range(9))),
    "load": calls("load", NQUADS.encode(), ox.RdfFormat.N_QUADS),
    "bulk_load": calls("bulk_load", io.StringIO(NQUADS), ox.RdfFormat.N_QUADS),
}


@pytest.mark.parametrize("name", MANY)
def test_of_many_quads_it_is_told_to_ask_anew(watched: Watched, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    alone = ox.Store()
    for store in (watched.store, alone):
        store.extend([quad("y", "p", n) for n in range(6)])
    monkeypatch.setattr(limits, "MOST", 4)
    watched.told.clear()
    MANY[name](watched.store)
    assert [type(told) for told in watched.told] == [Anew]
    if "extend" not in name and "load" not in name:  # what they read cannot be read again
        MANY[name](alone)
        assert set(watched.store) == set(alone)
    else:
        assert len(watched.store) > 12


@pytest.mark.parametrize("content", [NQUADS.encode(), NQUADS], ids=["bytes", "text"])
@pytest.mark.parametrize("name", ["load", "bulk_load"])
@pytest.mark.parametrize("bound", [1, 400, 1 << 20])
def test_documents_of_any_size_are_loaded_whole(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: Any, name: str, bound: int
) -> None:
    (tmp_path / "some.nq").write_text(NQUADS)
    monkeypatch.setattr(limits, "MOST_BYTES", bound)
    file = io.BytesIO(content) if isinstance(content, bytes) else io.StringIO(content)
    for source, options in (
        (content, {"format": ox.RdfFormat.N_QUADS}),
        (file, {"format": ox.RdfFormat.N_QUADS}),
        (None, {"path": str(tmp_path / "some.nq")}),
    ):
        watched.told.clear()
        watched.store.clear()
        getattr(watched.store, name)(source, **options)
        assert len(watched.store) == 10
        told = watched.told[-1]
        assert isinstance(told, Anew) if bound < 1 << 20 else isinstance(told, Change) and len(told.added) == 10


def test_a_large_file_is_read_on_behind_its_beginning(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 1 << 18)
    lines = "".join(f'<{E}s{n}> <{E}p> "{n}" .\n' for n in range(10_000))
    for file in (io.StringIO(lines), io.BytesIO(lines.encode())):
        watched.store.clear()
        watched.store.bulk_load(file, ox.RdfFormat.N_QUADS)
        assert len(watched.store) == 10_000


def test_an_update_that_cannot_be_followed_over_a_large_store(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.store.extend([quad("y", "p", n) for n in range(6)])
    monkeypatch.setattr(limits, "MOST_COMPARED", 4)
    watched.told.clear()
    watched.store.update(PREFIX + "INSERT { <http://example.org/\\u0041> :q ?y } WHERE { ?x :p ?y }")
    assert [type(told) for told in watched.told] == [Anew]
    assert len(watched.store) == 12


def test_what_is_changed_behind_its_back_is_told_by_touch(watched: Watched) -> None:
    watched.store.inner.add(quad("a", "p", 1))
    assert watched.told == []
    watched.store.touch()
    assert [type(told) for told in watched.told] == [Anew]


# --- who is told, and when ----------------------------------------------------------------------------------------


def test_several_listen_each_for_its_time(watched: Watched) -> None:
    second: list[Changed] = []
    listening = watched.store.listen(second.append)
    watched.store.update(INSERT)
    listening.close()
    listening.close()
    watched.store.update("CLEAR ALL")
    assert (len(watched.told), len(second)) == (2, 1)


def test_an_error_stops_neither_the_change_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = oxiseq.Store()
    first: list[Changed] = []
    second: list[Changed] = []

    def fail_once(changed: Changed) -> None:
        first.append(changed)
        if len(first) == 1:
            raise ValueError("no")

    store.listen(fail_once)
    store.listen(second.append)
    with caplog.at_level(logging.ERROR, "oxiseq.changes"):
        store.update(INSERT)
    assert "a listener failed" in caplog.text
    for n in (2, 3):
        store.add(quad("a", "p", n))
    assert [type(changed) for changed in first] == [Change, Anew, Change]
    assert [type(changed) for changed in second] == [Change, Change, Change]
    assert len(store) == 3


def test_a_change_that_a_listener_makes_is_told_after_the_one_at_hand() -> None:
    store = oxiseq.Store()
    told: list[Changed] = []
    late: list[Changed] = []

    def answer(changed: Changed) -> None:
        if isinstance(changed, Change) and changed.added == (quad("a", "p", 1),):
            store.add(quad("a", "p", 2))
            store.listen(late.append)
            store.add(quad("a", "p", 3))

    store.listen(answer)
    store.listen(told.append)
    store.update(INSERT)
    assert [c.added for c in told if isinstance(c, Change)] == [(quad("a", "p", n),) for n in (1, 2, 3)]
    assert [c.added for c in late if isinstance(c, Change)] == [(quad("a", "p", 3),)]


def test_the_content_is_that_of_after_the_change_when_it_is_told(watched: Watched) -> None:
    seen: list[tuple[int, int]] = []
    watched.store.listen(lambda _: seen.append((len(watched.store), watched.store.kb.version)))
    before = watched.store.kb.version
    watched.store.update(INSERT)
    assert seen == [(1, before + 1)]


def test_changes_of_several_threads_are_told_one_after_the_other() -> None:
    store = oxiseq.Store()
    store.update(PREFIX + "INSERT DATA { :a :p 0 }")
    with store.lock:
        content = set(store)
        told: list[Changed] = []
        store.listen(told.append)

    def count(thread: int) -> None:
        for number in range(10):
            store.update(PREFIX + "DELETE { :a :p ?n } INSERT { :a :p ?m } WHERE { :a :p ?n BIND(?n + 1 AS ?m) }")
            store.update(PREFIX + f"INSERT DATA {{ GRAPH :g {{ _:x :q {thread} , {number} }} }}")
            store.remove(quad("a", "p", number))

    threads = [threading.Thread(target=count, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for change in told:
        assert isinstance(change, Change)
        assert content.issuperset(change.removed)
        assert content.isdisjoint(change.added)
        content = content.difference(change.removed).union(change.added)
    assert content == set(store)


def test_every_method_that_changes_the_store_is_told() -> None:
    assert {name for name in dir(ox.Store) if not name.startswith("_")} - READS == set(changes.METHODS)
