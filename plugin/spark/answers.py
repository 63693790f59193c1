"""Matches and late events as columns for Spark.

Where it stands: a bucket's outcome → **columns** → DataFrame. Times travel as bigint microseconds, lists of them as
text with commas, since what else pandas may hold is converted one by one in Python; Spark makes timestamps of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyoxigraph import RdfFormat, serialize

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.grammar.algebra import Construct
from oxiseq.sources.late import graphs
from oxiseq.spark.bucket import Outcome
from oxiseq.spark.work import Work

AT: Final = "at"
LATE: Final = "late"


def value_columns(plan: QueryPlan, shown: int) -> list[str]:
    """The names of the answer's columns, all strings; a CONSTRUCT query has one, `graph`."""
    if isinstance(plan.query.form, Construct):
        return ["graph"]
    return [column.variable.value for column in plan.answer.columns[:shown]]


def event_columns(plan: QueryPlan) -> dict[str, NDArray[np.bool_]]:
    """Column of a positive GPM's times → which letters are its events'."""
    found = {}
    for gpm in plan.gpms:
        letters = np.array([letter.positive and gpm in letter.letter for letter in plan.letters])
        if letters.any():
            found[f"events_{gpm}"] = letters
    return found


def arrow_schema(work: Work) -> pa.Schema:
    """What the operator hands to Spark."""
    fields = [(AT, pa.int64())]
    fields += [(f"value_{i}", pa.string()) for i in range(len(value_columns(work.plan, work.shown)))]
    fields += [(name, pa.string()) for name in event_columns(work.plan)]
    return pa.schema([*fields, ("late_stream", pa.string()), ("late_time", pa.int64()), ("late_graph", pa.string())])


def schema(work: Work) -> str:
    """The same as a DDL string."""
    names = {pa.int64(): "bigint", pa.string(): "string"}
    return ", ".join(f"`{field.name}` {names[field.type]}" for field in arrow_schema(work))


def tables(work: Work, outcome: Outcome, terms: str, late: bool) -> Iterator[pa.Table]:
    """The rows of an outcome. `terms`: "text" (IRIs and lexical forms) or "ntriples"; `late`: late events with their
    graphs; otherwise these are null."""
    for batch in outcome.matches:
        yield _table(work, _match_columns(work, batch, terms), len(batch))
    for stream, events in outcome.late:
        yield _table(work, _late_columns(work, stream, events, late), len(events))


def frame(table: pa.Table) -> pd.DataFrame:
    """A table as pandas, its columns as they are."""
    names = table.column_names
    return pd.DataFrame({name: pd.Series(pd.arrays.ArrowExtensionArray(table.column(name))) for name in names})


def _table(work: Work, columns: dict[str, pa.Array], rows: int) -> pa.Table:
    kinds = arrow_schema(work)
    return pa.table([columns.get(f.name, pa.nulls(rows, f.type)) for f in kinds], schema=kinds)


def _match_columns(work: Work, batch: MatchBatch, terms: str) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {AT: pa.array(batch.time)}
    if isinstance(work.plan.query.form, Construct):
        columns["value_0"] = pa.array(_graphs(work, batch), pa.string())
    else:
        for i in range(work.shown):
            columns[f"value_{i}"] = _texts(work, batch.values[:, i], terms)
    for name, letters in event_columns(work.plan).items():
        mine = letters[batch.event_letter]
        counts = np.concatenate([[0], np.cumsum(mine)])
        times = pa.ListArray.from_arrays(
            pa.array(counts[batch.ends].astype(np.int32)), pa.array(batch.event_time[mine]).cast(pa.string())
        )
        columns[name] = pc.binary_join(times, ",")
    return columns


def _texts(work: Work, ids: NDArray[np.uint32], terms: str) -> pa.Array:
    ids = np.ascontiguousarray(ids)
    data, ends = work.terms.plain_texts(ids) if terms == "text" else work.terms.texts(ids)
    bound = ids != 0
    valid = None if bound.all() else pa.array(bound).buffers()[1]
    buffers = [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(ids), buffers)


def _graphs(work: Work, batch: MatchBatch) -> list[str]:
    block = work.shape.block([batch])
    return [_n_triples(block.graph(i)) for i in range(len(block))]


def _late_columns(work: Work, stream: int, batch: EventBatch, whole: bool) -> dict[str, pa.Array]:
    columns = {
        "late_stream": pa.array([work.plan.streams[stream]] * len(batch)), "late_time": pa.array(batch.time)
    }  # fmt: skip
    if whole:
        columns["late_graph"] = pa.array([_n_triples(graph) for _, graph in graphs(batch, work.terms)], pa.string())
    return columns


def _n_triples(triples: Sequence[Any]) -> str:
    return (serialize(triples, format=RdfFormat.N_TRIPLES) or b"").decode()
