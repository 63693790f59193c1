"""One event's graph, in whatever form it comes, → term ids.

Where it stands: the Python API's entrance to **event batches**; files have readers of their own
(quads.py, tables.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

import numpy as np
import rdflib
import rdflib.term
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from oxiseq.engine.errors import EventError, syntax_reason
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term

GraphLike: TypeAlias = str | bytes | rdflib.Graph | Iterable[Triple] | Iterable[Quad]
"""RDF text (Turtle, hence N-Triples too), an rdflib graph, or pyoxigraph's triples or quads."""
IdColumns: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]


def encode_graph(graph: GraphLike, terms: TermDictionary) -> IdColumns:
    """The triples of one event's graph as three u32 arrays: subjects, predicates, objects.

    A blank node gets a fresh id per label: labels mean nothing outside this call. Graph names of quads are
    ignored. Of an rdflib.Dataset only what its `triples` gives is taken. Duplicate triples are kept.
    Raises EventError for malformed text and for terms that RDF does not allow, TypeError for something
    that is not a graph.
    """
    ids: list[int] = []
    blanks: dict[str, int] = {}
    try:
        for triple in _triples(graph):
            for term in (triple.subject, triple.predicate, triple.object):
                ids.append(_encode(term, terms, blanks))
    except SyntaxError as error:
        raise EventError(None, error.lineno, syntax_reason(error)) from error
    except ValueError as error:
        raise EventError(None, None, str(error)) from error
    table = np.array(ids, np.uint32).reshape(-1, 3).T
    return np.ascontiguousarray(table[0]), np.ascontiguousarray(table[1]), np.ascontiguousarray(table[2])


def encode_events(
    events: Iterable[tuple[int | datetime | Literal, GraphLike]], terms: TermDictionary
) -> EventBatch:
    """A batch of (time, graph) pairs; for times see `to_microseconds`. Raises EventError."""
    times: list[int] = []
    columns: list[IdColumns] = []
    for time, graph in events:
        times.append(to_microseconds(time))
        columns.append(encode_graph(graph, terms))
    return assemble(times, columns)


def decode_events(batch: EventBatch, terms: TermDictionary) -> Iterator[tuple[int, tuple[Triple, ...]]]:
    """(time in µs, triples) of each event of a batch, in its order; blank nodes are labelled by their ids."""
    for i, time in enumerate(batch.time.tolist()):
        low, high = batch.offset[i], batch.offset[i + 1]
        ids = zip(batch.subject[low:high], batch.predicate[low:high], batch.object[low:high], strict=True)
        yield time, tuple(_triple([terms.term(int(term)) for term in triple]) for triple in ids)


def _triple(parts: list[Term]) -> Triple:
    subject, predicate, object_ = parts
    assert not isinstance(subject, Literal), "readers let no literal subject through"
    assert isinstance(predicate, NamedNode), "nor another predicate than an IRI"
    return Triple(subject, predicate, object_)


def assemble(times: Iterable[int], graphs: Iterable[IdColumns]) -> EventBatch:
    """A batch of events that are already encoded, in the order given."""
    columns = list(graphs)
    none = np.zeros(0, np.uint32)
    subject, predicate, object_ = (
        np.concatenate([graph[position] for graph in columns] or [none]) for position in range(3)
    )
    sizes = np.array([len(graph[0]) for graph in columns], np.int64)
    return EventBatch(np.array(list(times), np.int64), offsets(sizes), subject, predicate, object_)


def _triples(graph: GraphLike) -> Iterable[Triple | Quad]:
    if isinstance(graph, str | bytes):
        return parse(graph, RdfFormat.TURTLE)
    if isinstance(graph, rdflib.Graph):
        return (_from_rdflib_triple(triple) for triple in graph.triples((None, None, None)))
    if isinstance(graph, Iterable) and not isinstance(graph, Triple | Quad):
        return (_checked(triple) for triple in graph)
    raise TypeError(f"not an RDF text, an rdflib.Graph or an iterable of triples: {type(graph).__name__}")


def _checked(triple: object) -> Triple | Quad:
    if isinstance(triple, Triple | Quad):
        return triple
    raise TypeError(f"not a pyoxigraph Triple or Quad: {triple!r}")


def _encode(term: Term, terms: TermDictionary, blanks: dict[str, int]) -> int:
    if not isinstance(term, BlankNode):
        return terms.intern(term)
    known = blanks.get(term.value)
    if known is None:
        known = blanks[term.value] = terms.blank()
    return known


def _from_rdflib_triple(triple: tuple[rdflib.term.Node, rdflib.term.Node, rdflib.term.Node]) -> Triple:
    subject, predicate, object_ = (from_rdflib(term) for term in triple)
    if isinstance(subject, Literal) or not isinstance(predicate, NamedNode):
        raise ValueError(f"not an RDF triple: {subject} {predicate} {object_}")
    return Triple(subject, predicate, object_)


def from_rdflib(term: rdflib.term.Node) -> NamedNode | Literal | BlankNode:
    """An rdflib term as pyoxigraph's. Raises ValueError for anything but an IRI, a literal, a blank node."""
    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if isinstance(term, rdflib.Literal):
        if term.language is not None:
            return Literal(str(term), language=term.language)
        return Literal(str(term), datatype=None if term.datatype is None else NamedNode(str(term.datatype)))
    raise ValueError(f"not an RDF term: {term!r}")
