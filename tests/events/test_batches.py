"""Batches as columns, and graphs of all kinds on their way into them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
import rdflib
from event_contents import Contents
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD

A, P = NamedNode("urn:a"), NamedNode("urn:p")
TEXT = '<urn:a> <urn:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n_:x <urn:p> _:y .\n_:y <urn:p> _:x .\n'


def batch_of(sizes: list[int]) -> EventBatch:
    """Events of the given sizes with all triples different."""
    total = sum(sizes)
    ids = np.arange(1, total + 1, dtype=np.uint32)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return EventBatch(np.arange(len(sizes)) * 10, offset, ids, ids + 1000, ids + 2000)


def rows(batch: EventBatch) -> list[tuple[int, list[int]]]:
    pieces = np.split(batch.subject, batch.offset[1:-1]) if len(batch) else []
    return [(int(time), piece.tolist()) for time, piece in zip(batch.time, pieces, strict=True)]


SIZES = st.lists(st.integers(0, 4), max_size=12)


@given(SIZES, st.data())
def test_take_picks_events_in_any_order(sizes: list[int], data: st.DataObject) -> None:
    batch = batch_of(sizes)
    index = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=9)) if sizes else []
    taken = batch.take(np.array(index, np.int64))
    assert rows(taken) == [rows(batch)[event] for event in index]
    assert (taken.object == taken.subject + 2000).all()


@given(SIZES, st.integers(0, 14), st.integers(0, 14))
def test_slices_are_those_of_a_list(sizes: list[int], start: int, stop: int) -> None:
    batch = batch_of(sizes)
    assert rows(batch.slice(start, stop)) == rows(batch)[start:stop]


@given(SIZES, SIZES)
def test_concat_puts_events_behind_each_other(left: list[int], right: list[int]) -> None:
    first, second = batch_of(left), batch_of(right)
    assert rows(EventBatch.concat([first, second])) == rows(first) + rows(second)
    assert len(EventBatch.concat([])) == 0


def test_all_kinds_of_graphs_give_the_same_event(contents: Contents) -> None:
    one = Literal("01", datatype=NamedNode(XSD + "integer"))
    x, y = BlankNode("x"), BlankNode("y")
    triples = [Triple(A, P, one), Triple(x, P, y), Triple(y, P, x)]
    graphs = [
        TEXT,
        TEXT.encode(),
        "@prefix : <urn:> . :a :p 1 . _:x :p _:y . _:y :p _:x .",
        triples,
        iter(triples),
        [Quad(*triple, NamedNode("urn:g")) for triple in triples],
    ]
    terms = TermDictionary()
    events = contents([encode_events([(5, graph) for graph in graphs], terms)], terms)
    assert len({str(event) for event in events}) == 1
    assert events[0][1][0] == ("<urn:a>", "<urn:p>", f'"1"^^<{XSD}integer>')
    assert events[0][1][1:] == [("_:0", "<urn:p>", "_:1"), ("_:1", "<urn:p>", "_:0")]


def test_rdflib_graphs(contents: Contents) -> None:
    graph = rdflib.Graph()
    data = '<urn:a> <urn:p> "a"@de-CH, "b", 1.50, "x"^^<urn:t>, "2024-01-01T00:00:00+00:00"^^xsd:dateTime, [] .'
    graph.parse(data=f"@prefix xsd: <{XSD}> . {data}", format="turtle")
    terms = TermDictionary()
    [(time, triples)] = contents([encode_events([(datetime(1970, 1, 1, tzinfo=UTC), graph)], terms)], terms)
    assert time == 0
    expected = ['"a"@de-ch', '"b"', f'"1.5"^^<{XSD}decimal>', '"x"^^<urn:t>', "_:0"]
    expected.append(f'"2024-01-01T00:00:00Z"^^<{XSD}dateTime>')
    assert sorted(triple[2] for triple in triples) == sorted(expected)


def test_blank_nodes_of_two_events_are_different() -> None:
    terms = TermDictionary()
    batch = encode_events([(1, "_:x <urn:p> 1 ."), (2, "_:x <urn:p> 1 .")], terms)
    assert batch.subject[0] != batch.subject[1]
    assert batch.object[0] == batch.object[1]


def test_an_empty_graph_is_an_event(contents: Contents) -> None:
    terms = TermDictionary()
    assert contents([encode_events([(1, ""), (2, []), (3, rdflib.Graph())], terms)], terms) == [
        (1, []),
        (2, []),
        (3, []),
    ]
    assert len(encode_events([], terms)) == 0


def test_malformed_text_tells_the_line() -> None:
    with pytest.raises(EventError) as caught:
        encode_events([(1, "<urn:a> <urn:p> 1 .\n<urn:a> <urn:p> oops .")], TermDictionary())
    assert caught.value.line == 2
    assert caught.value.file is None
    assert "oops" in str(caught.value)


def test_wrong_graphs() -> None:
    terms = TermDictionary()
    wrong = rdflib.Graph()
    wrong.add((rdflib.Literal("x"), rdflib.URIRef("urn:p"), rdflib.URIRef("urn:a")))
    with pytest.raises(EventError, match="not an RDF triple"):
        encode_events([(1, wrong)], terms)
    for graph in (5, Triple(A, P, A), [(A, P, A)]):
        with pytest.raises(TypeError):
            encode_events([(1, graph)], terms)  # type: ignore[list-item]  # the wrong type is the point
