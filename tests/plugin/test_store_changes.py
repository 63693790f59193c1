"""What a store tells of its changes: before + change == after, whatever the change is, and done as pyoxigraph does it."""

from __future__ import annotations

import gc
import io
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

import oxiseq
from oxiseq.changes import Anew, Change, Changed, limits, methods, updating
from oxiseq.engine.errors import OxiseqError

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}> "
G, H = ox.NamedNode(E + "g"), ox.NamedNode(E + "h")
FAILURES = (SyntaxError, RuntimeError, OSError, ValueError, TypeError)


def iri(name: str) -> ox.NamedNode:
    return ox.NamedNode(E + name)


def quad(s: str, p: str, o: str | int, graph: Any = None) -> ox.Quad:
    of = ox.Literal(o) if isinstance(o, int) else iri(o)
    return ox.Quad(iri(s), iri(p), of, graph or ox.DefaultGraph())


class Watched:
    """A store whose changes are compared with what it holds before and after each of them."""

    def __init__(self, path: str | None = None) -> None:
        self.store = oxiseq.Store(path)
        self.told: list[Changed] = []
        self.listening = self.store.listen(self.told.append)

    def content(self) -> tuple[set[ox.Quad], set[Any]]:
        return set(self.store), set(self.store.named_graphs())

    def make(self, change: Callable[[Any], object]) -> Change:
        """The change that is told; nothing is told where nothing has changed, or it has failed."""
        before = self.content()
        self.told.clear()
        try:
            change(self.store)
        except FAILURES as error:
            note(f"{type(error).__name__}: {error}")
            assert before == self.content()
            assert self.told == []
            raise
        after = self.content()
        if before == after:
            assert self.told == []
            return Change()
        (told,) = self.told
        assert isinstance(told, Change)
        for was, now, gone, come in (
            (before[0], after[0], told.removed, told.added), (before[1], after[1], told.dropped, told.created)
        ):  # fmt: skip
            assert set(gone) == was - now
            assert set(come) == now - was
            assert len(set(gone)) == len(gone) and len(set(come)) == len(come)
        return told


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No update is told by comparing the whole store; one that is no SPARQL changes nothing."""

    def compared(store: ox.Store, update: str, **options: Any) -> Changed:
        store.update(update, **options)
        raise AssertionError(f"not followed: {update}")

    monkeypatch.setattr(updating, "compared", compared)


# --- updates and methods, drawn --------------------------------------------------------------------------

SUBJECTS = [":a", ":b", "_:x", "[]"]
OBJECTS = [":a", ":b", "1", "01", "1.0", "'x'@EN", "true", "_:x", "_:y", "(1 :a)", "<<( :a :p 1 )>>"]
VARIABLES = ["?x", "?y", "?z"]
PATTERNS = [
    "?x :p ?y", "?x ?z ?y", "GRAPH :g { ?x ?z ?y }", "GRAPH ?z { ?x :p ?y }", "?x :p ?y . ?y :q ?z",
    "?x :p ?y FILTER NOT EXISTS { ?x :q ?y }", "?x :p ?y OPTIONAL { ?y :q ?z }", "{ ?x :p ?y } UNION { ?x :q ?z }",
    "?x :p ?y BIND(?y + 1.50 AS ?z)", "?x :p|^:q ?y FILTER(?y<2||?y>:a)", "SELECT ?x (COUNT(*) AS ?y) { ?x ?p ?o } GROUP BY ?x",
    "VALUES (?x ?y) { (:a UNDEF) (:b 01) }", "FILTER(false)", "", "BIND('}' AS ?x) # }", "?x :p ?y . BIND(BNODE() AS ?z)",
    "BIND(UUID() AS ?x) BIND(RAND() AS ?y) BIND(:g AS ?z)",
]  # fmt: skip
GRAPHS = [":g", ":h", "DEFAULT"]


def triples(subjects: list[str], predicates: list[str], objects: list[str], most: int = 3) -> st.SearchStrategy[str]:
    one = st.tuples(*map(st.sampled_from, (subjects, predicates, objects))).map(" ".join)
    return st.lists(one, max_size=most).map(" . ".join)


@st.composite
def blocks(draw: st.DrawFn, subjects: list[str], predicates: list[str], objects: list[str], graphs: list[str]) -> str:
    parts = [draw(triples(subjects, predicates, objects))]
    for graph in draw(st.lists(st.sampled_from(graphs), max_size=2)):
        parts.append(f"GRAPH {graph} {{ {draw(triples(subjects, predicates, objects, 2))} }}")
    return " { " + " ".join(parts) + " } "


GROUND = blocks([":a", ":b"], [":p", ":q"], [":a", ":b", "1", "01", "1.0", "'x'@en", "<<( :a :p 01 )>>"], [":g", ":h"])
DATA = blocks(SUBJECTS, [":p", ":q"], OBJECTS, [":g", ":h"])
DELETED = blocks([":a", *VARIABLES], [":p", ":q", "?z"], [":a", "1", *VARIABLES, "<<( ?x :p ?y )>>"], [":g", "?z"])
INSERTED = blocks(
    [*SUBJECTS, *VARIABLES], [":p", ":q", "?z"], [*OBJECTS, *VARIABLES, "<<( ?x :p ?y )>>"], [":g", ":h", "?z"]
)  # fmt: skip
SILENT = st.sampled_from(["", "SILENT "])


@st.composite
def modifications(draw: st.DrawFn) -> str:
    delete, insert = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    text = draw(st.sampled_from(["", "", "WITH :g ", "WITH :h "]))
    text += f"DELETE{draw(DELETED)}" if delete else ""
    text += f"INSERT{draw(INSERTED)}" if insert else ""
    text += draw(st.sampled_from(["", "", "USING :g ", "USING :g USING NAMED :h "]))
    return f"{text}WHERE {{ {draw(st.sampled_from(PATTERNS))}\n}}"


OPERATIONS = st.one_of(
    DATA.map("INSERT DATA{}".format),
    DATA.map("INSERT DATA{}".format),
    GROUND.map("DELETE DATA{}".format),
    DELETED.map("DELETE WHERE{}".format),
    modifications(),
    modifications(),
    st.tuples(st.sampled_from(["CLEAR ", "DROP "]), SILENT, st.sampled_from(["GRAPH :g", "GRAPH :h", "DEFAULT", "NAMED", "ALL"])).map("".join),
    st.tuples(SILENT, st.sampled_from([":g", ":h"])).map("CREATE {0[0]}GRAPH {0[1]}".format),
    st.tuples(st.sampled_from(["ADD", "MOVE", "COPY"]), SILENT, st.sampled_from(GRAPHS), st.sampled_from(GRAPHS)).map("{0[0]} {0[1]}{0[2]} TO {0[3]}".format),
)  # fmt: skip


@st.composite
def updates(draw: st.DrawFn) -> str:
    """Names of blank nodes are an operation's own; pyoxigraph wants that."""
    found = draw(st.lists(OPERATIONS, min_size=1, max_size=3))
    return PREFIX + " ;\n".join(each.replace("_:", f"_:o{n}") for n, each in enumerate(found))


