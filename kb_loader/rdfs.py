"""RDFS reasoning: subClassOf, subPropertyOf, domain and range to the fixpoint, into a graph of its own.

The graph `INFERRED` holds every statement that one of the rules rdfs2, 3, 5, 7, 9 and 11 yields, also where it is
asserted elsewhere too; and of each class that has anything inferred the asserted instances as well, so that
`GRAPH <urn:oxiseq:inferred> { ?x a :Class }` finds them all. Schema and statements are read from all graphs but the
statistics. To do it again, remove the graph (`remove_inferred` does).

    schema pairs ─▶ coded closure (semi-naive, NumPy) ─▶ rules as tables ─▶ one pass over the statements that they take

Spark applies the same tables: see spark/reasoning.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Triple
from pyoxigraph import Store as RdfStore

from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.graphs import INFERRED, STATISTICS

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = NamedNode(_RDF + "type")
SUB_CLASS = NamedNode(_RDFS + "subClassOf")
SUB_PROPERTY = NamedNode(_RDFS + "subPropertyOf")
DOMAIN = NamedNode(_RDFS + "domain")
RANGE = NamedNode(_RDFS + "range")
SCHEMA = (SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE)

NO_RESOURCE = (Literal, Triple)
"""What is no class, no property and no instance: it cannot be a subject."""

Term: TypeAlias = Any
"""Any RDF term. pyoxigraph's constructors refuse terms in a wrong place; literals are sorted out before."""
Pairs: TypeAlias = set[tuple[Term, Term]]
Above: TypeAlias = dict[Term, list[Term]]
"""Node → all that is above it (itself only where there is a cycle)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A closed schema as tables: what each statement yields by itself."""

    hierarchy: list[tuple[Term, NamedNode, Term]]
    """The closed class and property trees, as statements."""
    supers: dict[Term, list[NamedNode]]
    """Property → all above it."""
    of_subject: dict[Term, list[Term]]
    """Property → the classes of its subjects (domains and what is above them)."""
    of_object: dict[Term, list[Term]]
    """Property → the classes of its objects that are no literals."""
    typing: frozenset[Term]
    """rdf:type and the properties below it."""
    given: frozenset[Term]
    """Classes that may have anything inferred: their asserted instances are emitted, too."""
    classes: Above
    """Class → all above it."""
    again: bool
    """Whether what is inferred may be the start of more: only if types or schema statements have super-properties,
    domains or ranges. Otherwise one pass reaches the fixpoint."""

    @property
    def used(self) -> set[Term]:
        """The properties whose statements yield anything."""
        return {*self.supers, *self.of_subject, *self.of_object, *self.typing}

    def of(self, quad: Quad) -> Iterator[Quad]:
        """What a statement yields; the same may come several times."""
        for p in self.supers.get(quad.predicate, ()):
            yield Quad(quad.subject, p, quad.object, INFERRED)
        for c in self.of_subject.get(quad.predicate, ()):
            yield Quad(quad.subject, TYPE, c, INFERRED)
        if isinstance(quad.object, NO_RESOURCE):
            return
        for c in self.of_object.get(quad.predicate, ()):
            yield Quad(quad.object, TYPE, c, INFERRED)
        if quad.predicate in self.typing:
            if quad.object in self.given:
                yield Quad(quad.subject, TYPE, quad.object, INFERRED)
            for c in self.classes.get(quad.object, ()):
                yield Quad(quad.subject, TYPE, c, INFERRED)


def reason(store: RdfStore) -> int:
    """Materialise again; returns how many statements `INFERRED` has. Raises OSError."""
    remove_inferred(store)
    count = -1
    while True:
        rules = compile_rules(partial(_pairs, store))
        store.bulk_extend(_inferred(store, rules))
        before, count = count, count_inferred(store)
        if count == before or not rules.again:
            return count


def count_inferred(store: RdfStore) -> int:
    """How many statements `INFERRED` has: by a query, because each quad of an iteration looks up its terms' texts."""
    answer = store.query(f"SELECT (COUNT(*) AS ?n) {{ GRAPH {INFERRED} {{ ?s ?p ?o }} }}")
    assert isinstance(answer, QuerySolutions)
    [row] = answer
    return int(row[0].value)


def remove_inferred(store: RdfStore) -> None:
    """Remove what `reason` has written."""
    store.remove_graph(INFERRED)


