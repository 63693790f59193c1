"""Queries that stand over a store: a snapshot and all changes are what the store answers, after each of its changes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

import pyoxigraph as ox
from by_graph import by_graph
from hypothesis import HealthCheck, Phase, event, given, note, seed, settings
from hypothesis import strategies as st
from lowering_strategies import Drawing, E
from profiles import drawn
from pyoxigraph import NamedNode, Quad, QueryBoolean, QuerySolutions
from store_changes import CHANGES, FAILURES, PREFIX, SINGLE, Change

import oxiseq
from oxiseq.engine.standing import StoreTerms
from oxiseq.grammar.over_store import load_over_store
from oxiseq.grammar.windows.texts import render_rsp

Bag: TypeAlias = "Counter[Any]"
_DATASETS = ["", "", "", "FROM :g ", "FROM :g FROM :h FROM NAMED :h ", "FROM NAMED :g "]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Queries over the store alone, as deep as SPARQL goes."""
    drawing = Drawing(draw, "")
    part = drawing.group(draw(st.sampled_from([0, 1, 1, 2])))
    names = sorted(part.seen & {"x", "y", "z"})
    kind, tail = draw(st.integers(0, 7)), ""
    match kind:
        case 0:
            head = "ASK"
        case 1 | 2 if names:
            kept = sorted({drawing.one(*names) for _ in range(2)})
            head = f"SELECT {drawing.one('', 'DISTINCT ')}{' '.join(f'?{v}' for v in kept)}"
            tail = drawing.slice(kept)
        case 3 | 4:
            listed, tail, _, _ = drawing.aggregates(part)
            head = f"SELECT {listed}"
        case 5 if names:
            head = "CONSTRUCT { ?x :made ?y . ?y :of :x }"
        case _:
            head = "SELECT *"
    return f"{PREFIX}{head} {draw(st.sampled_from(_DATASETS))}WHERE {{ {part.text} }}{tail}"


def asked(text: str, store: oxiseq.Store) -> Bag:
    """The answer, asked of the store. GRAPH ?n is written out, as pyoxigraph misreads it where MINUS is in it; FROM's
    graphs are merged, as a triple that several of them hold is there more than once for it."""
    query = load_over_store(text)
    content: Any = store
    graphs = [name for name in store.named_graphs() if isinstance(name, NamedNode)]
    if query.default_graphs or query.named_graphs:
        graphs = [*query.named_graphs]
        content = dataset(store, query.default_graphs, graphs)
        query = replace(query, default_graphs=(), named_graphs=())
    found = content.query(render_rsp(by_graph(query, graphs)))
    if isinstance(found, QueryBoolean):
        return Counter([()] if found else [])
    if isinstance(found, QuerySolutions):
        names = [v.value for v in found.variables]
        return Counter(bound({name: solution[name] for name in names}) for solution in found)
    return Counter(set(found))


def dataset(store: oxiseq.Store, merged: Iterable[NamedNode], named: Iterable[NamedNode]) -> ox.Store:
    """A store that holds some graphs of another: these as its default graph, those under their names."""
    made = ox.Store()
    for graph in merged:
        made.extend(Quad(q.subject, q.predicate, q.object) for q in store.quads_for_pattern(None, None, None, graph))
    for graph in named:
        made.extend(store.quads_for_pattern(None, None, None, graph))
    return made


STEPS = st.tuples(texts(), st.lists(CHANGES, max_size=4))
"""A query that is registered, and what changes then."""


def bound(row: Any) -> Any:
    """A row by its bound variables."""
    return tuple(sorted((name, str(term)) for name, term in row.items() if term is not None))


def bag(rows: Any, form: str) -> Bag:
    """Rows as `asked` has them."""
    if form == "ASK":
        return Counter([()] * len(rows))
    return Counter(rows) if form == "CONSTRUCT" else Counter(map(bound, rows))


class Mirror:
    """The answer as somebody has it who reads the snapshot and then the changes."""

    def __init__(self, store: oxiseq.Store, query: oxiseq.StandingQuery, state: str = "followed") -> None:
        self.store, self.query, self.state = store, query, state
        first = query.snapshot()
        self.rows, self.number = bag(first.rows, query.form), first.number

    def check(self) -> None:
        """Compare with what the store answers."""
        for change in self.query.poll():
            assert change.after == self.number
            assert change.number > self.number
            self.number = change.number
            self.rows.update(bag(change.added, self.query.form))
            self.rows.subtract(bag(change.removed, self.query.form))
            assert min(self.rows.values(), default=0) >= 0
        wanted = asked(self.query.text, self.store)
        assert self.query.state == self.state, self.query.reason
        snapshot = self.query.snapshot()
        assert bag(snapshot.rows, self.query.form) == +self.rows
        assert snapshot.number == self.number
        if re.search("LIMIT|OFFSET|MIN|MAX", self.query.text) and "_:" in str(wanted):  # blank nodes have no order
            assert self.rows.total() == wanted.total()
        else:
            assert +self.rows == wanted


def made(store: oxiseq.Store, change: Change) -> None:
    """Make a change, or fail to."""
    with suppress(*FAILURES):
        change(store)


@drawn(60)
@given(st.lists(CHANGES, max_size=3), st.lists(STEPS, min_size=1, max_size=3))
def test_a_snapshot_and_its_changes_are_the_answer(before: list[Change], steps: list[tuple[str, list[Change]]]) -> None:
    store = oxiseq.Store()
    for change in before:
        made(store, change)
    mirrors: list[Mirror] = []
    for text, changes in steps:
        note(text)
        mirrors.append(Mirror(store, store.register(text, language="sparql")))
        for change in changes:
            made(store, change)
            for mirror in mirrors:
                mirror.check()
    event("told" if any(mirror.number for mirror in mirrors) else "not told")


