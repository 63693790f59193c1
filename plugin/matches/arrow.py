"""Blocks of matches as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.matches.shape import Block

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")


def arrow_table(block: Block) -> pa.Table:
    """`at`, `start` and `end` (timestamps) where matches have them, a column per variable, positions where there are
    some, and a list of event times for each name that holds events."""
    rows, shape = block.rows, block.shape
    moment = pa.timestamp("us", tz="UTC")
    columns: dict[str, pa.Array] = {"at": pa.array(rows.at, moment)}
    start, end, none = block.spans()
    if shape.spans:
        columns["start"] = pa.array(start, moment, mask=none)
    if shape.spans or shape.later:
        columns["end"] = pa.array(end, moment)
    for name, i in shape.index.items():
        columns[_free(name, columns)] = _terms(np.ascontiguousarray(rows.values[:, i]), shape.terms)
    held = {lane: _held(block, lane) for lane in shape.lanes}
    if block.positions is not None:
        first, last, of = block.positions
        whole = pa.ListArray.from_arrays(pa.array(rows.ends.astype(np.int32)), pa.array(of))
        columns |= {"first": pa.array(first), "last": pa.array(last), "positions": whole}
        for lane, (mine, ends) in held.items():
            columns[_free(lane, columns)] = pa.ListArray.from_arrays(ends, pa.array(of[mine]))
    for lane, (mine, ends) in held.items():
        times = pa.array(rows.event_time[mine], moment)
        columns[_free(f"events_{lane}", columns)] = pa.ListArray.from_arrays(ends, times)
    return pa.table(columns)


def _free(name: str, taken: dict[str, pa.Array]) -> str:
    """`name`, with a line below it if it is taken."""
    while name in taken:
        name += "_"
    return name


def _terms(ids: NDArray[np.uint32], terms: TermDictionary) -> pa.Array:
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


def _held(block: Block, lane: str) -> tuple[NDArray[np.int64], pa.Array]:
    """The numbers of the events that a name holds, and where those of each match end among them."""
    mine = np.flatnonzero(block.holding(lane))
    return mine, pa.array(np.searchsorted(mine, block.rows.ends).astype(np.int32))
