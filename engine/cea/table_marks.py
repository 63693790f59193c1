"""Marks of events that are rows of a table: predicates are answered on the typed columns, without RDF.

    a comparison of a number with a constant      two comparisons a row (ranges.py)
    a question about one attribute of few values   once for each distinct value, then looked up by its code
    a question about several attributes            the stack machine, numbers without a term, else terms by value

All three say what the exact evaluator says of the terms that the cells stand for (engine/events/cells.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Variable

from oxiseq.engine import kinds
from oxiseq.engine.cea.column_ids import ColumnIds, Recent, sorted_keys
from oxiseq.engine.cea.column_notes import ColumnNotes
from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.cea.machine import LeafMachine
from oxiseq.engine.cea.marks import Marks, symbols
from oxiseq.engine.cea.ranges import Range, as_array, compared, range_of
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.cells import Cells, Coded, Numbers, cell_terms, is_text, read_cells, texts
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.expressions.values import read
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.scope import expression_variables

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = needed("pyarrow")
    pc = needed("pyarrow.compute")

_MOST_KNOWN: Final = 1 << 20
"""Distinct values of a column whose facts are remembered."""
_EXACT: Final = kinds.ROUNDED | kinds.EXACT_INTEGER | kinds.EXACT_NUMBER
_TWO_53: Final = 2**53


class TableMarker:
    """Marks rows for one query. `vocab`: the namespace of types; `window`: the attribute of WITHIN; `summed`: those
    that aggregates are of."""

    def __init__(
        self,
        facts: FactPlan,
        vocab: str,
        terms: TermDictionary,
        by: Sequence[Variable] = (),
        window: Variable | None = None,
        summed: Sequence[Variable] = (),
    ) -> None:
        self._facts = facts
        self._window = window
        self._by, self._summed = tuple(by), tuple(summed)
        self._ids = {a: ColumnIds(terms) for a in (*by, *summed)}
        self._types = {name: i for i, iri in enumerate(facts.types) for name in (iri, iri.removeprefix(vocab))}
        asked = [tuple(sorted(expression_variables(leaf), key=str)) for leaf in facts.leaves]
        self._single = {
            a: _Attribute(facts, tuple(i for i, names in enumerate(asked) if names == (a,))) for a in facts.attributes
        }
        joint = tuple(i for i, names in enumerate(asked) if len(names) != 1)
        self._joint = _Joint(facts, joint) if joint else None
        self._columns = ColumnNotes(facts, window)
        self._asked = tuple(dict.fromkeys((*facts.attributes, *by, *([window] if window else ()), *summed)))
        self._layout: _Layout | None = None
        self._type_numbers = Recent(self._of_types)

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about columns (column_notes.py)."""
        return self._columns.notes

    @property
    def bytes(self) -> int:
        """What it remembers of the terms of cells takes about so much."""
        return sum([ids.bytes for ids in self._ids.values()])

    def mark(self, batch: TupleRows) -> Marks:
        """The marks of the rows, in their order. Raises EventError for a column that cannot be an attribute."""
        count = len(batch)
        layout = self._layout
        if layout is None or not layout.schema.equals(batch.rows.schema) or layout.type != batch.naming.type:
            layout = self._layout = _Layout.of(batch, self._asked)
        if not layout.noted:
            layout.noted = self._columns.look(batch)
        cells = {a: read_cells(batch.rows.column(place), a.value) for a, place in layout.places.items()}
        type_of = self._type_of(batch, layout)
        facts = np.zeros((count, self._facts.words), np.uint64)
        for attribute, single in self._single.items():
            if attribute in cells:
                single.mark(cells[attribute], facts)
            else:
                single.mark(_missing(count), facts)
        if self._joint is not None:
            self._joint.mark(cells, type_of, facts)
        window = None if self._window is None else _window_values(cells.get(self._window), count)
        symbol = symbols(self._facts, facts, type_of)
        values = np.zeros((count, len(self._by) + len(self._summed)), np.int64)
        for i, attribute in enumerate(self._by):
            if attribute in cells:
                values[:, i] = self._ids[attribute].of(cells[attribute], slice(None))
        for i, attribute in enumerate(self._summed, len(self._by)):
            if attribute in cells:
                read = np.flatnonzero(symbol.any(axis=1))
                values[read, i] = self._ids[attribute].of(cells[attribute], read)
        return Marks(symbol, batch.time, window, values)

    def _type_of(self, batch: TupleRows, layout: _Layout) -> NDArray[np.int64]:
        out = np.empty(len(batch), np.int64)
        if not len(batch):
            return out
        cells = read_cells(batch.rows.column(layout.type_place), layout.type)
        assert isinstance(cells, Coded)
        kernels.type_numbers(cells.codes, self._type_numbers.of(cells.values), out)
        return out

    def _of_types(self, names: pa.Array) -> NDArray[np.int64]:
        """i64[1 + names]: their numbers, that of no type first."""
        return np.array([-1, *(self._types.get(text, -1) for text in names.to_pylist())], np.int64)


