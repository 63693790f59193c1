"""The DataFrames that are given for a query's streams, checked, with the columns that workers read.

In the flow: `match(streams=, mappings=)` → **given** → dealer. A DataFrame holds events, or with a mapping rows of
any columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from oxiseq.grammar.records import dataclass
from oxiseq.mappings.declared import Declared, StreamMapping
from oxiseq.spark.decoding import COLUMNS
from oxiseq.spark.errors import SparkError

_KINDS: Final = {
    "events": ("string", "binary"),
    "graph": ("string", "binary"),
    "time": ("timestamp", "timestamp_ntz", "bigint", "int"),
}


@dataclass(frozen=True, slots=True)
class Given:
    """The events of a stream: the columns of a DataFrame that are read, and the mapping of rows that are no events."""

    frame: DataFrame
    mapping: StreamMapping | None = None

    @property
    def columns(self) -> dict[str, str]:
        """What a mapping calls each column that is no struct → its type in Spark SQL."""
        if self.mapping is None:
            return {}
        named = ((self.mapping.key(name), kind) for name, kind in _members(self.frame.schema))
        return {key: kind for key, kind in named if key is not None}


def given_streams(
    names: Mapping[str, str], streams: Mapping[str, DataFrame], mappings: Mapping[str, Declared] | None
) -> dict[str, Given]:
    """By the stream's IRI; `names`: those of the query's streams, with their IRIs. Raises SparkError, MappingError."""
    _check_frames(streams)
    frames, of_rows = _by_iri(names, streams), _by_iri(names, mappings or {})
    if not frames:
        raise SparkError("no stream is given")
    for iri in of_rows:
        if iri not in frames:
            raise SparkError(f"a mapping is given for <{iri}>, which has no DataFrame in streams=")
    return {
        name_iri: _events(name, frame) if name_iri not in of_rows else _rows(name, frame, of_rows[name_iri][1])
        for name_iri, (name, frame) in frames.items()
    }


def _check_frames(streams: object) -> None:
    """Raise SparkError where they are no DataFrames by name."""
    if not isinstance(streams, Mapping):
        raise SparkError(f"streams is {type(streams).__name__}; a DataFrame for each stream, by name, is expected")
    for name, frame in streams.items():
        if not isinstance(name, str) or not isinstance(frame, DataFrame):
            raise SparkError(f"stream {name!r}: {type(frame).__name__} is given; a DataFrame of Spark's is expected")


def _by_iri(names: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """IRI of a stream → the name that the caller uses, and what is given for it."""
    found: dict[str, tuple[str, Any]] = {}
    for name, value in given.items():
        iri = names.get(name, name)
        if iri not in names.values():
            declared = ", ".join(f"<{iri}>" if short == iri else f"{short} <{iri}>" for short, iri in names.items())
            raise SparkError(f"the query reads no stream {name!r}; it declares {declared}")
        if iri in found:
            raise SparkError(f"the stream {name!r} is given twice")
        found[iri] = name, value
    return found


def _events(name: str, frame: DataFrame) -> Given:
    columns = next((columns for columns in COLUMNS if set(columns) <= set(frame.columns)), ())
    if not columns:
        raise SparkError(
            f"stream {name!r}: columns {', '.join(frame.columns)}; `events`, or `time` and `graph`; mappings= says "
            "what other columns mean"
        )
    for column in columns:
        kind = frame.schema[column].dataType.simpleString()
        if kind not in _KINDS[column]:
            raise SparkError(f"stream {name!r}: {column} is {kind}; {' or '.join(_KINDS[column])} expected")
    return Given(frame.select(*(_column(frame, column) for column in columns)))


def _column(frame: DataFrame, name: str) -> Column:
    """Clocks without a zone are those of `spark.sql.session.timeZone`, as everywhere in Spark."""
    clock = frame.schema[name].dataType.simpleString() == "timestamp_ntz"
    return F.col(name).cast("timestamp").alias(name) if clock else F.col(name)


def _rows(name: str, frame: DataFrame, declared: Declared) -> Given:
    mapping = StreamMapping(declared)
    if not mapping.takes_rows or not mapping.time:
        lacks = "the time of a row" if mapping.takes_rows else "what rows mean"
        raise SparkError(f"stream {name!r}: the mapping does not say {lacks}")
    members = [member for member, _ in _members(frame.schema)]
    if missing := mapping.missing(members):
        raise SparkError(
            f"stream {name!r}: no column {', '.join(map(repr, missing))}, which the mapping reads; there are "
            f"{', '.join(members)}"
        )
    read = [
        field.name
        for field in frame.schema
        if any(mapping.key(member) is not None for member, _ in _members(StructType([field])))
    ]
    return Given(frame.select(*(_quoted(column) for column in read)), mapping)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _members(schema: StructType, before: str = "") -> Iterator[tuple[str, str]]:
    """Columns and their types; the members of a struct are columns a.b."""
    for field in schema:
        if isinstance(field.dataType, StructType):
            yield from _members(field.dataType, f"{before}{field.name}.")
        else:
            yield before + field.name, field.dataType.simpleString()


def texts(given: Mapping[str, Given]) -> tuple[tuple[str, str], ...]:
    """IRI → mapping as JSON, as workers get it."""
    return tuple(
        (iri, json.dumps(stream.mapping.as_data(), sort_keys=True))
        for iri, stream in given.items()
        if stream.mapping is not None
    )
