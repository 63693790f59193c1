"""Answers with intervals as text and files: the formats of SPAseq's rows; tables also tell the start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.epsparql.answer import IntervalShape
from oxiseq.spaseq.columns import TIME, free_name, term_column
from oxiseq.spaseq.formats import (
    BINARY,
    ResultFormat,
    check_format,
    flush_lines,
    is_numeric,
    result_text,
    table_rows,
    write_arrow,
    write_text,
)

Batches = Iterable[MatchBatch]


def interval_rows(shape: IntervalShape, batch: MatchBatch) -> tuple[list[str], list[list[str]], list[bool]]:
    """For people: header, rows with start and end in UTC, and which columns are flush right."""
    header, rows = table_rows(shape, batch)
    starts = [to_text(time) for time in batch.event_time[::2].tolist()]
    return (["start", "end", *header[1:]], [[start, *row] for start, row in zip(starts, rows, strict=True)],
            [False, *is_numeric(shape, batch)])  # fmt: skip


def interval_text(shape: IntervalShape, batches: Batches, format: ResultFormat) -> Iterator[str]:
    """The answers as pieces of text; `format` is one of the text formats."""
    if format == "table" and not shape.asks:
        yield from flush_lines(*interval_rows(shape, MatchBatch.concat(list(batches), len(shape.variables))))
    else:
        yield from result_text(shape, batches, format)


def arrow_intervals(shape: IntervalShape, batch: MatchBatch) -> pa.Table:
    """`start`, `end` and a column per variable."""
    columns: dict[str, pa.Array] = {
        "start": pa.array(batch.event_time[::2].copy(), TIME), "end": pa.array(batch.time, TIME),
    }  # fmt: skip
    for i, name in enumerate(shape.variables):
        columns[free_name(name, columns)] = term_column(np.ascontiguousarray(batch.values[:, i]), shape.terms)
    return pa.table(columns)


def write_intervals(
    shape: IntervalShape, batches: Batches, format: ResultFormat, out: BinaryIO, *, stream: bool = False
) -> int:
    """Write answers in the order given; returns how many. `stream`: Arrow as an IPC stream, not a file."""
    check_format(shape, format)
    count = 0

    def counted() -> Iterator[MatchBatch]:
        nonlocal count
        for batch in batches:
            count += len(batch)
            yield batch

    if format in BINARY:
        whole = MatchBatch.concat(list(counted()), len(shape.variables))
        write_arrow(arrow_intervals(shape, whole), format, out, stream=stream)
    else:
        write_text(interval_text(shape, counted(), format), out)
    return count
