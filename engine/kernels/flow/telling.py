"""Rows that are emitted of a delta, each as often as its weight says."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.flow import buffers
from oxiseq.engine.kernels.memory.pointers import Array


@kernel
def told_rows(weight: Array, sign: int) -> int:
    """How many rows are emitted of a delta with these weights: of those that come (sign 1), or that go (-1)."""
    total = 0
    for i in range(weight.shape[0]):
        total += max(sign * weight[i], 0)
    return total


@kernel
def tell(at: Array, weight: Array, rows: Array, sign: int, first: int, instants: Array, told: Array) -> None:
    """Write them, in the delta's order: their ticks, less `first`, and their columns."""
    n = 0
    for i in range(at.shape[0]):
        for _ in range(sign * weight[i]):
            instants[n] = at[i] - first
            for c in range(rows.shape[1]):
                told[n, c] = rows[i, c]
            n += 1


@kernel
def with_rows(deltas: Array, found: Array) -> int:
    """Which deltas have rows, of addresses: i64[n]. Their numbers go into `found`, i64[n]; how many they are."""
    count = 0
    for i in range(deltas.shape[0]):
        if buffers.count(deltas[i])[0] > 0:
            found[count] = i
            count += 1
    return count
