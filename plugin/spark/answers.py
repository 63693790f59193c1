"""Matches and late events as columns for Spark.

In the flow: a bucket's outcome → **columns** → DataFrame. Times travel as bigint microseconds, lists of them as
text with commas, since what else pandas may hold is converted one by one in Python; Spark makes timestamps of them.
Only `time` is a timestamp from the start: Spark's event time must be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, serialize

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.matches.plan import SequencePlan
from oxiseq.engine.plan.query import LiveKeys
from oxiseq.engine.snapshot.saving import AnyPlan
from oxiseq.engine.terms.dictionary import TermId
from oxiseq.engine.terms.texts import Term
from oxiseq.matches.shape import Block, Shape
from oxiseq.sources.warned import graphs
from oxiseq.spark.bucket import Outcome
from oxiseq.spark.order import Form
from oxiseq.spark.work import Work

AT: Final = "at"
TIME: Final = "time"
"""The event time: Spark takes no row whose time its watermark had passed in the micro-batch before."""
_FIRST: Final = 1
"""µs since 1970: Spark's watermark begins with 0, and takes nothing that is not behind it."""
LATE: Final = "late"
TERM_PARTS: Final = ("value", "datatype", "lang", "kind")
SPAN: Final = ("start", "end")
STREAM: Final = " "
"""What stands between an event's time and the number of its stream."""


def value_columns(work: Work) -> list[str]:
    """The names of the answer's columns, all strings; a CONSTRUCT query has one, `graph`."""
    return ["graph"] if work.shape.form == "CONSTRUCT" else list(work.shape.variables[: work.shown])


def event_columns(shape: Shape) -> dict[str, str]:
    """Column of the times of the events that a name holds → that name."""
    return {f"events_{lane}": lane for lane in shape.lanes}


def span_columns(shape: Shape) -> tuple[str, ...]:
    """The columns of the times of matches that have no events, of MATCH; where matches may be decided later than they
    end, `end` alone, if no variable is called so."""
    if shape.spans and not shape.lanes:
        return SPAN
    return SPAN[1:] if shape.later and SPAN[1] not in map(str.lower, shape.variables) else ()


def decided_after(plan: AnyPlan) -> int | None:
    """How long (µs) after its end a match may be undecided, None: as long as a window of events takes. Only a trailing
    negation of SPAseq lets a match wait."""
    if not isinstance(plan, SequencePlan) or not isinstance(plan.runner, LiveKeys):
        return 0
    graph = plan.runner.sequence.graph
    if not any(edge.waits for edge in graph.edges):
        return 0
    if graph.longest_wait is not None:
        return graph.longest_wait
    return plan.window.size if plan.window is not None and not plan.window.events else None


def value_parts(i: int, form: Form) -> list[str]:
    """The columns that carry the i-th value: of "terms" one for each of `TERM_PARTS`."""
    return [f"value_{i}"] if form != "terms" else [f"{part}_{i}" for part in TERM_PARTS]


def arrow_schema(work: Work, form: Form) -> pa.Schema:
    """What the operator passes to Spark."""
    fields = [(AT, pa.int64()), (TIME, pa.timestamp("us", "UTC"))]
    fields += [(name, pa.int64()) for name in span_columns(work.shape)]
    values = range(len(value_columns(work)))
    fields += [(name, pa.string()) for i in values for name in value_parts(i, _shown_as(work, form))]
    fields += [(name, pa.string()) for name in event_columns(work.shape)]
    return pa.schema([*fields, ("late_stream", pa.string()), ("late_time", pa.int64()), ("late_graph", pa.string())])


def schema(work: Work, form: Form) -> str:
    """The same as a DDL string."""
    names = {pa.int64(): "bigint", pa.string(): "string", pa.timestamp("us", "UTC"): "timestamp"}
    return ", ".join(f"`{field.name}` {names[field.type]}" for field in arrow_schema(work, form))


def tables(work: Work, outcome: Outcome, form: Form, late: bool, mark: int = 0) -> Iterator[pa.Table]:
    """The rows of an outcome. `late`: late events with their graphs; otherwise these are null. `mark`: Spark's
    watermark (ms)."""
    kinds = arrow_schema(work, form)
    found = outcome.matches
    if len(found):
        columns = _match_columns(work, found, form)
        columns[TIME] = pa.array(event_time(work.plan, found.rows.at, mark)).cast(pa.timestamp("us", "UTC"))
        yield _table(kinds, columns, len(found))
    for stream, events in outcome.late:
        yield _table(kinds, _late_columns(work, stream, events, late), len(events))


