"""Rows of tables of tuple events as RDF graphs, by semantics.md 3: `_:e a :R ; :a v`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.cells import Coded, read_cells
from oxiseq.engine.events.tuples import TupleRows

RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def row_graphs(batch: TupleRows, vocab: str) -> Iterator[tuple[int, tuple[Triple, ...]]]:
    """(time in µs, triples) of each row; columns that are no attributes are skipped."""
    naming = batch.naming
    columns: list[tuple[NamedNode, Sequence[Literal | NamedNode | None]]] = []
    for name in batch.rows.schema.names:
        column = batch.column(name)
        if column is None or name == naming.time:
            continue
        try:
            terms = _terms(column, name)
        except EventError:
            continue
        if name == naming.type:
            columns.append((RDF_TYPE, [None if t is None else type_iri(t.value, vocab) for t in terms]))
        elif name.isidentifier():
            columns.append((NamedNode(vocab + name), terms))
    for i, time in enumerate(batch.time.tolist()):
        event = BlankNode("e")
        yield time, tuple(Triple(event, p, t) for p, terms in columns if (t := terms[i]) is not None)


def type_iri(name: str, vocab: str) -> NamedNode:
    """The type that a cell names: an IRI, or a name of the vocabulary. Raises ValueError for what is neither."""
    return NamedNode(name if ":" in name else vocab + name)


def _terms(column: object, name: str) -> list[Literal | None]:
    cells = read_cells(column, name)
    if isinstance(cells, Coded):
        distinct: list[Literal | None] = [*cells.terms(), None]
        return [distinct[code] for code in cells.codes.tolist()]
    pairs = zip(cells.values, cells.present, strict=True)
    return [cells.term(value) if there else None for value, there in pairs]
