"""Match batches as Arrow tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary

TIME = pa.timestamp("us", tz="UTC")


def arrow_table(batch: MatchBatch, plan: QueryPlan, terms: TermDictionary) -> pa.Table:
    """`time`, a column per answer column, and per positive GPM the times of its events."""
    columns: dict[str, pa.Array] = {"time": pa.array(batch.time, TIME)}
    for i, column in enumerate(plan.answer.columns):
        columns[free_name(column.variable.value, columns)] = term_column(batch.values[:, i], terms)
    for gpm in plan.gpms if plan.summary is None else ():  # a row of a group has no events
        letters = np.array([letter.positive and gpm in letter.letter for letter in plan.letters])
        if letters.any():
            columns[free_name(f"events_{gpm}", columns)] = _events(batch, letters)
    return pa.table(columns)


def free_name(name: str, taken: dict[str, pa.Array]) -> str:
    """`name`, with a line below it if it is taken."""
    while name in taken:
        name += "_"
    return name


def term_column(ids: NDArray[np.uint32], terms: TermDictionary) -> pa.Array:
    """Numbers where all terms are of one numeric kind, else text."""
    columns = terms.columns
    bound = ids != 0
    found = set(np.flatnonzero(np.bincount(columns.kind[ids], minlength=1)).tolist()) - {kinds.NONE}
    if found == {kinds.INTEGER} and bool((columns.quality[ids[bound]] & kinds.EXACT_INTEGER).all()):
        return pa.array(columns.exact[ids], pa.int64(), mask=~bound)
    if found and found <= {kinds.DOUBLE, kinds.FLOAT, kinds.DECIMAL}:
        return pa.array(columns.number[ids], pa.float64(), mask=~bound)
    data, ends = terms.plain_texts(ids)
    large = ends[-1] > np.iinfo(np.int32).max
    places = ends if large else ends.astype(np.int32)
    valid = None if bound.all() else pa.array(bound).buffers()[1]  # a bit each, as Arrow has them
    buffers = [valid, pa.py_buffer(places), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string() if large else pa.string(), len(ids), buffers)


def _events(batch: MatchBatch, letters: NDArray[np.bool_]) -> pa.Array:
    mine = letters[batch.event_letter]
    counts = np.concatenate([[0], np.cumsum(mine)])
    return pa.ListArray.from_arrays(
        pa.array(counts[batch.ends].astype(np.int32)), pa.array(batch.event_time[mine], TIME)
    )