@dataclass(slots=True)
class _Layout:
    """The needed columns' places in tables of one schema. `noted`: every note on them has been made."""

    schema: pa.Schema
    type: str
    type_place: int
    places: dict[Variable, int]
    noted: bool = False

    @classmethod
    def of(cls, batch: TupleRows, asked: Sequence[Variable]) -> _Layout:
        """That of a batch. Raises EventError if the names of types are no text."""
        schema, name = batch.rows.schema, batch.naming.type
        type_place = schema.get_field_index(name)
        kind = schema.field(type_place).type
        if not (is_text(kind.value_type if pa.types.is_dictionary(kind) else kind) or pa.types.is_null(kind)):
            raise EventError(None, None, f"the column {name!r} holds {kind}; the names of types are text")
        places = {a: schema.get_field_index(a.value) for a in asked}
        return cls(schema, name, type_place, {a: place for a, place in places.items() if place >= 0})


def _missing(count: int) -> Coded:
    return Coded(np.full(count, -1, np.int32), texts([]))


def _window_values(cells: Cells | None, count: int) -> NDArray[np.float64]:
    """The numbers of a column, NaN where there is none."""
    if cells is None:
        return np.full(count, np.nan)
    if isinstance(cells, Numbers):
        numbers = cells.values.astype(np.float64)
        return np.where(cells.valid, numbers, np.nan) if len(cells.valid) else numbers
    values = [read(term) for term in cells.terms()]
    numeric = [float(v.number) if kinds.INTEGER <= v.kind <= kinds.DOUBLE else np.nan for v in values]
    return np.array([*numeric, np.nan], np.float64)[cells.codes]


# --- one attribute ----------------------------------------------------------------------------------


class _Attribute:
    """The leaves that ask for one attribute alone."""

    def __init__(self, facts: FactPlan, leaves: tuple[int, ...]) -> None:
        self._words = facts.words
        self._leaves = {i: facts.leaves[i] for i in leaves}
        self._ranges: dict[int, _Ranges] = {}
        self._values: dict[Any, NDArray[np.uint64]] = {}
        self._of_codes = Recent(self._facts_of)
        what = [compared(leaf) for leaf in self._leaves.values()]
        self._equalities = all(w is not None and w[0] in ("=", "!=") and read(w[2]).kind == kinds.STRING for w in what)
        """Whether all leaves ask for texts: then a text that no leaf names is like any other such."""
        self._named = list(dict.fromkeys(w[2].value for w in what if w is not None)) if self._equalities else []

    def mark(self, cells: Cells, facts: NDArray[np.uint64]) -> None:
        """Set the leaves' facts."""
        if not self._leaves:
            return
        if isinstance(cells, Coded):
            kernels.look_up(cells.codes, self._of_codes.of(cells.values), facts)
            return
        if cells.kind not in self._ranges:
            self._ranges[cells.kind] = _Ranges(self._leaves, cells.kind)
        ranges = self._ranges[cells.kind]
        ranges.mark(cells, facts)
        for leaf, expression in ranges.others.items():
            truth = _by_distinct_value(expression, cells)
            facts[truth, leaf >> 6] |= np.uint64(1 << (leaf & 63))

    def _facts_of(self, values: pa.Array) -> NDArray[np.uint64]:
        """u64[1 + values, words]: the facts by code, those of a missing value first."""
        if self._equalities and is_text(values.type) and len(values):
            return self._of_texts(values)
        return np.concatenate([np.zeros((1, self._words), np.uint64), self._of_values(values)])

    def _of_texts(self, values: pa.Array) -> NDArray[np.uint64]:
        """Only the texts that leaves name are examined one by one."""
        named = texts(self._named).cast(values.type)
        found = pc.index_in(values, named)
        there = np.frombuffer(found.is_valid().cast(pa.uint8()).buffers()[1], np.uint8, len(found))
        place = np.full(len(found), len(named), np.int64)  # `fill_null` and `to_numpy` import pandas where it is
        place[there != 0] = np.from_dlpack(found.drop_null())
        other = "x" + "".join(self._named)  # is none of them
        words = np.stack([self._of_term(Literal(text)) for text in (*self._named, other)])
        return np.concatenate([np.zeros((1, self._words), np.uint64), words[place]])

    def _of_values(self, values: pa.Array) -> NDArray[np.uint64]:
        if len(self._values) > _MOST_KNOWN:
            self._values.clear()
        out = np.zeros((len(values), self._words), np.uint64)
        for i, term in enumerate(cell_terms(values)):
            words = self._values.get(term)
            if words is None:
                words = self._values[term] = self._of_term(term)
            out[i] = words
        return out

    def _of_term(self, term: Term) -> NDArray[np.uint64]:
        words = np.zeros(self._words, np.uint64)
        for leaf, expression in self._leaves.items():
            (attribute,) = expression_variables(expression)
            if holds(expression, {attribute: term}):
                words[leaf >> 6] |= np.uint64(1 << (leaf & 63))
        return words