def event_time(plan: AnyPlan, at: NDArray[np.int64], mark: int) -> NDArray[np.int64]:
    """The event time of matches that are decided `at` these times (µs), and emitted under the watermark `mark` (ms).

    It does not depend on how events come in micro-batches, but where only a window of events decides.
    """
    return np.maximum(at, max(mark * 1000, _FIRST) if decided_after(plan) is None else _FIRST)


def frame(table: pa.Table) -> pd.DataFrame:
    """A table as pandas, its columns as they are."""
    names = table.column_names
    return pd.DataFrame({name: pd.Series(pd.arrays.ArrowExtensionArray(table.column(name))) for name in names})


def _table(kinds: pa.Schema, columns: dict[str, pa.Array], rows: int) -> pa.Table:
    return pa.table([columns.get(f.name, pa.nulls(rows, f.type)) for f in kinds], schema=kinds)


def _match_columns(work: Work, found: Block, form: Form) -> dict[str, pa.Array]:
    rows = found.rows
    columns: dict[str, pa.Array] = {AT: pa.array(rows.at)}
    if work.shape.form == "CONSTRUCT":
        graphs = [_n_triples(found.graph(i)) for i in range(len(found))]
        columns["value_0"] = pa.array(graphs, pa.string())
    else:
        for i in range(work.shown):
            columns |= zip(value_parts(i, form), _values(work, rows.values[:, i], form), strict=True)
    if span := span_columns(work.shape):
        start, end, none = found.spans()
        times = {SPAN[0]: pa.array(start, mask=none), SPAN[1]: pa.array(end)}
        columns |= {name: times[name] for name in span}
    for name, lane in event_columns(work.shape).items():
        mine = found.holding(lane)
        counts = np.concatenate([[0], np.cumsum(mine)])
        texts = pa.array(rows.event_time[mine]).cast(pa.string())
        if form == "terms":
            streams = _streams(work, found, lane)[rows.event_letter[mine]]
            texts = pc.binary_join_element_wise(texts, pa.array(streams).cast(pa.string()), STREAM)
        each = pa.ListArray.from_arrays(pa.array(counts[rows.ends].astype(np.int32)), texts)
        columns[name] = pc.binary_join(each, ",")
    return columns


def _streams(work: Work, found: Block, lane: str) -> NDArray[np.int64]:
    """By letter the number of the stream of the events that a name holds."""
    held = (next((iri for name, iri in letter if name == lane), None) for letter in found.letters)
    return np.array([-1 if iri is None else work.plan.streams.index(iri) for iri in held], np.int64)


def _values(work: Work, ids: NDArray[np.uint32], form: Form) -> list[pa.Array]:
    """The columns of one value. Terms are taken apart once for each that is there."""
    ids = np.ascontiguousarray(ids)
    texts = _texts(work, ids, written=form == "ntriples")
    if form != "terms":
        return [texts]
    different, places = np.unique(ids, return_inverse=True)
    parts = zip(*(_parts(work.terms.term(TermId(i)) if i else None) for i in different.tolist()), strict=True)
    return [texts, *(pa.array(part, pa.string()).take(pa.array(places)) for part in (parts or [()] * 3))]


def _parts(term: Term | None) -> tuple[str | None, str | None, str | None]:
    """Datatype, language tag with the base direction, and kind."""
    match term:
        case Literal():
            direction = f"--{term.direction.value}" if term.direction is not None else ""
            return term.datatype.value, None if term.language is None else term.language + direction, "literal"
        case NamedNode():
            return None, None, "iri"
        case BlankNode():
            return None, None, "blank"
        case Triple():
            return None, None, "triple"
    return None, None, None


def _texts(work: Work, ids: NDArray[np.uint32], *, written: bool) -> pa.Array:
    data, ends = work.terms.texts(ids) if written else work.terms.plain_texts(ids)
    bound = ids != 0
    valid = None if bound.all() else pa.array(bound).buffers()[1]
    buffers = [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(ids), buffers)


def _shown_as(work: Work, form: Form) -> Form:
    """A graph is a text, whatever terms are."""
    return "text" if work.shape.form == "CONSTRUCT" else form


def _late_columns(work: Work, stream: int, batch: EventBatch, whole: bool) -> dict[str, pa.Array]:
    columns = {"late_stream": pa.array([work.plan.streams[stream]] * len(batch)), "late_time": pa.array(batch.time)}
    if whole:
        columns["late_graph"] = pa.array([_n_triples(graph) for _, graph in graphs(batch, work.terms)], pa.string())
    return columns


def _n_triples(triples: Sequence[Any]) -> str:
    return (serialize(triples, format=RdfFormat.N_TRIPLES) or b"").decode()
