"""Rows of tables as events of graphs, column by column: `_:e a :R ; :a v`, as semantics.md 3 says of CEQL's events.

In the flow: files, Arrow tables, pandas frames → batches of rows (tuples.py) → **event batches** → graph patterns.
Only the columns that a query reads become triples; no RDF text is written or parsed. Each distinct value of a coded
column, and each number, is looked up in the term dictionary once per batch.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.events.cells import Coded, Numbers, read_cells
from oxiseq.engine.events.number_ids import number_ids
from oxiseq.engine.events.row_graphs import RDF_TYPE, type_iri
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

Ids = NDArray[np.uint32]


@dataclass(slots=True, eq=False)
class RowEvents(EventBatch):
    """A batch of events that were rows. `rows`: with all their columns, to return those that come too late."""

    rows: TupleRows

    def take(self, index: NDArray[np.integer]) -> RowEvents:
        """As there; the rows too."""
        some = EventBatch.take(self, index)
        rows = self.rows.take(np.asarray(index, np.int64))
        return RowEvents(some.time, some.offset, some.subject, some.predicate, some.object, rows)


class RowEncoder:
    """Encodes the rows of a query's streams in its dictionary.

    `vocab`: the namespace of columns and types. `asked`: IRIs of the predicates that the query reads; other columns
    are not read. None: it reads all; then columns whose names are no names of attributes are skipped.
    """

    def __init__(self, terms: TermDictionary, vocab: str, asked: Collection[str] | None) -> None:
        self._terms, self._vocab, self._asked = terms, vocab, asked

    def encode(self, batch: TupleRows) -> RowEvents:
        """The events of the rows, in their order. Raises EventError for a column that cannot be an attribute."""
        columns = [(predicate, ids) for predicate, ids in map(self._column, *self._named(batch)) if predicate]
        count = len(batch)
        objects = np.zeros((count, len(columns)), np.uint32)
        for i, (_, ids) in enumerate(columns):
            objects[:, i] = ids
        there = objects != 0
        sizes = there.sum(axis=1)
        subject = np.repeat(self._terms.blanks(count), sizes)
        predicate = np.broadcast_to(np.array([p for p, _ in columns], np.uint32), objects.shape)[there]
        event = RowEvents(batch.time, offsets(sizes), subject, predicate, objects[there], batch)
        self._terms.hold(*event.ids)
        return event

    def _named(self, batch: TupleRows) -> tuple[list[str], list[Any], list[bool]]:
        """The columns that the query reads: names, cells, and which one holds types."""
        naming, names = batch.naming, batch.rows.schema.names
        asked = [name for name in dict.fromkeys(names) if name != naming.time and self._is_asked(name, naming.type)]
        if twice := [name for name in asked if names.count(name) > 1]:
            raise EventError("the table", None, f"two columns are called {twice[0]!r}")
        return asked, [batch.column(name) for name in asked], [name == naming.type for name in asked]

    def _is_asked(self, name: str, type_column: str) -> bool:
        if self._asked is None:
            return name == type_column or name.isidentifier()
        return (RDF_TYPE.value if name == type_column else self._vocab + name) in self._asked

    def _column(self, name: str, column: Any, types: bool) -> tuple[int, Ids]:
        """The id of its predicate and those of its values, 0 where one is missing."""
        cells = read_cells(column, name)
        predicate = int(self._terms.constant(NamedNode(RDF_TYPE.value if types else self._vocab + name)))
        if isinstance(cells, Numbers):
            if types:
                raise EventError("the table", None, f"the column {name!r} holds numbers; the names of types are text")
            return predicate, np.where(cells.present, number_ids(self._terms, cells.kind, cells.values), np.uint32(0))
        of_code = self._types(cells, name) if types else self._terms.intern_all(cells.terms())
        return predicate, np.append(of_code, np.uint32(0))[cells.codes]

    def _types(self, cells: Coded, name: str) -> Ids:
        try:
            texts = [str(text) for text in cells.values.to_pylist()]
            return self._terms.intern_all([type_iri(text, self._vocab) for text in texts])
        except ValueError as error:
            raise EventError("the table", None, f"the column {name!r}, the type of an event: {error}") from error
