"""Answers as text and files: the formats of SPAseq's rows; tables of Arrow also tell the times of event mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.rsp import END, START
from oxiseq.rsp.answer import AnswerShape
from oxiseq.spaseq.columns import TIME, free_name, term_column
from oxiseq.spaseq.formats import BINARY, ResultFormat, check_format, result_text, write_arrow, write_text

Batches = Iterable[MatchBatch]


def answer_text(shape: AnswerShape, batches: Batches, format: ResultFormat) -> Iterator[str]:
    """The answers as pieces of text; `format` is one of the text formats."""
    return result_text(shape, batches, format)


def arrow_answers(shape: AnswerShape, batch: MatchBatch) -> pa.Table:
    """`time`, `start` and `end` where rows carry event mappings, and a column per variable."""
    columns: dict[str, pa.Array] = {"time": pa.array(batch.time, TIME)}
    if shape.plan.timed:
        times = batch.event_time.reshape(-1, 2)
        columns |= {"start": pa.array(times[:, START], TIME), "end": pa.array(times[:, END], TIME)}
    for i, name in enumerate(shape.variables):
        columns[free_name(name, columns)] = term_column(np.ascontiguousarray(batch.values[:, i]), shape.terms)
    return pa.table(columns)


def write_answers(
    shape: AnswerShape, batches: Batches, format: ResultFormat, out: BinaryIO, *, stream: bool = False
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
        write_arrow(arrow_answers(shape, whole), format, out, stream=stream)
    else:
        write_text(answer_text(shape, counted(), format), out)
    return count
