"""The stack machine as Python can call it: its functions have no door to Python, so drivers are compiled here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from oxiseq.engine.kernels.expressions import machine

_MEMO = np.zeros((1, 1), np.uint8)


@njit(error_model="numpy")
def truth(code: Any, start: Any, end: Any, vals: Any, kind: Any, number: Any, exact: Any, quality: Any) -> Any:
    depth = code[start + 1]
    numbers, entries = np.empty((depth, 2)), np.empty((depth, 4), np.int64)
    return machine.truth(code, start, end, vals, kind, number, exact, quality, _MEMO, numbers, entries)


@njit(error_model="numpy")
def value(code: Any, start: Any, end: Any, vals: Any, kind: Any, number: Any, exact: Any, quality: Any) -> Any:
    depth = code[start + 1]
    numbers, entries = np.empty((depth, 2)), np.empty((depth, 4), np.int64)
    return machine.value(code, start, end, vals, kind, number, exact, quality, _MEMO, numbers, entries)
