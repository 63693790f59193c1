"""The hash of all tables: fixed, so that runs repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner


@inner
def mix(h: Any, value: Any) -> Any:
    """One step of the hash, without a random seed."""
    x = h ^ np.uint64(value)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return x ^ (x >> np.uint64(29))
