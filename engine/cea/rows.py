"""The columns of tables of one schema as a program for one kernel call (kernels/cea/rows.py).

    whole numbers, floats        two comparisons a row for each comparison with a constant (ranges.py)
    texts in a dictionary        looked up by code: each value is examined once for each dictionary
    all others                   read as cells first (events/cells.py), then one of these

The first two are read where Arrow has them. What one kernel call cannot answer (`others`, and leaves of several
attributes) is left to table_marks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine import kinds
from oxiseq.engine.cea.column_facts import AttributeFacts
from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.events.cells import Cells, Coded, is_text
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.cea import rows as k
from oxiseq.engine.kernels.events import arrow
from oxiseq.engine.kernels.memory.pointers import Pointers, address_of, call
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

Table: TypeAlias = NDArray[Any]
"""What the codes of a dictionary mean, the missing one first."""
_INTEGERS: Final = {
    "int64": arrow.I64,
    "int32": arrow.I32,
    "int16": arrow.I16,
    "int8": arrow.I8,
    "uint32": arrow.U32,
    "uint16": arrow.U16,
    "uint8": arrow.U8,
}
"""By Arrow's name of the type: this module is loaded where pyarrow is not installed, too."""
_FLOATS: Final = {"double": (arrow.F64, kinds.DOUBLE), "float": (arrow.F32, kinds.FLOAT)}
_DECODED: Final = {"uint64": kinds.INTEGER, "halffloat": kinds.FLOAT}


@dataclass(slots=True)
class _Column:
    """A column and its record. `cells`: whether it is read as cells first."""

    place: int
    kind: int | None
    """Of numbers, if it may hold some."""
    use: int
    stored: int
    cells: bool
    table_of: Callable[[pa.Array], Table]
    attribute: Variable | None = None
    kept: tuple[Any, ...] = ()
    """What the addresses in the record lead to."""


@dataclass(slots=True)
class RowProgram:
    """The program of a schema. `others`: by attribute, leaves of numbers that are no ranges."""

    facts: FactPlan
    columns: list[_Column]
    records: NDArray[Any]
    pointers: Pointers[k.Program]
    others: dict[Variable, tuple[int, ...]]

    @classmethod
    def of(
        cls,
        facts: FactPlan,
        schema: pa.Schema,
        type_place: int,
        places: Mapping[Variable, int],
        asked: Mapping[Variable, AttributeFacts],
        window: Variable | None,
        of_types: Callable[[pa.Array], Table],
    ) -> RowProgram:
        """`places`: of attributes that there are; `of_types`: the numbers of types by code."""

        def nothing(values: pa.Array) -> Table:
            return np.zeros((1 + len(values), facts.words), np.uint64)

        columns = [_column(schema, type_place, k.TYPES, of_types)]
        for attribute in dict.fromkeys([*asked, *([window] if window is not None else [])]):
            if attribute in places:
                of_attribute = asked[attribute].table if attribute in asked else nothing
                columns.append(_column(schema, places[attribute], k.FACTS, of_attribute, attribute))
        records, ranges = np.zeros(len(columns), k.COLUMN), list[tuple[Any, ...]]()
        others: dict[Variable, tuple[int, ...]] = {}
        for record, column in zip(records, columns, strict=True):
            named = column.attribute
            record["place"] = -1 if column.cells else column.place
            record["use"], record["stored"] = column.use, column.stored
            record["window"], record["low"] = named is not None and named == window, len(ranges)
            if column.kind is not None and named is not None and named in asked:
                found, beside = asked[named].ranges(column.kind)
                ranges += found
                others |= {named: beside} if beside else {}
            record["high"] = len(ranges)
        plan = (facts.gates, facts.any_of, facts.first_atom, facts.atom_of, facts.masks)
        return cls(facts, columns, records, Pointers(k.Program(records, np.array(ranges, k.RANGE), *plan)), others)

    @property
    def given(self) -> list[Variable]:
        """The attributes that are read as cells."""
        return [c.attribute for c in self.columns if c.cells and c.attribute is not None]

    @property
    def gives_types(self) -> bool:
        """Whether the type is."""
        return self.columns[0].cells

    def give(self, cells: Mapping[Variable, Cells], types: Coded | None = None) -> None:
        """The columns of a batch that are read as cells."""
        for record, column in zip(self.records, self.columns, strict=True):
            if not column.cells:
                continue
            given = types if column.attribute is None else cells[column.attribute]
            assert given is not None
            record["first"] = record["valid"] = 0
            if isinstance(given, Coded):
                table = column.table_of(given.values)
                codes = np.require(given.codes, np.int32, ("C", "W"))
                column.kept = (given, codes, table)
                record["use"] = k.TYPES if column.attribute is None else k.FACTS
                record["stored"], record["values"], record["table"] = arrow.I32, address_of(codes), address_of(table)
            else:
                bits = np.packbits(given.valid, bitorder="little")
                column.kept = (given, bits)
                record["use"], record["values"] = k.NUMBERS, address_of(given.values)
                record["stored"] = arrow.I64 if given.kind == kinds.INTEGER else arrow.F64
                record["valid"] = address_of(bits) if len(bits) else 0

    def mark(self, batch: TupleRows, room: Pointers[k.Room], *, whole: bool) -> None:
        """As `kernels.cea.rows.mark_rows`."""
        count, leaves = len(batch.time), len(self.facts.leaves)
        while (new := call(k.mark_rows, batch.exported, self.pointers, room, leaves, count, whole)) != k.DONE:
            self._learn(new, batch)

    def _learn(self, number: int, batch: TupleRows) -> None:
        """The dictionary of a column is new."""
        column = self.columns[number]
        values = batch.rows.column(column.place).dictionary
        if values.null_count:
            made = column.table_of(values.drop_null())
            there = np.from_dlpack(values.is_valid().cast(pa.uint8()))  # `to_numpy` imports pandas
            table = made[np.concatenate([[0], np.where(there, np.cumsum(there, dtype=np.int64), 0)])]
        else:
            table = column.table_of(values)
        column.kept = (values, table)
        self.records[number]["table"] = address_of(table)


def _column(
    schema: pa.Schema,
    place: int,
    use: int,
    table_of: Callable[[pa.Array], Table],
    attribute: Variable | None = None,
) -> _Column:
    kind = schema.field(place).type
    if pa.types.is_dictionary(kind):
        value, stored = kind.value_type, _INTEGERS.get(str(kind.index_type))
        plain = stored is not None and (pa.types.is_string(value) or pa.types.is_large_string(value))
        number = None if is_text(value) else _kind_of(str(value))
        return _Column(place, number, use, stored or 0, not plain, table_of, attribute)
    name = str(kind)
    if attribute is not None and name in _INTEGERS:
        return _Column(place, kinds.INTEGER, k.NUMBERS, _INTEGERS[name], False, table_of, attribute)
    if attribute is not None and name in _FLOATS:
        return _Column(place, _FLOATS[name][1], k.NUMBERS, _FLOATS[name][0], False, table_of, attribute)
    return _Column(place, _kind_of(name), use, 0, True, table_of, attribute)


def stored_numbers(kind: pa.DataType) -> int | None:
    """How a column of this type stores integers or doubles; None: it holds something else, or they have to be read as
    cells."""
    return arrow.F64 if str(kind) == "double" else _INTEGERS.get(str(kind))


def _kind_of(name: str) -> int | None:
    """Of the numbers of a type."""
    if name in _INTEGERS:
        return kinds.INTEGER
    return _FLOATS[name][1] if name in _FLOATS else _DECODED.get(name)
