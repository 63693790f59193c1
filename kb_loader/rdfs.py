"""RDFS reasoning: subClassOf, subPropertyOf, domain and range to the fixpoint, into a graph of its own.

The graph `INFERRED` holds every statement that one of the rules rdfs2, 3, 5, 7, 9 and 11 yields, also where it is
asserted elsewhere too; and of each class that has anything inferred the asserted instances as well, so that
`GRAPH <urn:oxiseq:inferred> { ?x a :Class }` finds them all. Schema and statements are read from all graphs but the
statistics. To do it again, remove the graph (`remove_inferred` does).

    schema pairs ─▶ coded closure (semi-naive, NumPy) ─▶ one pass over the properties and types that have something
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad
from pyoxigraph import Store as RdfStore

from oxiseq.kb_loader.graphs import INFERRED, STATISTICS

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = NamedNode(_RDF + "type")
SUB_CLASS = NamedNode(_RDFS + "subClassOf")
SUB_PROPERTY = NamedNode(_RDFS + "subPropertyOf")
DOMAIN = NamedNode(_RDFS + "domain")
RANGE = NamedNode(_RDFS + "range")
_SCHEMA = (SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE)

Term: TypeAlias = Any
"""Any RDF term. pyoxigraph's constructors refuse what cannot stand at a place; literals are sorted out before."""
Pairs: TypeAlias = set[tuple[Term, Term]]
Above: TypeAlias = dict[Term, list[Term]]
"""Node → all that is above it (itself only where there is a cycle)."""


def reason(store: RdfStore) -> int:
    """Materialise anew; returns how many statements `INFERRED` has. Raises OSError."""
    remove_inferred(store)
    count = -1
    while True:
        schema, properties = _closed_schema(store)
        store.bulk_extend(_inferred(store, schema, properties))
        before, count = count, sum(1 for _ in store.quads_for_pattern(None, None, None, INFERRED))
        if count == before or not _speaks_of_itself(schema):
            return count


def remove_inferred(store: RdfStore) -> None:
    """Take away what `reason` has written."""
    store.remove_graph(INFERRED)


def closure(edges: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """All (a, b) with a path from a to b, shape (p, 2), of edges of shape (m, 2) over `nodes` nodes, sorted.

    Semi-naive: each round lengthens only the paths that the last one found, by one edge.
    """
    if not len(edges):
        return edges.reshape(0, 2)
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    first = np.searchsorted(edges[:, 0], np.arange(nodes + 1))
    known = new = np.unique(edges[:, 0] * nodes + edges[:, 1])
    while len(new):
        low, high = new // nodes, new % nodes
        fan = first[high + 1] - first[high]
        at = np.repeat(first[high] - (np.cumsum(fan) - fan), fan) + np.arange(fan.sum())
        longer = np.unique(np.repeat(low, fan) * nodes + edges[at, 1])
        new = np.setdiff1d(longer, known, assume_unique=True)
        known = np.union1d(known, new)
    return np.stack([known // nodes, known % nodes], axis=1)


def closed(pairs: Iterable[tuple[Term, Term]]) -> Above:
    """`closure` of terms."""
    codes: dict[Term, int] = {}
    coded = [(codes.setdefault(a, len(codes)), codes.setdefault(b, len(codes))) for a, b in pairs]
    terms = list(codes)
    above: Above = defaultdict(list)
    for a, b in closure(np.array(coded, dtype=np.int64).reshape(-1, 2), len(terms)).tolist():
        above[terms[a]].append(terms[b])
    return dict(above)


def _speaks_of_itself(schema: dict[NamedNode, Pairs]) -> bool:
    """Whether what is inferred may be the start of more: only if types or schema statements have super-properties,
    domains or ranges. Otherwise one pass reaches the fixpoint."""
    spoken_of = {p for pairs in (schema[SUB_PROPERTY], schema[DOMAIN], schema[RANGE]) for p, _ in pairs}
    return not spoken_of.isdisjoint((TYPE, *_SCHEMA))


def _inferred(store: RdfStore, schema: dict[NamedNode, Pairs], properties: Above) -> Iterator[Quad]:
    classes = closed(schema[SUB_CLASS])
    for below, above in [(SUB_CLASS, classes), (SUB_PROPERTY, properties)]:
        for node, targets in above.items():
            for target in targets:
                yield Quad(node, below, target, INFERRED)
    given = {b for above in classes.values() for b in above}  # classes that may have anything inferred
    typings = [_pairs(store, p) for p, above in properties.items() if TYPE in above]
    for pairs in (schema[DOMAIN], schema[RANGE], *typings):
        given |= {c for _, c in pairs}

    def types(direct: Iterable[Term]) -> list[Term]:
        return list({c for d in direct for c in [d, *classes.get(d, ())]})

    domains, ranges = _by_property(schema[DOMAIN]), _by_property(schema[RANGE])
    for used in {*properties, *domains, *ranges, TYPE}:
        supers = [p for p in properties.get(used, []) if isinstance(p, NamedNode)]
        whole = [used, *supers]
        of_subject = types(c for p in whole for c in domains.get(p, ()))
        of_object = types(c for p in whole for c in ranges.get(p, ()))
        typing = TYPE in whole
        for quad in _statements(store, used):
            for p in supers:
                yield Quad(quad.subject, p, quad.object, INFERRED)
            for c in of_subject:
                yield Quad(quad.subject, TYPE, c, INFERRED)
            if isinstance(quad.object, Literal):
                continue
            for c in of_object:
                yield Quad(quad.object, TYPE, c, INFERRED)
            if typing:
                if quad.object in given:
                    yield Quad(quad.subject, TYPE, quad.object, INFERRED)
                for c in classes.get(quad.object, ()):
                    yield Quad(quad.subject, TYPE, c, INFERRED)


def _closed_schema(store: RdfStore) -> tuple[dict[NamedNode, Pairs], Above]:
    """The schema's pairs and the closed property tree. A property below subClassOf and the like gives pairs too."""
    schema: dict[NamedNode, Pairs] = {p: _pairs(store, p) for p in _SCHEMA}
    read: Pairs = set()
    while True:
        properties = closed(schema[SUB_PROPERTY])
        more = {(p, s) for p, above in properties.items() for s in above if s in schema and p != s} - read
        if not more:
            return schema, properties
        for used, meant in more:
            assert isinstance(meant, NamedNode)
            schema[meant] |= _pairs(store, used)
        read |= more


def _pairs(store: RdfStore, predicate: object) -> Pairs:
    """Schema statements; a literal is no class and no property."""
    return {(q.subject, q.object) for q in _statements(store, predicate) if not isinstance(q.object, Literal)}


def _statements(store: RdfStore, predicate: object) -> Iterator[Quad]:
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
