"""Statistics of the store in VoID (https://www.w3.org/TR/void/), in the graph `STATISTICS`.

Counts are of the asserted data, all graphs together; the inferred graph is a subset with its own count.
A statement that is in two graphs counts twice in void:triples, a subject once in void:distinctSubjects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions
from pyoxigraph import Store as RdfStore

from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader.graphs import DATASET, INFERRED, STATISTICS
from oxiseq.kb_loader.rdfs import TYPE, Term, count_inferred

_VOID = "http://rdfs.org/ns/void#"


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of the asserted data; `inferred` None: there is no inferred graph."""

    subjects: int
    objects: int
    predicates: Mapping[Term, int]
    """Property → statements."""
    classes: Mapping[Term, int]
    """Class → instances."""
    inferred: int | None


def describe(store: RdfStore, inferred: int | None = None) -> int:
    """Count again and write the description; returns its number of statements. `inferred`: how many the store has, if
    that is known. Raises OSError."""
    store.remove_graph(STATISTICS)
    return write(store, counted(store, inferred))


def write(store: RdfStore, counts: Counts) -> int:
    """Write the description; returns its number of statements. Raises OSError."""
    described = list(_description(counts))
    store.extend(described)
    return len(described)


def counted(store: RdfStore, inferred: int | None = None) -> Counts:
    """Count by SPARQL, on two cores. `inferred` as in `describe`."""
    graphs = [DefaultGraph(), *(g for g in store.named_graphs() if g != INFERRED)]

    def asked(query: str) -> dict[Term, int]:
        """What a count is of → the count."""
        answer = store.query(query, default_graph=graphs)
        assert isinstance(answer, QuerySolutions)
        return {row[0]: int(row[1].value) for row in answer if isinstance(row[1], Literal)}

    def distinct(variable: str) -> int:
        [number] = asked(f"SELECT (1 AS ?one) (COUNT(DISTINCT ?{variable}) AS ?n) {{ ?s ?p ?o }}").values()
        return number

    if inferred is None and store.contains_named_graph(INFERRED):
        inferred = count_inferred(store)
    by_class = f"SELECT ?c (COUNT(DISTINCT ?s) AS ?n) {{ ?s {TYPE} ?c }} GROUP BY ?c"
    with ThreadPoolExecutor(2) as threads:  # Oxigraph leaves Python's lock
        # the two that take longest in different threads, and hardly at a time: each holds a set of all its terms
        second = threads.submit(lambda: (distinct("o"), asked(by_class)))
        first = threads.submit(lambda: (asked("SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p"), distinct("s")))
        (objects, classes), (predicates, subjects) = second.result(), first.result()
    return Counts(subjects, objects, predicates, classes, inferred)


def _description(counts: Counts) -> Iterator[Quad]:
    yield _fact(DATASET, TYPE, NamedNode(_VOID + "Dataset"))
    yield _count(DATASET, "triples", sum(counts.predicates.values()))
    yield _count(DATASET, "distinctSubjects", counts.subjects)
    yield _count(DATASET, "distinctObjects", counts.objects)
    yield _count(DATASET, "properties", len(counts.predicates))
    yield _count(DATASET, "classes", len(counts.classes))
    for predicate, number in counts.predicates.items():
        yield from _part("propertyPartition", "property", predicate, "triples", number)
    for class_, number in counts.classes.items():
        yield from _part("classPartition", "class", class_, "entities", number)
    if counts.inferred is not None:
        yield _fact(DATASET, NamedNode(_VOID + "subset"), INFERRED)
        yield _count(INFERRED, "triples", counts.inferred)


def _part(kind: str, link: str, of: Term, counted: str, number: int) -> Iterator[Quad]:
    part = BlankNode()
    yield _fact(DATASET, NamedNode(_VOID + kind), part)
    yield _fact(part, NamedNode(_VOID + link), of)
    yield _count(part, counted, number)


def _count(subject: NamedNode | BlankNode, name: str, number: int) -> Quad:
    return _fact(subject, NamedNode(_VOID + name), Literal(number))


def _fact(subject: NamedNode | BlankNode, predicate: NamedNode, object_: Term) -> Quad:
    return Quad(subject, predicate, object_, STATISTICS)
