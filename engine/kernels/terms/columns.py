"""What terms are worth, by id: the columns that filters read."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.memory.pointers import Ptr, view_of


class TermColumns(NamedTuple):
    """Arrays by term id, C-contiguous and writable, at least as long as the dictionary (matching.md 2).

    For a blank node `exact` is its serial number.
    """

    kind: NDArray[np.uint8]
    number: NDArray[np.float64]
    exact: NDArray[np.int64]
    quality: NDArray[np.uint8]


Columns: TypeAlias = Ptr[TermColumns]
"""`C` of kernels."""

kind = view_of(TermColumns, "kind", np.uint8)
number = view_of(TermColumns, "number", np.float64)
exact = view_of(TermColumns, "exact", np.int64)
quality = view_of(TermColumns, "quality", np.uint8)