QUADS = st.builds(
    ox.Quad,
    st.sampled_from([iri("a"), iri("b"), ox.BlankNode("x")]),
    st.sampled_from([iri("p"), iri("q")]),
    st.sampled_from([iri("a"), ox.BlankNode("y"), ox.Literal("01", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")), ox.Literal(1), ox.Literal("x", language="EN")]),
    st.sampled_from([ox.DefaultGraph(), G, H, ox.BlankNode("graph")]),
)  # fmt: skip
NAMES = st.sampled_from([G, H, ox.DefaultGraph(), ox.BlankNode("graph")])
TEXTS = GROUND.map(lambda block: f"@prefix : <{E}> . {block.strip()[1:-1].replace('<<(', '<<(')}")


def calls(method: str, *arguments: Any, **named: Any) -> Callable[[Any], object]:
    return lambda store: getattr(store, method)(*arguments, **named)


CHANGES = st.one_of(
    st.builds(lambda text: calls("update", text), updates()),
    st.builds(lambda quad: calls("add", quad), QUADS),
    st.builds(lambda quad: calls("remove", quad), QUADS),
    st.builds(lambda name, quads: calls(name, quads), st.sampled_from(["extend", "bulk_extend"]), st.lists(QUADS, max_size=4)),
    st.builds(lambda name, graph: calls(name, graph), st.sampled_from(["clear_graph", "remove_graph", "add_graph"]), NAMES),
    st.builds(lambda: calls("clear")),
    st.builds(
        lambda name, quads, graph: calls(name, "".join(f"{q} .\n" for q in quads).encode(), ox.RdfFormat.N_QUADS, to_graph=graph),
        st.sampled_from(["load", "bulk_load"]), st.lists(QUADS, max_size=4), st.sampled_from([None, G]),
    ),
)  # fmt: skip


@pytest.mark.usefixtures("followed")
@drawn(200)
@given(st.lists(CHANGES, max_size=8))
def test_before_and_change_make_after(changes: list[Callable[[Any], object]]) -> None:
    watched = Watched()
    for change in changes:
        with suppress(*FAILURES):
            watched.make(change)


def outcome(change: Callable[[], object]) -> str:
    try:
        change()
    except FAILURES as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def form(store: Any) -> object:
    """The content, whatever the names of its blank nodes are."""
    found = ox.Dataset(store)
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return {*found}, sum(1 for _ in store.named_graphs()), {each for each in store.named_graphs() if isinstance(each, ox.NamedNode)}


@pytest.mark.usefixtures("followed")
@drawn(200)
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
        assert form(watched.store) == form(alone)
