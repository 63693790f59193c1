"""Filters over columns: one condition for many mappings."""

from __future__ import annotations

from typing import Any

from oxiseq.engine.kernels.machine import truth
from oxiseq.engine.kernels.options import kernel


@kernel
def truth_column(code: Any, table: Any, vector: Any, C: Any, out: Any) -> None:
    """The outcome of a program for each row of `table` (i64[n, k] term ids; value 0 of the vector is unbound).

    `vector` i64[1 + k] is scratch, `C` the term columns, `out` u8[n] the machine's outcomes.
    """
    for r in range(table.shape[0]):
        for c in range(table.shape[1]):
            vector[1 + c] = table[r, c]
        out[r] = truth(code, 0, code.shape[0], vector, C.kind, C.number, C.exact, C.quality)
