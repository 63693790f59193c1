"""Complex events as Arrow tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oxiseq.ceql.event import ComplexShape
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.spaseq.columns import TIME, free_name


def complex_table(batch: ComplexEvents, shape: ComplexShape) -> pa.Table:
    """`time`, `start`, `end`, `positions` (D), per variable its positions, and as `events_...` its events' times."""
    columns: dict[str, pa.Array] = {
        "time": pa.array(batch.time, TIME),
        "start": pa.array(batch.start),
        "end": pa.array(batch.end),
        "positions": pa.ListArray.from_arrays(pa.array(batch.ends.astype(np.int32)), pa.array(batch.positions)),
    }
    held = {name: batch.holding(number) for number, name in enumerate(shape.variables)}
    for name, mine in held.items():
        columns[free_name(name, columns)] = _lists(batch, mine, batch.positions)
    for name, mine in held.items():
        columns[free_name(f"events_{name}", columns)] = _lists(batch, mine, batch.event_time, TIME)
    return pa.table(columns)


def _lists(
    batch: ComplexEvents, mine: np.ndarray, values: np.ndarray, kind: pa.DataType | None = None
) -> pa.ListArray:
    """Of each complex event the values where `mine` is true."""
    counts = np.concatenate([[0], np.cumsum(mine)])
    return pa.ListArray.from_arrays(pa.array(counts[batch.ends].astype(np.int32)), pa.array(values[mine], kind))
