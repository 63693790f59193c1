"""How kernels are compiled: cached on disk, without Python's error checks on division.

`kernel` is for what Python calls. `inner` is for what only kernels call: no door to Python is made, and nothing
is cached but the kernel that holds it. Numba watches only a kernel's own file: after a change of another one
here, `make fresh` empties the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function that Python calls."""
    return cast(F, njit(cache=True, error_model="numpy")(function))


def inner(function: F) -> F:
    """Compile a function that only kernels call."""
    options: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, njit(**options)(function))