LONG: Final = int(os.environ.get("OXISEQ_STEPS", 100))
"""Changes of the long life below."""
QUERIES: Final = 10
LIVED: Final = 60
"""Changes after which the oldest query goes and another comes."""
T = TypeVar("T")


def drawn_at_random(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """So many examples, by one seed: more than one property can draw."""
    found: list[T] = []

    @seed(15)
    @settings(
        max_examples=count // 10 + 1,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(strategy, min_size=10, max_size=10))
    def collect(some: list[T]) -> None:
        found.extend(some)

    collect()
    return found[:count]


def test_a_long_life_of_a_store() -> None:
    """Queries come and go; after each change every snapshot with its changes is what the store answers."""
    store = oxiseq.Store()
    queries = iter(drawn_at_random(texts(), QUERIES + LONG // LIVED + 1))
    mirrors = [Mirror(store, store.register(next(queries), language="sparql", keep=10**9)) for _ in range(QUERIES)]
    for number, change in enumerate(drawn_at_random(CHANGES, LONG)):
        made(store, change)
        for mirror in mirrors:
            mirror.check()
        if number % LIVED == LIVED - 1:
            mirrors.pop(0).query.close()
            mirrors.append(Mirror(store, store.register(next(queries), language="sparql", keep=10**9)))
    assert len(store.standing) == QUERIES


JOINS = [
    "SELECT * { ?x :p ?y . ?x :q ?z }",
    "SELECT * { ?x :p ?y . ?y :q ?z . ?z :p ?w }",
    "SELECT * { ?x :p ?y . ?y :p ?z }",
    "SELECT * { ?x :p :a . ?x :q ?z . ?z :r ?y }",
    "SELECT * { ?x :p :a . ?x ?w ?z }",
    "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z } OPTIONAL { ?z :r ?w } }",
    "SELECT * { ?x :p ?y MINUS { ?y :q ?x } }",
    "SELECT * { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z . ?z :r ?w } }",
    "SELECT * { ?x :p ?y . ?x :q ?z FILTER(?y != ?z) }",
    "SELECT * { { ?x :p ?y } UNION { ?x :q ?y } ?y :r ?z }",
    "SELECT * { GRAPH ?g { ?x :p ?y . ?y :q ?z } ?z :r ?w }",
    "SELECT * { VALUES ?y { :a :b } ?x :p ?y . ?x :q ?y }",
    "SELECT ?x (COUNT(?z) AS ?n) { ?x :p ?y . ?y :q ?z } GROUP BY ?x",
    "SELECT ?x ?z { ?x :p+ ?y . ?y :q ?z }",
    "SELECT ?x { ?x :p ?y . ?x :q ?y . ?x :r ?y }",
]
"""Each has gates of its own kind (engine/standing/gates.py)."""


@drawn(60)
@given(st.lists(st.sampled_from(JOINS), min_size=2, max_size=4, unique=True), st.lists(SINGLE, max_size=30))
def test_single_quads_find_what_they_join_with(texts: list[str], quads: list[tuple[str, ox.Quad]]) -> None:
    store = oxiseq.Store()
    mirrors = [Mirror(store, store.register(PREFIX + text, language="sparql")) for text in texts]
    for method, quad in quads:
        getattr(store, method)(quad)
        for mirror in mirrors:
            mirror.check()


@drawn(20)
@given(st.lists(st.sampled_from(JOINS), min_size=1, max_size=3, unique=True), st.lists(SINGLE, max_size=12))
def test_queries_that_are_asked_tell_the_same(texts: list[str], quads: list[tuple[str, ox.Quad]]) -> None:
    store = oxiseq.Store()
    for name in "pqr":
        node = ox.NamedNode(f"{E}{name}")
        store.extend([ox.Quad(node, node, node), ox.Quad(node, node, node, node)])
    asks = [store.register(PREFIX + text, language="sparql", most_triples=0) for text in texts]
    mirrors = [Mirror(store, query, "asked") for query in asks]
    for method, quad in quads:
        getattr(store, method)(quad)
        for mirror in mirrors:
            mirror.check()


def test_many_terms_have_the_ids_that_each_has() -> None:
    a, b = ox.NamedNode("http://e/a"), ox.BlankNode("b")
    terms = [
        a,
        b,
        ox.Literal("x"),
        ox.Literal('"\n\\é'),
        ox.Literal("x", language="en"),
        ox.Literal(1),
        ox.Literal(1.5),
        ox.Literal("01", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
        ox.Literal(""),
        ox.Literal("x", language="en", direction=ox.BaseDirection.LTR),
        ox.Triple(a, a, ox.Literal(1)),
        ox.Triple(b, a, b),
        a,
        b,
    ]
    for first in (True, False):
        known = StoreTerms()
        ids = known.ids(terms).tolist() if first else []
        assert [known.id(term) for term in terms] == known.ids(terms).tolist()
        assert not first or known.ids(terms).tolist() == ids
        assert [known.term(i) for i in known.ids(terms).tolist()][:5] == terms[:5]
        assert known.encoded([(a, None), (b, a)], 2).tolist() == [
            [ids[0] if first else known.id(a), 0],
            [known.id(b), known.id(a)],
        ]
