"""Numbers as kernels have them, which mypy takes for Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

i64: Final[Callable[[Any], int]] = np.int64
"""An integer of 64 bits: to Numba np.int64, to mypy an int, as it is where kernels take it."""
