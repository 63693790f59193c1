"""What terms are worth, by id: the columns that filters read."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.memory.pointers import Ptr


class TermColumns(Arrays):
    """Arrays by term id, C-contiguous and writable, at least as long as the dictionary (matching.md 2).

    For a blank node `exact` is its serial number.
    """


kind = array(TermColumns, "kind", np.uint8)
number = array(TermColumns, "number", np.float64)
exact = array(TermColumns, "exact", np.int64)
quality = array(TermColumns, "quality", np.uint8)


Columns: TypeAlias = Ptr[TermColumns]
"""`C` of kernels."""