def closure(edges: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """All (a, b) with a path from a to b, shape (p, 2), of edges of shape (m, 2) over `nodes` nodes, sorted.

    Semi-naive: each round lengthens only the paths that the last one found, by one edge.
    """
    if not len(edges):
        return edges.reshape(0, 2)
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    first = np.searchsorted(edges[:, 0], np.arange(nodes + 1))
    known = new = _distinct(edges[:, 0] * nodes + edges[:, 1])
    while len(new):
        low, high = new // nodes, new % nodes
        fan = first[high + 1] - first[high]
        at = np.repeat(first[high] - (np.cumsum(fan) - fan), fan) + np.arange(fan.sum())
        longer = _distinct(np.repeat(low, fan) * nodes + edges[at, 1])
        place = np.minimum(np.searchsorted(known, longer), len(known) - 1)
        new = longer[known[place] != longer]
        known = np.sort(np.concatenate([known, new]), kind="stable")  # it merges what is sorted: linear time
    return np.stack([known // nodes, known % nodes], axis=1)


def _distinct(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorted, each once. NumPy's unique hashes, and is slower where most differ."""
    ordered = np.sort(codes)
    distinct: NDArray[np.int64] = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def closed(pairs: Iterable[tuple[Term, Term]]) -> Above:
    """`closure` of terms."""
    codes: dict[Term, int] = {}
    coded = [(codes.setdefault(a, len(codes)), codes.setdefault(b, len(codes))) for a, b in pairs]
    terms = list(codes)
    above: Above = defaultdict(list)
    for a, b in closure(np.array(coded, dtype=np.int64).reshape(-1, 2), len(terms)).tolist():
        above[terms[a]].append(terms[b])
    return dict(above)


def compile_rules(pairs: Callable[[Term], Pairs]) -> Rules:
    """The rules of a schema. `pairs` gives the (subject, object) of all statements with a predicate, but those whose
    object is NO_RESOURCE."""
    schema, properties = _closed_schema(pairs)
    classes = closed(schema[SUB_CLASS])
    typing = frozenset([TYPE, *(p for p, above in properties.items() if TYPE in above)])
    given = {b for above in classes.values() for b in above}
    for told in (schema[DOMAIN], schema[RANGE], *(pairs(p) for p in typing if p != TYPE)):
        given |= {c for _, c in told}

    def types(told: Pairs) -> dict[Term, list[Term]]:
        direct = _by_property(told)
        found = {}
        for p in {*properties, *direct}:
            own = [c for q in [p, *properties.get(p, ())] for c in direct.get(q, ())]
            if own:
                found[p] = list({c for d in own for c in [d, *classes.get(d, ())]})
        return found

    return Rules(
        [(n, SUB_CLASS, t) for n, above in classes.items() for t in above]
        + [(n, SUB_PROPERTY, t) for n, above in properties.items() for t in above],
        {p: [q for q in above if isinstance(q, NamedNode)] for p, above in properties.items()},
        types(schema[DOMAIN]),
        types(schema[RANGE]),
        typing,
        frozenset(given),
        classes,
        not {p for key in (SUB_PROPERTY, DOMAIN, RANGE) for p, _ in schema[key]}.isdisjoint((TYPE, *SCHEMA)),
    )


def _inferred(store: RdfStore, rules: Rules) -> Iterator[Quad]:
    for node, below, target in rules.hierarchy:
        yield Quad(node, below, target, INFERRED)
    for used in rules.used:
        for quad in _statements(store, used):
            yield from rules.of(quad)


def _closed_schema(pairs: Callable[[Term], Pairs]) -> tuple[dict[NamedNode, Pairs], Above]:
    """The schema's pairs and the closed property tree. A property below subClassOf and the like gives pairs too."""
    schema: dict[NamedNode, Pairs] = {p: set(pairs(p)) for p in SCHEMA}
    read: Pairs = set()
    while True:
        properties = closed(schema[SUB_PROPERTY])
        more = {(p, s) for p, above in properties.items() for s in above if s in schema and p != s} - read
        if not more:
            return schema, properties
        for used, meant in more:
            assert isinstance(meant, NamedNode)
            schema[meant] |= pairs(used)
        read |= more


def _pairs(store: RdfStore, predicate: Term) -> Pairs:
    return {(q.subject, q.object) for q in _statements(store, predicate) if not isinstance(q.object, NO_RESOURCE)}


def _statements(store: RdfStore, predicate: Term) -> Iterator[Quad]:
    if not isinstance(predicate, NamedNode):
        return
    for quad in store.quads_for_pattern(None, predicate, None, None):
        if quad.graph_name != STATISTICS:
            yield quad


def _by_property(pairs: Pairs) -> dict[Term, list[Term]]:
    found: dict[Term, list[Term]] = defaultdict(list)
    for a, b in pairs:
        found[a].append(b)
    return found
