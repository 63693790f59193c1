"""Matches that were found for several queries: those of one of them."""

from __future__ import annotations

from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.pointers import Array


@kernel
def cut(
    rows: Array, ends: Array, lengths: Array, size: int, spans: Array, member: int, out_rows: Array, out_ends: Array
) -> int:
    """Copy the matches that last no longer than `size` and are the family's query `member`'s; how many these are.

    rows: i64, ends: i64[n + 1]; lengths: i64[n]; spans: i64[n, 2], without rows where there is no family. out_rows and
    out_ends have room for all; out_ends[0] is 0.
    """
    kept, at = 0, 0
    for m in range(lengths.shape[0]):
        if lengths[m] > size:
            continue
        if spans.shape[0] and not spans[m, 0] <= member < spans[m, 1]:
            continue
        for i in range(ends[m], ends[m + 1]):
            out_rows[at] = rows[i]
            at += 1
        kept += 1
        out_ends[kept] = at
    return kept
