"""One event's graph, in whatever form it comes, → term ids.

In the flow: the Python API's entrance to **event batches**; files have readers of their own
(quads.py, tables.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, serialize

from oxiseq.engine.errors import ArgumentTypeError, EventError, syntax_reason
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.rdf import parse, rewritten
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term

if TYPE_CHECKING:
    import rdflib
    import rdflib.term

GraphLike: TypeAlias = "str | bytes | rdflib.Graph | Iterable[Triple] | Iterable[Quad]"
"""RDF text (Turtle, hence N-Triples too), an rdflib graph, or pyoxigraph's triples or quads."""
_ALL_TRIPLES: Final = {Triple}


TimedGraph: TypeAlias = "tuple[GraphLike, Time | Literal] | tuple[Time | Literal, GraphLike]"
"""An event: its graph and its time, in either order, since nothing is both."""


def encode_events(events: Iterable[TimedGraph], terms: TermDictionary) -> EventBatch:
    """A batch of (graph, time) or (time, graph) pairs; for times see `to_microseconds`.

    A blank node gets a fresh id per label and graph: labels mean nothing outside. Graph names of quads are ignored.
    Of an rdflib.Dataset only what its `triples` gives is taken. Duplicate triples are kept. Raises EventError for
    malformed text and for terms that RDF does not allow, TypeError for something that is not a graph.
    """
    times: list[int] = []
    graphs: list[NDArray[np.uint32]] = []
    for time, graph in _pairs(events):
        times.append(to_microseconds(time))
        graphs.append(_encode(graph, terms))
    if len(graphs) == 1:
        return _event(times[0], graphs[0])
    sizes = np.array([graph.shape[1] for graph in graphs], np.int64)
    columns = np.concatenate(graphs, axis=1) if graphs else np.zeros((3, 0), np.uint32)
    return EventBatch(np.array(times, np.int64), offsets(sizes), *columns)


def encode_event(
    first: Time | Literal | GraphLike, second: Time | Literal | GraphLike, terms: TermDictionary
) -> EventBatch:
    """A batch of one event, as `encode_events` makes one of its time and its graph, in either order."""
    time, graph = _in_order(first, second)
    return _event(to_microseconds(time), _encode(graph, terms))


def _event(time: int, ids: NDArray[np.uint32]) -> EventBatch:
    """At this time (µs), with a triple for each column of ids."""
    numbers = np.array((time, 0, ids.shape[1]))
    return EventBatch(numbers[:1], numbers[1:], ids[0], ids[1], ids[2])


def iterated(events: Any) -> Iterable[Any]:
    """What may be (graph, time) pairs. Raises ArgumentTypeError."""
    if not isinstance(events, Iterable):
        raise ArgumentTypeError(f"a stream is a file or (graph, time) pairs, not {events!r}"[:200])
    return events


def _pairs(events: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """(time, graph) of each event. Raises EventError."""
    for each in iterated(events):
        if not isinstance(each, tuple | list) or len(each) != 2:
            raise EventError(None, None, f"an event is (graph, time), not {each!r}"[:200])
        yield _in_order(*each)


def _in_order(first: Any, second: Any) -> tuple[Any, Any]:
    """The time and the graph of an event."""
    return (second, first) if not is_time(first) and is_time(second) else (first, second)


def is_time(value: object) -> bool:
    """Whether it is meant as a time, valid or not, rather than as a graph: no RDF text begins with a digit or a
    sign."""
    if type(value) is int:
        return True
    if isinstance(value, str):
        return value[:1].isdigit() or value.startswith(("-", "+"))
    return not isinstance(value, Iterable)


def _encode(graph: GraphLike, terms: TermDictionary) -> NDArray[np.uint32]:
    """The ids of subjects, predicates and objects, u32[3, n]. pyoxigraph writes a graph faster than its terms can be
    read one by one in Python."""
    try:
        if isinstance(graph, str | bytes):
            return terms.intern_triples(rewritten(graph, RdfFormat.TURTLE, RdfFormat.N_TRIPLES))
        text = serialize(graph_triples(graph), format=RdfFormat.N_TRIPLES)
        assert text is not None  # it is only when a file is given
        return terms.intern_triples(text)
    except SyntaxError as error:
        raise EventError(None, error.lineno, syntax_reason(error)) from error
    except ValueError as error:
        raise EventError(None, None, str(error)) from error


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


def graph_triples(graph: GraphLike) -> Iterable[Triple]:
    """The triples of a graph in whatever form. Raises SyntaxError, ValueError, TypeError, some only when iterated."""
    if type(graph) is list and {*map(type, graph)} == _ALL_TRIPLES:
        return graph
    if isinstance(graph, str | bytes):
        return (quad.triple for quad in parse(graph, RdfFormat.TURTLE))
    if (rdflib := _rdflib()) is not None and isinstance(graph, rdflib.Graph):
        return (_from_rdflib_triple(triple) for triple in graph.triples((None, None, None)))
    if isinstance(graph, Iterable) and not isinstance(graph, Triple | Quad):
        return (_checked(triple) for triple in graph)
    raise ArgumentTypeError(f"not an RDF text, an rdflib.Graph or an iterable of triples: {type(graph).__name__}")


def _checked(triple: object) -> Triple:
    if isinstance(triple, Triple):
        return triple
    if isinstance(triple, Quad):
        return triple.triple
    raise ArgumentTypeError(f"not a pyoxigraph Triple or Quad: {triple!r}")


def _rdflib() -> Any:
    """rdflib, if the program has imported it: else nobody can have made a graph of it. Oxiseq does not need it."""
    return sys.modules.get("rdflib")


def _from_rdflib_triple(triple: tuple[rdflib.term.Node, rdflib.term.Node, rdflib.term.Node]) -> Triple:
    subject, predicate, object_ = (from_rdflib(term) for term in triple)
    if isinstance(subject, Literal) or not isinstance(predicate, NamedNode):
        raise ValueError(f"not an RDF triple: {subject} {predicate} {object_}")
    return Triple(subject, predicate, object_)


def from_rdflib(term: rdflib.term.Node) -> NamedNode | Literal | BlankNode:
    """An rdflib term as pyoxigraph's. Raises ValueError for anything but an IRI, a literal, a blank node."""
    rdflib = _rdflib()
    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if isinstance(term, rdflib.Literal):
        if term.language is not None:
            return Literal(str(term), language=term.language)
        return Literal(str(term), datatype=None if term.datatype is None else NamedNode(str(term.datatype)))
    raise ValueError(f"not an RDF term: {term!r}")