def _by_distinct_value(expression: Expression, cells: Numbers) -> NDArray[np.int64]:
    """The rows where it holds."""
    (attribute,) = expression_variables(expression)
    keys = cells.values.view(np.int64)
    distinct, inverse = sorted_keys(keys)
    truth = np.array([holds(expression, {attribute: cells.term(v)}) for v in distinct.view(cells.values.dtype)])
    return np.flatnonzero(truth[inverse] & cells.present) if len(truth) else np.zeros(0, np.int64)


class _Ranges:
    """The leaves of one attribute on numbers of a kind; those in `others` are no ranges."""

    def __init__(self, leaves: dict[int, Expression], kind: int) -> None:
        self._kind = kind
        found: list[tuple[int, Range]] = []
        self.others: dict[int, Expression] = {}
        for i, leaf in leaves.items():
            made = range_of(leaf, kind)
            if made is None:
                self.others[i] = leaf
            else:
                found.append((i, made))
        self._low = as_array([r.low for _, r in found], kind)
        self._high = as_array([r.high for _, r in found], kind)
        self._negated = np.array([r.negated for _, r in found], np.int64)
        self._leaf_of = np.array([i for i, _ in found], np.int64)

    def mark(self, cells: Numbers, facts: NDArray[np.uint64]) -> None:
        if len(self._leaf_of):
            compare: Callable[..., None] = (
                kernels.compare_integers if self._kind == kinds.INTEGER else kernels.compare_floats
            )
            compare(cells.values, cells.valid, self._low, self._high, self._negated, self._leaf_of, facts)


# --- several attributes -----------------------------------------------------------------------------


class _Joint:
    """Leaves that ask for several attributes, or none: by the stack machine.

    Its rows hold ids: of terms of a dictionary of its own, and beyond those of the batch's numbers, which need no text.
    """

    def __init__(self, facts: FactPlan, leaves: tuple[int, ...]) -> None:
        self._facts = facts
        self._leaves = leaves
        asked = sorted({v for i in leaves for v in expression_variables(facts.leaves[i])}, key=str)
        self._slots = {a: 1 + i for i, a in enumerate(asked)}
        self._begin()

    def _begin(self) -> None:
        self._terms = TermDictionary()
        self._machine = LeafMachine(self._facts, self._leaves, self._slots, self._terms)

    def mark(self, cells: dict[Variable, Cells], type_of: NDArray[np.int64], facts: NDArray[np.uint64]) -> None:
        """Set the leaves' facts."""
        if len(self._terms) > _MOST_KNOWN:
            self._begin()
        count = len(type_of)
        values = np.zeros((count, 1 + len(self._slots)), np.int64)
        for attribute, slot in self._slots.items():
            column = cells.get(attribute)
            if isinstance(column, Coded):
                values[:, slot] = np.append(self._terms.intern_all(column.terms()), np.uint32(0))[column.codes]
        first = len(self._terms)
        parts, bases = [TermColumns._make(c[:first] for c in self._terms.columns)], [first]
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

        columns = TermColumns._make(np.concatenate(c) for c in zip(*parts, strict=True))
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
