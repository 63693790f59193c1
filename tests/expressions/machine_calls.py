"""The stack machine as Python can call it: its functions have no door to Python, so drivers are compiled here."""

from __future__ import annotations

from typing import Any

from numba import njit

from oxiseq.engine.kernels.expressions import machine


@njit(error_model="numpy")
def truth(code: Any, start: Any, end: Any, vals: Any, kind: Any, number: Any, exact: Any, quality: Any) -> Any:
    return machine.truth(code, start, end, vals, kind, number, exact, quality)


@njit(error_model="numpy")
def value(code: Any, start: Any, end: Any, vals: Any, kind: Any, number: Any, exact: Any, quality: Any) -> Any:
    return machine.value(code, start, end, vals, kind, number, exact, quality)
