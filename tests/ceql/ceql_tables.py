"""Tuple events as tables: typed columns, a batch for each run of events whose columns have the same types."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

import pyarrow as pa
from ceql_strategies import CeqlEvent
from pyoxigraph import Literal, RdfFormat, parse
from reference.values import XSD

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
TYPES = {"integer": pa.int64(), "decimal": pa.decimal128(10, 3), "double": pa.float64(), "boolean": pa.bool_()}


def batches_of(events: Sequence[tuple[int, str]]) -> list[pa.RecordBatch]:
    """(time, N-Triples) of tuple events as record batches; most have their texts in dictionaries."""
    rows = [row_of(time, graph) for time, graph in events]
    made = []
    for types, group in groupby(rows, key=lambda row: row[0]):
        members = [row for _, row in group]
        batch = pa.RecordBatch.from_pylist(members, schema=pa.schema(dict(types)))
        made.append(batch if members[0]["time"] % 3 == 0 else coded(batch))
    return made


def coded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Its texts in dictionaries."""
    columns = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def row_of(time: int, graph: str) -> tuple[tuple[tuple[str, pa.DataType], ...], dict[str, Any]]:
    """The types of the columns, and the row."""
    row: dict[str, Any] = {"time": time, "type": None}
    types = {"time": pa.int64(), "type": pa.string()}
    for quad in parse(graph.encode(), format=RdfFormat.N_TRIPLES):
        iri, term = quad.predicate.value, quad.object
        if iri == RDF_TYPE:
            row["type"] = term.value
        else:
            name = iri.rpartition("#")[2]
            types[name], row[name] = value_of(term)
    return tuple(sorted(types.items())), row


def value_of(term: Literal) -> tuple[pa.DataType, Any]:
    kind = term.datatype.value.removeprefix(XSD)
    text = term.value
    makers: dict[str, Any] = {"integer": int, "decimal": Decimal, "double": float, "boolean": lambda t: t == "true"}
    return TYPES.get(kind, pa.string()), makers.get(kind, str)(text)


def as_table(events: Sequence[CeqlEvent]) -> list[pa.RecordBatch]:
    return batches_of([(e.time, e.graph) for e in events])
