"""Columns of tables as attributes of tuple events: typed arrays, and the RDF term that a cell stands for.

In the flow: Arrow column → **cells** → facts about events (engine/cea/table_marks.py). What a cell means:

    integers           xsd:integer           bool           xsd:boolean       date32, date64   xsd:date
    float64            xsd:double            string         xsd:string        time32, time64   xsd:time
    float16, float32   xsd:float             decimal        xsd:decimal       duration         xsd:dayTimeDuration
    timestamp          xsd:dateTime, in UTC if the column has a zone, else local

A null is an attribute that the event lacks. Other types are refused when a query reads the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import to_duration_literal, to_text
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.normal import XSD, normalise
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = needed("pyarrow")
    pc = needed("pyarrow.compute")

_ALL_THERE: Final = np.zeros(0, np.bool_)
_NO_CODE: Final = -1
_INTEGER: Final = NamedNode(XSD + "integer")


@dataclass(frozen=True, slots=True)
class Numbers:
    """n numbers of one kind: `values` i64[n] (INTEGER) or f64[n] (FLOAT, DOUBLE); where one is missing, any number.

    `valid`: b1[n], or empty when none is missing.
    """

    kind: int
    values: NDArray[Any]
    valid: NDArray[np.bool_]

    @property
    def present(self) -> NDArray[np.bool_]:
        """b1[n]."""
        return self.valid if len(self.valid) else np.ones(len(self.values), np.bool_)

    def term(self, value: Any) -> Literal:
        """The term of one of the values."""
        return number_term(self.kind, value)


@dataclass(frozen=True, slots=True)
class Coded:
    """n cells with few distinct values: codes i32[n] into `values`, an Arrow array without nulls; -1: missing."""

    codes: NDArray[np.int32]
    values: pa.Array

    def terms(self) -> list[Literal]:
        """The terms of all values."""
        return cell_terms(self.values)


Cells: TypeAlias = Numbers | Coded


def read_cells(column: pa.Array, name: str) -> Cells:
    """A column, which is called `name` in errors. Raises EventError for a type that is no attribute's."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        if is_text(kind.value_type):
            return _coded(column)
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_null(kind):
        return Coded(np.full(len(column), _NO_CODE, np.int32), texts([]))
    if pa.types.is_uint64(kind) and len(column) and (pc.max(column).as_py() or 0) > np.iinfo(np.int64).max:
        return _coded(column.dictionary_encode())  # beyond 64 bits: as terms
    if pa.types.is_integer(kind):
        return _numbers(kinds.INTEGER, column, pa.int64())
    if pa.types.is_floating(kind):
        return _numbers(kinds.DOUBLE if pa.types.is_float64(kind) else kinds.FLOAT, column, pa.float64())
    if is_text(kind) or _maker(kind) is not None:
        return _coded(column.dictionary_encode())
    raise EventError(None, None, f"the column {name!r} holds {kind}, which is no attribute of an event")


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of text, written out."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _numbers(kind: int, column: pa.Array, wide: pa.DataType) -> Numbers:
    """Arrays of their own, so that kernels meet no read-only ones."""
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    valid = _ALL_THERE
    if column.null_count:
        valid = np.array(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        column = column.fill_null(0)
    dtype = np.int64 if kind == kinds.INTEGER else np.float64
    return Numbers(kind, _own(column if column.type == wide else column.cast(wide), dtype), valid)


def _coded(column: pa.DictionaryArray) -> Coded:
    indices, values = column.indices, column.dictionary
    if indices.null_count:
        indices = indices.cast(pa.int32()).fill_null(_NO_CODE)
    codes = _own(indices, np.int32)
    if values.null_count:
        there = np.array(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        place = np.where(there, np.cumsum(there) - 1, _NO_CODE).astype(np.int32)
        codes = np.append(place, np.int32(_NO_CODE))[codes]
        values = values.drop_null()
    return Coded(codes, values)


def _own(column: pa.Array, dtype: Any) -> NDArray[Any]:
    return np.array(np.from_dlpack(column), dtype)  # not `to_numpy`, which imports pandas


def texts(of: Sequence[str]) -> pa.StringArray:
    """They as an Arrow array. Not `pa.array`, which imports pandas where it is installed."""
    encoded = [text.encode() for text in of]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


# --- terms ----------------------------------------------------------------------------------------


def number_term(kind: int, value: Any) -> Literal:
    """The term of a number, in normal form."""
    if kind == kinds.INTEGER:
        return Literal(str(int(value)), datatype=_INTEGER)  # is in normal form
    text = repr(float(value)) if kind == kinds.DOUBLE else str(np.float32(value))
    text = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(text, text)
    return _literal("double" if kind == kinds.DOUBLE else "float", text)


def cell_terms(values: pa.Array) -> list[Literal]:
    """The terms of an array without nulls, in normal form."""
    kind = values.type
    if is_text(kind):
        return [Literal(text) for text in values.to_pylist()]
    if pa.types.is_timestamp(kind):
        return _moments(values)
    if pa.types.is_duration(kind):
        return [normalise(to_duration_literal(n)) for n in _microseconds(values, pa.duration("us"))]
    make = _maker(kind)
    assert make is not None, "`read_cells` lets no other type through"
    return [make(value) for value in values.to_pylist()]


def _moments(values: pa.Array) -> list[Literal]:
    zone = "" if values.type.tz is None else "Z"
    if values.type.unit == "ns":
        parts = [divmod(n, 1_000) for n in values.cast(pa.int64()).to_pylist()]
    else:
        parts = [(n, 0) for n in _microseconds(values, pa.timestamp("us", values.type.tz))]
    return [_literal("dateTime", _clock(micros, nanos) + zone) for micros, nanos in parts]


def _clock(micros: int, nanos: int) -> str:
    """A moment in UTC with all its digits."""
    text = to_text(micros).removesuffix("Z")
    return f"{text[:19]}.{micros % 1_000_000:06}{nanos:03}" if nanos else text


def _microseconds(values: pa.Array, kind: pa.DataType) -> list[int]:
    try:
        found: list[int] = values.cast(kind).cast(pa.int64()).to_pylist()
    except pa.ArrowInvalid as error:
        raise EventError(None, None, f"a time that is not of whole microseconds in 64 bits: {error}") from error
    return found


def _literal(datatype: str, text: str) -> Literal:
    return normalise(Literal(text, datatype=NamedNode(XSD + datatype)))


def _maker(kind: pa.DataType) -> Callable[[Any], Literal] | None:
    """How values of a type are written, if it is one of `_TERMS`."""
    return next((make for name, make in _TERMS.items() if getattr(pa.types, f"is_{name}")(kind)), None)


_TERMS: Final[dict[str, Callable[[Any], Literal]]] = {
    "boolean": lambda value: _literal("boolean", "true" if value else "false"),
    "decimal": lambda value: _literal("decimal", format(value, "f")),
    "uint64": lambda value: _literal("integer", str(value)),
    "date": lambda value: _literal("date", value.isoformat()),
    "time": lambda value: _literal("time", value.isoformat()),
    "timestamp": lambda value: _literal("dateTime", value.isoformat()),  # `_moments` does it
    "duration": lambda value: to_duration_literal(value),  # `cell_terms` does it
}
"""Types other than text and 64-bit numbers, and how their Python values are written."""
