"""Columns that never have the type that a query compares them with: text with a number, a date with text. All the
engine can say of each row is "no", so one note for the column says it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, Variable

from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.cea.ranges import compared
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.normal import XSD

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

_NUMBERS, _TEXT = "numbers", "text"
_HOLDS: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    _TEXT: lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    _NUMBERS: lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind),
    "true and false": lambda kind: pa.types.is_boolean(kind),
    "times with a date": lambda kind: pa.types.is_timestamp(kind),
    "dates": lambda kind: pa.types.is_date(kind),
}
_IS: Final = {
    "string": _TEXT,
    "boolean": "true and false",
    "dateTime": "times with a date",
    "date": "dates",
    **dict.fromkeys(("integer", "decimal", "float", "double"), _NUMBERS),
}


class ColumnNotes:
    """What there is to say about the tables of one query; `notes` grows. `window`: the attribute of WITHIN."""

    def __init__(self, facts: FactPlan, window: Variable | None) -> None:
        self.notes: tuple[str, ...] = ()
        self._asked: dict[str, list[tuple[str, str]]] = {}
        for what in filter(None, map(compared, facts.leaves)):
            name, attribute, literal, _ = what
            kind = _IS.get(literal.datatype.value.removeprefix(XSD))
            if kind is not None:
                self._asked.setdefault(attribute.value, []).append((kind, f"{attribute.value} {name} {_text(literal)}"))
        if window is not None:
            self._asked.setdefault(window.value, []).append((_NUMBERS, f"WITHIN ... [{window.value}]"))
        self._known: set[tuple[str, pa.DataType]] = set()

    def look(self, batch: TupleRows) -> bool:
        """Notes the types of a batch's columns; returns whether another batch of its schema would add nothing."""
        whole = True
        for name, asked in self._asked.items():
            column = batch.column(name)
            if column is None or (name, column.type) in self._known:
                continue
            if column.null_count == len(column):
                whole = False
                continue
            self._known.add((name, column.type))
            holds = _kind_of(column.type)
            for kind, text in asked:
                if holds is not None and holds != kind:
                    self._say(name, holds, kind, text, column)
        return whole

    def _say(self, name: str, holds: str, kind: str, text: str, column: pa.Array) -> None:
        told = f"the column {name!r} holds {holds}{_example(column) if holds == _TEXT else ''}, and {text} "
        told += f"asks for {kind}: none of its rows can be it; "
        if kind == _NUMBERS and holds == _TEXT:
            told += "give the column as numbers (in CSV one cell that is no number makes a column text)"
        else:
            told += f"give the column as {kind}, or compare it with {holds}"
        if told not in self.notes:
            self.notes = (*self.notes, told)


def _kind_of(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return next((word for word, is_one in _HOLDS.items() if is_one(kind)), None)


def _example(column: pa.Array) -> str:
    """The first cell that is no number, else the first one."""
    cells = [cell for cell in column.slice(0, 1000).to_pylist() if cell is not None]
    found = next((cell for cell in cells if not _is_number(cell)), cells[0] if cells else None)
    return "" if found is None else f" (such as {found[:40]!r})"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _text(literal: Literal) -> str:
    return literal.value if _IS.get(literal.datatype.value.removeprefix(XSD)) == _NUMBERS else f"'{literal.value}'"
