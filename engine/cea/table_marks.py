"""Marks of events that are rows of a table: predicates are answered on the typed columns, without RDF.

    a question about one attribute       one kernel call for all columns (rows.py)
    one about a number that is no range  once for each distinct number (column_facts.py)
    a question about several attributes  the stack machine, numbers without a term, else terms by value

All three say what the exact evaluator says of the terms that the cells stand for (engine/events/cells.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine import kinds
from oxiseq.engine.cea.column_facts import MOST_KNOWN, AttributeFacts
from oxiseq.engine.cea.column_ids import ColumnIds, Recent
from oxiseq.engine.cea.column_notes import ColumnNotes
from oxiseq.engine.cea.events import FEW, Marks
from oxiseq.engine.cea.facts import FactPlan, LeafMachine, symbols
from oxiseq.engine.cea.plan import words_of
from oxiseq.engine.cea.rows import RowProgram, stored_numbers
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.cells import Cells, Coded, Numbers, is_text, read_cells
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.expressions.values import read
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.cea.records import Few
from oxiseq.engine.kernels.cea.rows import Room
from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

_EXACT: Final = kinds.ROUNDED | kinds.EXACT_INTEGER | kinds.EXACT_NUMBER
_TWO_53: Final = 2**53
_MOST_LAYOUTS: Final = 4
"""Schemas of tables that are known at once."""
_NO_WINDOW: Final = np.zeros(0, np.float64)
_NO_VALUES: Final = np.zeros((FEW, 0), np.int64)


class TableMarker(Stateful):
    """Marks rows for one query. `vocab`: the namespace of types; `window`: the attribute of WITHIN; `summed`: those
    that aggregates are of."""

    made_of = (unsaved("_ids"),)

    def __init__(
        self,
        facts: FactPlan,
        vocab: str,
        terms: TermDictionary,
        by: Sequence[Variable] = (),
        window: Variable | None = None,
        summed: Sequence[Variable] = (),
    ) -> None:
        self._facts, self._window = facts, window
        self._by, self._summed = tuple(by), tuple(summed)
        self._ids = {a: ColumnIds(terms) for a in (*by, *summed)}
        self._types = {name: i for i, iri in enumerate(facts.types) for name in (iri, iri.removeprefix(vocab))}
        self._type_numbers = Recent(self._of_types)
        asked = [tuple(sorted(expression_variables(leaf), key=str)) for leaf in facts.leaves]
        single = {a: tuple(i for i, names in enumerate(asked) if names == (a,)) for a in facts.attributes}
        self._single = {a: AttributeFacts(facts, leaves) for a, leaves in single.items() if leaves}
        joint = tuple(i for i, names in enumerate(asked) if len(names) != 1)
        self._joint = _Joint(facts, joint) if joint else None
        self._columns = ColumnNotes(facts, window)
        self._asked = tuple(dict.fromkeys((*facts.attributes, *by, *([window] if window else ()), *summed)))
        self._layouts: list[_Layout] = []
        self._few = self._room(FEW)
        """Where a batch of at most so many rows is marked."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about columns (column_notes.py)."""
        return self._columns.notes

    def mark(self, batch: TupleRows) -> Marks:
        """The marks of the rows, in their order. Raises EventError for a column that cannot be an attribute."""
        count = len(batch)
        layout = self._layout_of(batch)
        if not layout.noted:
            layout.noted = self._columns.look(batch)
        cells = self._cells(batch, layout)
        if layout.reads_types:
            types = read_cells(batch.rows.column(layout.type_place), layout.type)
            assert isinstance(types, Coded)
            layout.program.give(cells, types)
        elif cells:
            layout.program.give(cells)
        room = self._few if count <= FEW else self._room(count)
        layout.program.mark(batch, room, whole=layout.whole)
        facts, type_of, window, symbol = room.arrays
        if not layout.whole:
            symbol = self._finished(layout.program, cells, facts[:count], type_of[:count])
        elif count <= FEW:
            symbol = symbol[:count].copy()
        if self._window is None:
            return Marks(symbol, batch.time, None, self._values(cells, symbol))
        coded = cells.get(self._window)
        window = _numbers(coded) if isinstance(coded, Coded) else window[:count].copy()
        return Marks(symbol, batch.time, window, self._values(cells, symbol))

    def _values_of_few(self, batch: TupleRows, layout: _Layout) -> NDArray[np.int64]:
        """Those of PARTITION BY."""
        values = np.zeros((len(batch.time), len(self._by)), np.int64)
        for i, attribute, place, stored in layout.keys:
            ids = self._ids[attribute]
            if stored is None or not ids.find(batch.exported, place, stored, values, i):
                values[:, i] = ids.of(read_cells(batch.rows.column(place), attribute.value), slice(None))
        return values

    def room_in(self, symbol: NDArray[np.uint64], window: NDArray[np.float64]) -> Pointers[Room]:
        """To mark as many rows as these have, in them. `window`: empty where no attribute is WITHIN's."""
        count = len(symbol)
        facts = np.empty((count, self._facts.words), np.uint64)
        return Pointers(Room(facts, np.empty(count, np.int64), window, symbol))

    def mark_few(self, batch: TupleRows, room: Pointers[Room]) -> NDArray[np.int64] | None:
        """Write what `mark` would say of a few rows to `room`; the values of PARTITION BY. None where one call of the
        kernel does not find all of it, or aggregates need values: nothing has happened then. Raises EventError as
        `mark`."""
        layout = self._layout_of(batch)
        if not layout.at_once:
            return None
        if not layout.noted:
            layout.noted = self._columns.look(batch)
        values = self._values_of_few(batch, layout) if self._by else _NO_VALUES
        layout.program.mark(batch, room, whole=True)
        return values

    def _cells(self, batch: TupleRows, layout: _Layout) -> dict[Variable, Cells]:
        """Those that are read here, and not by the kernel alone."""
        return {a: read_cells(batch.rows.column(place), a.value) for a, place in layout.cells.items()}

    def _finished(
        self,
        program: RowProgram,
        cells: dict[Variable, Cells],
        facts: NDArray[np.uint64],
        type_of: NDArray[np.int64],
    ) -> NDArray[np.uint64]:
        """Symbols, from the facts that the program found and those that it does not."""
        for attribute, leaves in program.others.items():
            if isinstance(numbers := cells[attribute], Numbers):
                self._single[attribute].mark_others(leaves, numbers, facts)
        if self._joint is not None:
            self._joint.mark(cells, type_of, facts)
        return symbols(self._facts, facts, type_of)

    def _values(self, cells: dict[Variable, Cells], symbol: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Those of PARTITION BY, and of aggregates where an event satisfies an atom."""
        values = np.zeros((len(symbol), len(self._by) + len(self._summed)), np.int64)
        for i, attribute in enumerate(self._by):
            if attribute in cells:
                values[:, i] = self._ids[attribute].of(cells[attribute], slice(None))
        for i, attribute in enumerate(self._summed, len(self._by)):
            if attribute in cells:
                rows = np.flatnonzero(symbol.any(axis=1))
                values[rows, i] = self._ids[attribute].of(cells[attribute], rows)
        return values

    def _room(self, count: int) -> Pointers[Room]:
        """For so many rows."""
        symbol = np.empty((count, words_of(self._facts.atoms)), np.uint64)
        return self.room_in(symbol, _NO_WINDOW if self._window is None else np.empty(count, np.float64))

    def _of_types(self, names: pa.Array) -> NDArray[np.int64]:
        """i64[1 + names]: their numbers, that of no type first."""
        return np.array([-1, *(self._types.get(text, -1) for text in names.to_pylist())], np.int64)

    def _layout_of(self, batch: TupleRows) -> _Layout:
        """Raises EventError if the names of types are no text."""
        schema, name = batch.rows.schema, batch.naming.type
        for layout in self._layouts:
            if layout.type == name and layout.schema.equals(schema):
                return layout
        type_place = schema.get_field_index(name)
        kind = schema.field(type_place).type
        if not (is_text(kind.value_type if pa.types.is_dictionary(kind) else kind) or pa.types.is_null(kind)):
            raise EventError(None, None, f"the column {name!r} holds {kind}; the names of types are text")
        places = {a: place for a in self._asked if (place := schema.get_field_index(a.value)) >= 0}
        program = RowProgram.of(
            self._facts, schema, type_place, places, self._single, self._window, self._type_numbers.of
        )
        joint = () if self._joint is None else self._joint.attributes
        read = {*program.given, *program.others, *self._by, *self._summed, *joint}
        cells = {a: place for a, place in places.items() if a in read}
        whole = self._joint is None and not program.others
        at_once = whole and not (program.gives_types or program.given or self._summed)
        keys = [
            (i, a, places[a], stored_numbers(schema.field(places[a]).type))
            for i, a in enumerate(self._by)
            if a in places
        ]
        layout = _Layout(schema, name, type_place, program, cells, program.gives_types, whole, at_once, keys)
        self._layouts = [layout, *self._layouts[: _MOST_LAYOUTS - 1]]
        return layout


@dataclass(slots=True)
class _Layout:
    """How tables of one schema are read. `cells`: the places of attributes that are read as cells; `reads_types`: so is
    the type; `whole`: the program does all; `at_once`: of few rows in one call, and nothing is summed; `noted`: every
    note on its columns has been made. `keys`: of PARTITION BY the number, attribute, place and form (`stored_numbers`)
    of those that there are."""

    schema: pa.Schema
    type: str
    type_place: int
    program: RowProgram
    cells: dict[Variable, int]
    reads_types: bool
    whole: bool
    at_once: bool
    keys: list[tuple[int, Variable, int, int | None]]
    noted: bool = False


def _numbers(cells: Coded) -> NDArray[np.float64]:
    """The numbers of a column, NaN where there is none."""
    values = [read(term) for term in cells.terms()]
    numeric = [float(v.number) if kinds.INTEGER <= v.kind <= kinds.DOUBLE else np.nan for v in values]
    return np.array([*numeric, np.nan], np.float64)[cells.codes]


class _Joint:
    """Leaves that ask for several attributes, or none: by the stack machine.

    Its rows hold ids: of terms of a dictionary of its own, and beyond those of the batch's numbers, which need no text.
    """

    def __init__(self, facts: FactPlan, leaves: tuple[int, ...]) -> None:
        self._facts = facts
        self._leaves = leaves
        self.attributes = sorted({v for i in leaves for v in expression_variables(facts.leaves[i])}, key=str)
        """Those that they ask for."""
        self._slots = {a: 1 + i for i, a in enumerate(self.attributes)}
        self._begin()

    def _begin(self) -> None:
        self._terms = TermDictionary()
        self._machine = LeafMachine(self._facts, self._leaves, self._slots, self._terms)

    def mark(self, cells: dict[Variable, Cells], type_of: NDArray[np.int64], facts: NDArray[np.uint64]) -> None:
        """Set the leaves' facts."""
        if len(self._terms) > MOST_KNOWN:
            self._begin()
        count = len(type_of)
        values = np.zeros((count, 1 + len(self._slots)), np.int64)
        for attribute, slot in self._slots.items():
            column = cells.get(attribute)
            if isinstance(column, Coded):
                values[:, slot] = np.append(self._terms.intern_all(column.terms()), np.uint32(0))[column.codes]
        first = len(self._terms)
        parts, bases = [TermColumns(*[c[:first] for c in self._terms.columns])], [first]
        numbers: list[Numbers] = []
        for attribute, slot in self._slots.items():
            column = cells.get(attribute)
            if isinstance(column, Numbers):
                values[:, slot] = np.where(column.present, bases[-1] + np.arange(count), 0)
                parts.append(_number_columns(column))
                numbers.append(column)
                bases.append(bases[-1] + count)

        def term(number: int) -> Term:
            if number < first:
                return self._terms.term(number)
            which, row = divmod(number - first, count)
            return numbers[which].term(numbers[which].values[row])

        columns = TermColumns(*[np.concatenate(c) for c in zip(*parts, strict=True)])
        self._machine.mark(values, type_of, columns, term, facts)


def _number_columns(cells: Numbers) -> TermColumns:
    """What the term columns would hold of these numbers."""
    count = len(cells.values)
    kind = np.full(count, cells.kind, np.uint8)
    number = cells.values.astype(np.float64)
    if cells.kind != kinds.INTEGER:
        exact, quality = np.zeros(count, np.int64), np.full(count, kinds.ROUNDED | kinds.EXACT_NUMBER, np.uint8)
    else:
        exact = cells.values
        small = (exact >= -_TWO_53) & (exact <= _TWO_53)
        quality = np.where(small, _EXACT, kinds.ROUNDED | kinds.EXACT_INTEGER).astype(np.uint8)
    return TermColumns(kind, number, exact, quality)


class AtOnce:
    """Marks batches of few rows that need not wait for others, where the automaton reads them (`few`): past `Marks` and
    merging, to `CeaRun.feed_few`. What is seen from outside is the same: between two calls of the run such a batch may
    have to become one that waits (`taken`).

    For a query of one stream without values that aggregates need. `time`: of the batch that has been marked and not
    been fed, i64[n], µs; None: there is none. `values`: of it, of PARTITION BY, i64[n, k] as in Marks,
    and perhaps further rows."""

    def __init__(self, marker: TableMarker, few: Few) -> None:
        self._marker, self._few = marker, few
        self._room = marker.room_in(self._few.symbol, self._few.attribute)
        self.time: NDArray[np.int64] | None = None
        self.values = np.zeros((0, 0), np.int64)

    def mark(self, batch: TupleRows) -> bool:
        """Mark a batch that comes in order; False: it is not one for this, and nothing has happened. Raises EventError
        as `TableMarker.mark`."""
        if not batch.rising or len(batch.time) > FEW:
            return False
        values = self._marker.mark_few(batch, self._room)
        if values is None:
            return False
        self.time, self.values = batch.time, values
        return True

    def taken(self) -> Marks | None:
        """The marked batch, as others are, once."""
        time, self.time = self.time, None
        if time is None:
            return None
        few, count = self._few, len(time)
        attribute = few.attribute[:count].copy() if len(few.attribute) else None
        return Marks(few.symbol[:count].copy(), time, attribute, self.values[:count])
