"""Statistics of the store in VoID (https://www.w3.org/TR/void/), in the graph `STATISTICS`.

Counts are of the asserted data, all graphs together; the inferred graph is a subset with its own count.
A statement that stands in two graphs counts twice in void:triples, a subject once in void:distinctSubjects.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from pyoxigraph import BlankNode, Literal, NamedNode, Quad
from pyoxigraph import Store as RdfStore

from oxiseq.kb_loader.graphs import DATASET, INFERRED, STATISTICS
from oxiseq.kb_loader.rdfs import TYPE

_VOID = "http://rdfs.org/ns/void#"


def describe(store: RdfStore) -> int:
    """Count anew and write the description; returns its number of statements. Raises OSError."""
    store.remove_graph(STATISTICS)
    described = list(_description(store))
    store.extend(described)
    return len(described)


def _description(store: RdfStore) -> Iterator[Quad]:
    predicates: Counter[NamedNode] = Counter()
    instances: dict[object, set[object]] = defaultdict(set)
    subjects: set[object] = set()
    objects: set[object] = set()
    inferred = 0
    for quad in store:
        if quad.graph_name == INFERRED:
            inferred += 1
            continue
        predicates[quad.predicate] += 1
        subjects.add(hash(quad.subject))
        objects.add(hash(quad.object))
        if quad.predicate == TYPE:
            instances[quad.object].add(hash(quad.subject))
    yield _fact(DATASET, TYPE, NamedNode(_VOID + "Dataset"))
    yield _count(DATASET, "triples", predicates.total())
    yield _count(DATASET, "distinctSubjects", len(subjects))
    yield _count(DATASET, "distinctObjects", len(objects))
    yield _count(DATASET, "properties", len(predicates))
    yield _count(DATASET, "classes", len(instances))
    for predicate, number in predicates.items():
        yield from _part("propertyPartition", "property", predicate, "triples", number)
    for class_, members in instances.items():
        yield from _part("classPartition", "class", class_, "entities", len(members))
    if inferred:
        yield _fact(DATASET, NamedNode(_VOID + "subset"), INFERRED)
        yield _count(INFERRED, "triples", inferred)


def _part(kind: str, link: str, of: object, counted: str, number: int) -> Iterator[Quad]:
    part = BlankNode()
    yield _fact(DATASET, NamedNode(_VOID + kind), part)
    yield _fact(part, NamedNode(_VOID + link), of)
    yield _count(part, counted, number)


def _count(subject: NamedNode | BlankNode, name: str, number: int) -> Quad:
    return _fact(subject, NamedNode(_VOID + name), Literal(number))


def _fact(subject: NamedNode | BlankNode, predicate: NamedNode, object_: object) -> Quad:
    return Quad(subject, predicate, object_, STATISTICS)  # type: ignore[arg-type]  # classes come from objects
